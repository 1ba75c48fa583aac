-- Functions with varargs, select, and passing them on.
local function sum3(a, b, c)
  return a + b + c
end
local function pass(...)
  return sum3(...)
end
local function count(...)
  local n = select("#", ...)
  return n + (...)
end
local s = 0
for i = 1, 600 do
  s = s + pass(i, 2, 3)
  s = s + count(i, s)
end
