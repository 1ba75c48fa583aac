-- Frames that come and go in every way that is recorded: tail calls at a
-- trace's beginning and inside, of functions with variable arguments, of
-- builtins; side traces that begin deep in inlined calls; several metamethods
-- for one bytecode.
local function leaf(x, y)
  local s = x * 3
  s = s + (y or 1)
  return s % 1021
end
local function tail(x)
  x = x + 1
  return leaf(x, 2)
end
local function varying(...)
  local a, b = ...
  local c = leaf(a, b)
  c = c + tail(b)
  return c + select("#", ...)
end
local function passing(...)
  return varying(...)
end
local function deep(x)
  local y = tail(x)
  if x % 3 == 0 then
    y = y + leaf(y)
  elseif x % 5 == 0 then
    y = y - passing(x, y, 3)
  end
  return y
end
local function deeper(x)
  local y = deep(x)
  return y + leaf(x)
end
local function absolute(x)
  return math.abs(x)
end

local Text = {}
Text.__index = function(t, key)
  local n = leaf(#key)
  return n + absolute(-t[1])
end
Text.__concat = function(a, b)
  local x = type(a) == "table" and a[1] or a
  local y = type(b) == "table" and b[1] or b
  return setmetatable({ leaf(x, y) }, Text)
end
Text.__call = function(t, x)
  return passing(t[1], x)
end

local text = setmetatable({ 7 }, Text)
local function all(n)
  local s = 0
  for i = 1, n do
    s = s + deeper(i)
    local joined = text .. i .. text .. text
    s = s + joined[1] + text.other
    s = s + text(i)
    local ok, r = pcall(passing, i, s)
    s = (ok and s + r or 0) % 65521
  end
  return s
end
local function chained(n)
  if n == 0 then
    return 0
  end
  return deeper(n) + chained(n - 1)
end
for _ = 1, 3 do
  all(26)
  chained(9)
end
