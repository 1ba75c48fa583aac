-- run: -joff
local function fib(n)
  if n < 2 then return n end
  return fib(n - 1) + fib(n - 2)
end

local sum = 0
for round = 1, 300 do sum = sum + fib(22) end
print(sum)
