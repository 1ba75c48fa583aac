-- __index, __add, __lt, __call, __newindex as functions.
local mt = {}
mt.__index = function(_, k)
  return k * 2
end
mt.__add = function(a, b)
  local x = rawget(a, 1)
  return x + rawget(b, 1)
end
mt.__lt = function(a, b)
  return rawget(a, 1) < rawget(b, 1)
end
mt.__call = function(self, x)
  return x + 1
end
local a = setmetatable({ 1 }, mt)
local b = setmetatable({ 2 }, mt)
local s = 0
for i = 2, 600 do
  s = s + a[i + 5]
  s = s + (a + b)
  if a < b then
    s = s + 1
  end
  s = s + a(i)
end
