-- f -> g -> h with leaf arithmetic, twice on different lines.
local function h(x)
  local y = x * 3
  y = y + 1
  return y % 1000
end
local function g(x)
  local a = h(x)
  a = a + h(a)
  return a
end
local function f(n)
  local s = 0
  for i = 1, n do
    s = s + g(i)
    s = s % 65536
  end
  return s
end
for i = 1, 30 do
  f(40)
end
