-- Closures made once and called in loops, and upvalues that they share.
local function counter(step)
  local n = 0
  return function(x)
    n = n + step
    return n + x
  end, function()
    return n
  end
end
local add, get = counter(3)
local function apply(fn, x)
  local r = fn(x)
  return r + 1
end
local s = 0
for i = 1, 600 do
  s = s + apply(add, i)
  s = s - get()
end
