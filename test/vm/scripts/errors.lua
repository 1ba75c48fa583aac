-- Error paths: pcall, xpcall, objects, handlers, overflow of every stack.

local function clean(s) return (tostring(s):gsub("0x%x+", "ADDR")) end

print(pcall(error)) print(pcall(error, nil)) print(pcall(error, "m", 0))
print(pcall(error, "m", 1)) print(pcall(error, "m", 2)) print(pcall(error, 42))
print(pcall(function() error("lvl1", 1) end))
print(pcall(function() error("lvl2", 2) end))
print(pcall(function() error(setmetatable({}, { __tostring = function()
    return "obj" end })) end))
print(pcall(error, true), pcall(error, print == nil))
print(select("#", pcall(error, nil)), select("#", pcall(function() end)))
print(pcall(pcall))
print(pcall(xpcall), pcall(xpcall, print))
print(pcall(assert, false), pcall(assert, nil, "text"), pcall(assert, false, 7))
print(assert(1, 2, 3), select("#", assert(1, nil)), pcall(assert))

-- Run-time errors name what was at fault.
local up
local tab = { sub = {} }
for i, f in ipairs {
  function() return up.x end, function() up.x = 1 end,
  function() return tab.sub.z.y end, function() tab.no.x = 1 end,
  function() up() end, function() tab.sub.f() end, function() tab:nope() end,
  function() glob() end, function() return glob.x end,
  function() local l; return l + 1 end, function() return tab + 1 end,
  function() return up .. "x" end, function() return 1 .. {} end,
  function() return -{} end, function() return #up end,
  function() return up < 1 end, function() return {} < 1 end,
  function() return {} < {} end, function() return "a" < 1 end,
  function() tab[nil] = 1 end, function() tab[0 / 0] = 1 end,
  function() return tab[nil] end, function() rawset(tab, nil, 1) end,
  function() for x = 1, "x" do end end, function() for x = "a", 2 do end end,
  function() for x = 1, 2, {} do end end, function() for x in 5 do end end,
  function() return "abc" + 1 end, function() return "0x10" + "1e1" end,
  function() return 1 / 0, -1 / 0, 5 % 0 ~= 5 % 0 end,
  function() return setmetatable({}, {}) .. "" end,
  function() string.rep() end, function() ("x"):rep({}) end,
  function() ("x"):bad() end, function() string.char(256) end,
  function() return math.floor("a") end, function() return tonumber() end,
  function() return ipairs() end, function() return next({}, "nokey") end,
  function() return setfenv(print, {}) end, function() return tostring() end,
  function() return table.concat({ 1, {}, 3 }) end,
  function() return coroutine.resume() end, function() return bit.band() end,
} do
  print(i, pcall(f))
end

-- Errors that leave hot loops and compiled code; state must be right after.
local function risky(i)
  if i % 17 == 0 then error("seventeen " .. i, 0) end
  if i % 19 == 0 then return nil + i end
  return i
end
local good, bads, lastmsg = 0, 0, nil
for i = 1, 1000 do
  local ok, v = pcall(risky, i)
  if ok then good = good + v else bads = bads + 1; lastmsg = v end
end
print(good, bads, lastmsg)
local depth = 0
local function unwind(n)
  local t = { n }
  if n == 0 then error(t) end
  local ok, e = pcall(unwind, n - 1)
  depth = depth + e[1] + 1
  error(e)
end
for _ = 1, 50 do pcall(unwind, 20) end
print(depth)

-- xpcall: the handler gets the message, returns results, and may fail, too.
print(xpcall(function() error("e", 0) end, function(m)
  return m .. "!", "dropped" end))
print(xpcall(function(...) return ... end, print, 1, 2, 3))
print(xpcall(function() local x = nil; x() end, function(m)
  return clean(debug.traceback(m)) end))
print(clean(select(2, xpcall(function() error({}) end, type))))
print(xpcall(function() error("first", 0) end, function()
  error("second", 0) end))
