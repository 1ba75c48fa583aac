-- Stack growth, garbage collection at every step, strings, tables, upvalues.
collectgarbage("setpause", 100); collectgarbage("setstepmul", 400)
local function grow(n, ...) if n == 0 then return select("#", ...) end return grow(n - 1, n, ...) end
assert(grow(40) == 40)
local function recurse(n) if n == 0 then return 0 end local a, b, c, d, e, f = 1, 2, 3, 4, 5, 6; return recurse(n - 1) + 1 end
assert(recurse(150) == 150)
local big = coroutine.wrap(function() return recurse(100) end); assert(big() == 100)
local keep = {}
for i = 1, 60 do
  local t = { i, i + 1, x = i, ["k" .. i] = { i } }
  t[#t + 1] = i; t.y = "s" .. i .. "t"; t[i * 3] = true
  for k, v in pairs(t) do local _ = k end
  keep[i % 7] = t
  local up = i
  local function inc() up = up + 1; keep.f = inc; return up end
  inc(); inc()
  local s = ""
  for j = 1, 5 do s = s .. j .. "," end
  keep.s = s:rep(4)
  if i % 20 == 0 then collectgarbage("step") end
end
local upv = {}
local function setup() upv = {}; upv = "str" .. #keep; upv = { 1 }; upv = nil; upv = 5; upv = true end
for i = 1, 10 do setup(); collectgarbage("step", 1) end
local weak = setmetatable({}, { __mode = "kv" })
for i = 1, 30 do weak[i] = {}; weak[{}] = i end
collectgarbage()
local a = {}; for i = 1, 300 do a[i] = i end; for i = 300, 1, -1 do a[i] = nil end
local s = {}; for i = 1, 50 do s[#s + 1] = tostring(i) end; assert(#table.concat(s) == 91)
goto done
::done::
