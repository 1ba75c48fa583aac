-- Recursion: down, up, and in tails.
local function fib(n)
  if n < 2 then
    return n
  end
  local a = fib(n - 1)
  return a + fib(n - 2)
end
local function down(n)
  if n == 0 then
    return 0
  end
  return 1 + down(n - 1)
end
local function tail(n, acc)
  if n == 0 then
    return acc
  end
  return tail(n - 1, acc + n)
end
for _ = 1, 8 do
  fib(10)
  down(60)
  tail(100, 0)
end
