-- The debug library: frames, locals, upvalues, hooks, tracebacks.
local function clean(s) return (tostring(s):gsub("0x%x+", "ADDR")) end
local function info(f, what) local i = debug.getinfo(f, what) local k = {}
    for n, v in pairs(i) do if n ~= "func" and n ~= "activelines" then
      k[#k + 1] = n .. "=" .. clean(v) end end table.sort(k)
  return table.concat(k, " ") end
local up1, up2 = 1, "two"
local function target(a, b, ...) local c = a + up1 do local d = up2 end
  return debug.getinfo(1, "nSluf"), c end
print(info(target))
print(info(print))
print(info(target, "S"))
print(info(string.format, "u"))
print(info(1))
local i = target(1, 2, 3)
print(i.currentline, i.name, i.namewhat, i.func == target)
print(pcall(debug.getinfo, target, ">S"))
print(pcall(debug.getinfo, 1, "X"))
print(debug.getinfo(100))
print(pcall(debug.getinfo, "x"))
local al = {}
for l in pairs(debug.getinfo(target, "L").activelines) do al[#al + 1] = l end
table.sort(al)
print(table.concat(al, " "))
local t = { method = function(self) return debug.getinfo(1, "n") end }
i = t:method()
print(i.name, i.namewhat)
i = t.method(t)
print(i.name, i.namewhat)
function Global() return debug.getinfo(1, "n") end
i = Global()
print(i.name, i.namewhat)
i = setmetatable({}, { __index = function()
  return debug.getinfo(1, "n") end }).x
print(i.name, i.namewhat)
i = (function() return (debug.getinfo(1, "n")) end)()
print(i.name, i.namewhat)
for x in function(_, c) if not c then
      return debug.getinfo(1, "n") end end do print(x.name, x.namewhat) end
local function tailed() return debug.getinfo(1, "nSl") end
local function tc() return tailed() end
i = tc()
print(i.name, i.currentline)
i = select(2, pcall(function() return (debug.getinfo(1, "n")) end))
print(i.name)
local function locals(a, b, ...) local x, y = "x", { 1 } for k = 1, 1 do
    local inner = k local r = {} for n = 1, 20 do
      local nm, v = debug.getlocal(1, n)
      -- How many temporaries there are depends on what was compiled when.
      if not nm or nm == "(*temporary)" then break end
      r[#r + 1] = nm .. ":" .. type(v) end print(table.concat(r, " ")) end
  print(debug.getlocal(1, -1), debug.getlocal(1, -3))
  print(debug.setlocal(1, 1, "changed"), a, debug.setlocal(1, 99, 1),
  debug.setlocal(1, 3, "xx"), x) end
for _ = 1, 3 do locals(1, 2, "v1", "v2") end
print(debug.getlocal(locals, 1), debug.getlocal(locals, 2),
  debug.getlocal(locals, 3))
print(pcall(debug.getlocal, 100, 1))
local co = coroutine.create(function(p, q) local r = p + q coroutine.yield(r)
  return p, r end)
coroutine.resume(co, 3, 4)
print(debug.getlocal(co, 1, 1))
print(debug.getlocal(co, 1, 3))
print(debug.setlocal(co, 1, 3, "set"))
print(coroutine.resume(co))
print(info(1, "S"), pcall(debug.getinfo, co, 0))
print(debug.getupvalue(target, 1))
print(debug.getupvalue(target, 2))
print(debug.getupvalue(target, 9))
print(debug.setupvalue(target, 1, 10), up1, target(1).name)
print(debug.getupvalue(string.gmatch("x", "x"), 1))
local function share() return up1 end
local function other() return up2 end
print(debug.upvalueid(target, 1) == debug.upvalueid(share, 1),
  debug.upvalueid(target, 2) == debug.upvalueid(share, 1))
debug.upvaluejoin(other, 1, share, 1)
print(other())
print(pcall(debug.upvalueid, target, 99))
print(pcall(debug.upvaluejoin, print, 1, target, 1))
print(debug.getmetatable("").__index == string, debug.getregistry()[1] == nil,
  type(debug.getregistry()), debug.getfenv(target) == _G,
  debug.getuservalue and debug.getuservalue(1))
local u = newproxy()
print(debug.setmetatable(u, { __index = { f = 1 } }) == u, u.f)
-- tracebacks
local function l3() error("deep") end
local function l2() l3() return 1 end
local function l1() l2() return 1 end
print(clean(select(2, xpcall(l1, debug.traceback))))
print(clean(debug.traceback("msg", 1)))
print(clean(debug.traceback("msg", 2)))
print(debug.traceback("m", 50))
print(debug.traceback({}) ~= nil, debug.traceback(nil))
print(clean(debug.traceback(co)))
local cs = coroutine.create(function() local function y() coroutine.yield() end
  y() end)
coroutine.resume(cs)
print(clean(debug.traceback(cs)), clean(debug.traceback(cs, "m", 1)))
local function rec(n) if n == 0 then return clean(debug.traceback("rec")) end
  local r = rec(n - 1) return r end
print(rec(40))
print(clean(select(2, pcall(string.gsub, "x", "x", function()
  error(debug.traceback("in gsub")) end))))
-- hooks: counts depend on no address; what was hooked is printed
local function hooked(mask, count, f) local ev, lines = {}, {}
  debug.sethook(function(e, l) ev[e] = (ev[e] or 0) + 1
      if l then lines[#lines + 1] = l end end, mask, count) f() debug.sethook()
  local r = {} for k, v in pairs(ev) do r[#r + 1] = k .. "=" .. v end
  table.sort(r) print(mask, count, table.concat(r, " "), table.concat(lines,
  ",")) end
local function work() local s = 0 for n = 1, 3 do
    s = s + n
    if n == 2 then s = s * 2 end
  end
  return s
end
jit.off()
jit.flush()
hooked("l", 0, work)
hooked("c", 0, work)
hooked("r", 0, work)
hooked("crl", 0, function() pcall(work) string.rep("x", 2) end)
hooked("", 1, work)
hooked("", 10, function() for _ = 1, 100 do work() end end)
hooked("l", 7, work)
jit.on()
print(debug.gethook())
local fn = function() end
debug.sethook(fn, "cr", 5)
print(debug.gethook() == fn, select(2, debug.gethook()))
debug.sethook()
print(pcall(function()
  debug.sethook(function() debug.sethook() error("from hook", 0) end, "l")
  local x = 1
  return x
end))
debug.sethook()
 local c2 = coroutine.create(function() work() end)
 local hits = 0
 debug.sethook(c2, function() hits = hits + 1 end, "l")
 coroutine.resume(c2)
 debug.sethook()
 print(hits > 0, debug.gethook(c2) ~= nil)
 local budget = 0
 local ok, e = pcall(function() debug.sethook(function() budget = budget + 1
       if budget > 50 then debug.sethook() error("budget", 0) end end, "", 1000)
   jit.off() while true do end end)
 debug.sethook()
 jit.on()
 print(ok, e, budget)
 local s = 0
 for n = 1, 300 do s = s + debug.getinfo(1,
   "l").currentline + #debug.traceback("x") % 1 end
 print(s > 0)
