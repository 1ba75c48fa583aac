-- Recursion: calls and returns with little work in between.
local size = tonumber(arg[1]) or 10

local function fib(n)
  if n < 2 then
    return n
  end
  return fib(n - 1) + fib(n - 2)
end

local function ack(m, n)
  if m == 0 then
    return n + 1
  elseif n == 0 then
    return ack(m - 1, 1)
  end
  return ack(m - 1, ack(m, n - 1))
end

local sum = 0
for _ = 1, size do
  sum = sum + fib(20) + ack(2, 20)
end
print(sum)