print(xpcall(function() error("first", 0) end, function() local n; n() end))
print(xpcall(error, function(m) return type(m) end))
print(pcall(xpcall, function() error("x", 0) end, nil))
print(xpcall(function() return coroutine.wrap(function()
    error("co", 0) end)() end,
  function(m) return "h:" .. m end))
local nested = 0
local function handler(m)
  nested = nested + 1
  local ok, e = pcall(error, "inner" .. nested, 0)
  return m .. "/" .. e
end
for _ = 1, 100 do xpcall(function() error("outer", 0) end, handler) end
print(nested, select(2, xpcall(function() error("outer", 0) end, handler)))

-- Stack overflow: plain, in a handler, in metamethods, in a coroutine, in C.
local function forever(n) return 1 + forever(n + 1) end
for _ = 1, 3 do print(pcall(forever, 1)) end
print(xpcall(forever, function(m) return "handled: " .. m end, 1))
local frames = 0
local function counted() frames = frames + 1; return 1 + counted() end
pcall(counted)
print(frames > 1000 and frames < 1e6)
print(pcall(function(...) local function f(...) return 1 + f(1, 2, ...) end
  return f() end))
-- Whether the message begins with a place depends on the heap (in both builds).
local M = setmetatable({}, {})
getmetatable(M).__index = function(t, k) return t[k .. "x"] end
print(((select(2, pcall(function() return M.a end))):gsub("^.-: ", "")))
getmetatable(M).__add = function(a, b) return a + b end
print(((select(2, pcall(function() return M + 1 end))):gsub("^.-: ", "")))
-- C calls nested in Lua calls nested in C calls. Not until they overflow:
-- LuaJIT counts slots of its own stack, and the C stack may end first.
local function viagsub(n)
  if n == 0 then error("bottom of gsub", 0) end
  return (("x"):gsub("x", function() return viagsub(n - 1) end))
end
local function viasort(n)
  table.sort({ 3, 2, 1 }, function(a, b)
    if n == 0 then error("bottom of sort", 0) end
    viasort(n - 1)
    return a < b
  end)
end
print(pcall(viagsub, 100), pcall(viasort, 100))
print(pcall(viagsub, 100))
print(#select(2, pcall(function()
  local function f() return 1 + select(2, pcall(f)) end
  return f()
end)) > 0)
local s = string.rep("(", 300) .. "1" .. string.rep(")", 300)
print(loadstring("return " .. s))
print(loadstring("return " .. string.rep("{", 300) .. string.rep("}", 300)))
print(loadstring(string.rep("do ", 300) .. string.rep("end ", 300)))
print(pcall(string.rep, "x", -1), pcall(string.rep, "abc", 1e10))
print(pcall(string.rep, "x", 2 ^ 40))

-- Memory errors are reported as such and leave the state usable.
print(pcall(function()
  local t = {}
  for i = 1, 60 do t[i] = 1 end
  local str = string.rep("y", 2 ^ 20)
  return #table.concat({ str, str, str, str })
end))
print(select(2, pcall(table.concat, { string.rep("z", 10) }, string.rep("w",
  10), 1, 1)))
do
  local okm, em = pcall(function()
    local new = require("table.new")
    return new(2 ^ 30, 0)
  end)
  print(okm, em)
  okm, em = pcall(function() local new = require("table.new")
    return new(0, 2 ^ 30) end)
  print(okm, em)
end
print(pcall(collectgarbage, "nonsense"))

-- A failing __gc is the collector's problem, not the caller's.
local ran = 0
for _ = 1, 10 do
  local p = newproxy(true)
  getmetatable(p).__gc = function() ran = ran + 1 end
end
collectgarbage() collectgarbage()
print("gc ran", ran)
do
  local p = newproxy(true)
  getmetatable(p).__gc = function() error("from __gc", 0) end
  p = nil
  print(pcall(collectgarbage))
end
-- Uncaught error: the last thing this script does, seen in the exit status.
io.stdout:flush()
error({ "table error, not a string" })
