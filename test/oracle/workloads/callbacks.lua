-- Lua called back from C: sort, gsub, load, foreach, tostring, require,
-- finalizers, hooks, and C functions that call each other through Lua.
local count = 0
for round = 1, 3 do
  local t = {}; for i = 1, 24 do t[i] = (i * 7919) % 101 end
  table.sort(t, function(a, b) count = count + 1; return a < b end)
  local outer = {}
  for i = 1, 6 do outer[i] = i end
  table.sort(outer, function(a, b)
    local inner = { 3, 1, 2 }; table.sort(inner, function(x, y) return x < y end); return a > b end)
  local s = ("the quick brown fox"):gsub("%w+", function(w) return (w:gsub(".", function(c) return c:upper() end)) end)
  assert(s == "THE QUICK BROWN FOX")
  s = ("a b c"):gsub("%w", setmetatable({}, { __index = function(_, k) count = count + 1; return k .. k end }))
  local pieces = { "return ", "function(x) ", "return x * 2 ", "end" }
  local i = 0
  local f = load(function() i = i + 1; return pieces[i] end)()
  assert(f(21) == 42)
  local name = tostring(setmetatable({}, { __tostring = function() return ("n"):rep(3) end }))
  for j = 1, 30 do
    local u = newproxy(true)
    getmetatable(u).__gc = function() count = count + 1; local x = {}; for k = 1, 3 do x[k] = k end end
  end
  collectgarbage(); collectgarbage()
  local hits = 0
  debug.sethook(function(e, l) hits = hits + 1 end, "crl")
  local function hooked(a) local b = a + 1; return b end
  for j = 1, 3 do hooked(j) end
  debug.sethook(function() hits = hits + 1 end, "", 7)
  for j = 1, 20 do hooked(j) end
  debug.sethook()
  assert(hits > 5)
  package.preload["m" .. round] = function() local M = {}; function M.f(x) return x + round end; return M end
  assert(require("m" .. round).f(1) == round + 1)
  table.foreach({ 1, 2, 3 }, function(k, v) return nil end)
  local ok = xpcall(function() table.sort({ 2, 1 }, function() error("deep") end) end, function(e) return e end)
  assert(not ok)
  local env = setmetatable({}, { __index = _G })
  setfenv(function() end, env)
  dofile("/dev/null")
end
