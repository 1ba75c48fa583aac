-- Trace compilation alone: makes the same loops, with inlined calls, side exits,
-- FFI and string code, hot and flushes them again and again.
local size = tonumber(arg[1]) or 10
local ffi = require("ffi")
local points = ffi.new("struct { double x, y; }[16]")

local function twice(x)
  return x + x
end
local function mix(a, b)
  return twice(a) - b % 7
end
local Counter = {}
Counter.__index = Counter
function Counter:add(n)
  self.total = (self.total + mix(n, self.total)) % 1000003
  return self
end

local function inlined(counter)
  for i = 1, 80 do
    counter:add(i):add(i + 1)
  end
end
local function branches()
  local n = 0
  for i = 1, 160 do
    if i % 3 == 0 then
      n = n + twice(i)
    elseif i % 5 == 0 then
      n = n - mix(i, n)
    else
      n = n + 1
    end
  end
  return n
end
local function nested()
  local t, n = {}, 0
  for i = 1, 12 do
    for k = 1, 12 do
      t[k] = i * k
      n = n + t[k] % (i + 1)
    end
  end
  return n
end
local function cdata()
  local n = 0
  for i = 1, 90 do
    local p = points[i % 16]
    p.x, p.y = i, p.x + 1
    n = n + p.y
  end
  return n
end
local function strings()
  local n = 0
  for i = 1, 90 do
    local s = "k" .. i % 9
    n = n + #s + s:byte(2)
  end
  return n
end

local sum = 0
for i = 1, size * 6 do
  local counter = setmetatable({ total = i }, Counter)
  inlined(counter)
  sum = sum + counter.total + branches() + nested() + cdata() + strings()
  jit.flush()
end
print(sum)
