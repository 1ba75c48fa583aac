-- The collector: tiny pauses, steps, weak tables, finalizers, resurrection.
print(collectgarbage("setpause", 10), collectgarbage("setstepmul", 1000),
  collectgarbage("setpause", 1), type(collectgarbage("count")), type(gcinfo()))
local keep, h = {}, 0
for i = 1, 3000 do local t = { i, tostring(i), { x = i } }
  local f = function(a) return t[1] + a + i end
  keep[i % 50 + 1] = { t, f, ("s"):rep(i % 30) .. i, coroutine.wrap(function(n)
      while true do n = coroutine.yield(n + t[1]) end end) }
  local k = keep[(i * 7) % 50 + 1] if k then
    h = (h + k[2](i) + #k[3] + k[1][3].x + k[4](1)) % 1000003 end end
print(h)
local s = {}
for i = 1, 2000 do s[i % 100 + 1] = table.concat({ i, i + 1, "x" }, ",") ..
  ("%d"):format(i) end
print(#table.concat(s))
local up = {}
local function mk() local v = {} return function(x) v = { x, v and v[1] }
    return v[1] end, function() return v[1] end end
local set, get = mk()
for i = 1, 2000 do set({ i }) up[i % 20] = get end
print(get()[1])
do local o = {} local function st(x) o = x end
    for i = 1, 2000 do st({ i, tostring(i) }) end print(o[1], o[2]) end
for _, arg in ipairs { 0, 1, 10, 100 } do local n = 0 repeat n = n + 1
    local g = {} until collectgarbage("step", arg) or n > 1e5
  print("step", arg, n < 1e5) end
collectgarbage("stop")
for _ = 1, 1000 do local _ = {} end
collectgarbage("restart")
print(collectgarbage(), collectgarbage("collect"), collectgarbage("step", 1e6))
-- weak tables
for _, mode in ipairs { "k", "v", "kv", "" } do
  local w = setmetatable({}, { __mode = mode }) local strong = {}
    for i = 1, 100 do local o = {} if i % 10 == 0 then strong[#strong + 1] = o
    end w[o] = i w[i] = o w["s" .. i] = {} w[i + 0.5] = "str" end
  collectgarbage() collectgarbage() local n = { table = 0, number = 0,
  string = 0 } for k in pairs(w) do n[type(k)] = n[type(k)] + 1 end
  print(mode, n.table, n.number, n.string, #strong) end
do local e = setmetatable({}, { __mode = "k" }) for i = 1, 50 do local k = {}
    e[k] = { ref = i } end collectgarbage() print("ephemeron", next(e))
  local cache = setmetatable({}, { __mode = "v" }) local hold = {}
    for i = 1, 500 do local v = cache[i % 37] or { i } cache[i % 37] = v
      if i % 3 == 0 then hold[i % 11] = v end
      if i % 100 == 0 then collectgarbage() end end collectgarbage()
  local n = 0 for _ in pairs(cache) do n = n + 1 end print(n > 0, n <= 11) end
-- finalizer order is the reverse of creation; resurrection runs once
collectgarbage()
collectgarbage("stop")
local order = {}
for i = 1, 12 do local p = newproxy(true) getmetatable(p).__gc = function()
    order[#order + 1] = i end end
collectgarbage()
collectgarbage()
print(table.concat(order, " "))
collectgarbage("restart")
local saved
local function rz() local p = newproxy(true) getmetatable(p).__gc = function(o)
    saved = o end end
rz()
collectgarbage()
collectgarbage()
print(type(saved))
saved = nil
collectgarbage()
collectgarbage()
print(saved)
do local n = 0 local function again() local p = newproxy(true)
    getmetatable(p).__gc = function() n = n + 1
        if n < 5 then again() end end end again()
    for _ = 1, 12 do collectgarbage() end print("chain", n) end
local gcs = 0
local function churn() local p = newproxy(true)
  getmetatable(p).__gc = function() gcs = gcs + 1 local t = {}
      for i = 1, 10 do t[i] = { i } end collectgarbage("step") end end
for i = 1, 500 do churn() local x = { i, { i } } end
collectgarbage()
collectgarbage()
print(gcs)
local okc = coroutine.wrap(function() for i = 1, 100 do churn()
    coroutine.yield() end return "done" end)
local r
repeat r = okc() until r
print(r)
do local p = newproxy(true) getmetatable(p).__gc = function()
    coroutine.yield() end p = nil print(pcall(collectgarbage)) end
do local cdata = require("ffi") local n = 0
    for i = 1, 300 do cdata.gc(cdata.new("int[4]"), function()
      n = n + 1 end) end collectgarbage() collectgarbage() print(n) end
-- stacks grow and shrink under a busy collector
local function deep(n, t) if n == 0 then collectgarbage("step", 1)
    return #t end local u = { n } return deep(n - 1, u) + #u + (t and 0 or 1)
  end
for _, n in ipairs { 10, 2000, 20, 5000, 5 } do print(n, deep(n, {}))
  collectgarbage() end
local big = {}
for i = 1, 60 do big[i] = coroutine.create(function(n) local function g(k)
        if k == 0 then coroutine.yield(1) return 0 end return 1 + g(k - 1) end
    return g(n) end) coroutine.resume(big[i], i * 20) end
collectgarbage()
collectgarbage()
local sum = 0
for i = 1, 60 do local _, v = coroutine.resume(big[i]) sum = sum + v end
print(sum)
for _ = 1, 5 do local t = {} for i = 1, 5000 do t[i] = i t["k" .. i] = i end
  t = nil collectgarbage() end
local final = newproxy(true)
getmetatable(final).__gc = function() io.write("finalized at close\n") end
KEEP = final
