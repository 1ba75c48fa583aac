-- Errors through every kind of frame.
local function thrower(depth, what)
  if depth == 0 then error(what) end
  return (thrower(depth - 1, what))
end
local handler_log = 0
local function handler(e) handler_log = handler_log + 1; return debug.traceback(tostring(e), 2) end
for round = 1, 6 do
  assert(not pcall(thrower, 5, "x"))
  assert(not pcall(error)); assert(not pcall(error, nil)); assert(not pcall(error, { code = 1 }))
  assert(not xpcall(function() thrower(3, "y") end, handler))
  assert(not xpcall(function() local x = nil; return x.y end, handler))
  assert(not xpcall(function() error("in handler") end, function(e) error("again") end))
  assert(pcall(pcall, error, "z")); assert(select(2, pcall(pcall, pcall, error)) == true)
  local ok, e = pcall(function() return {} + 1 end); assert(not ok)
  ok, e = pcall(function() return #nil end); ok, e = pcall(function() return nil .. "x" end)
  ok, e = pcall(function() local t = setmetatable({}, { __index = function() error("idx") end }); return t.x end); assert(not ok)
  ok, e = pcall(table.sort, { 3, 2, 1, 5, 4 }, function(a, b) if a == 5 or b == 5 then error("sort") end return a < b end); assert(not ok)
  ok, e = pcall(string.gsub, "abc", "%w", function(c) if c == "b" then error("gsub") end return c end); assert(not ok)
  ok, e = pcall(function() for i = "a", 2 do end end); assert(not ok)
  ok, e = pcall(function() ("x")() end); assert(not ok)
  ok, e = pcall(load, function() error("reader") end)
  local co = coroutine.create(function() error("in coroutine") end)
  ok, e = coroutine.resume(co); assert(not ok)
  co = coroutine.wrap(function() pcall(function() coroutine.yield(1); error("after yield") end); coroutine.yield(2); error("out") end)
  assert(co() == 1 and co() == 2); assert(not pcall(co))
  ok, e = pcall(string.rep, "x", -1); assert(ok)
  ok, e = pcall(setmetatable, setmetatable({}, { __metatable = 1 }), {}); assert(not ok)
  assert(select("#", pcall(function() return 1, 2, 3 end)) == 4)
  assert(select("#", xpcall(function(...) return ... end, handler, 1, 2)) >= 1)
end
