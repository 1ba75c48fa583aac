-- The table library, raw access, iteration, growth of both parts.
local function cat(t, n) local r = {}
    for i = 1, n or #t do r[i] = tostring(t[i]) end
  return table.concat(r, " ") end
local t = { 5, 2, 8, 1, 9 }
table.sort(t)
print(cat(t))
table.sort(t, function(a, b) return a > b end)
print(cat(t))
local w = { "pear", "Apple", "fig", "10", "9" }
table.sort(w)
print(cat(w))
table.sort(w, function(a, b) return #a < #b or #a == #b and a < b end)
print(cat(w))
print(pcall(table.sort, { 3, "x", 1 }))
print(pcall(table.sort, { 3, 2, 1 }, function() error("cmp", 0) end))
print(pcall(table.sort, { 1, 2, 3, nil, 5 }))
do local big = {} for i = 1, 1000 do big[i] = (i * 7919) % 1009 end
  table.sort(big) local ok = true for i = 2, #big do ok = ok and
    big[i - 1] <= big[i] end print(ok, big[1], big[1000])
  for _, f in ipairs { function() return true end, function(a, b)
      return a <= b end, function(a, b) return (a + b) % 2 == 0 end } do
    local u = {} for i = 1, 60 do u[i] = i * 17 % 61 end
    local ok2, e = pcall(table.sort, u, f) print(ok2, ok2 and cat(u) or e) end
  local n = 0
  for i = 1, 40 do local u = {} for j = 1, i do u[j] = { k = j * 31 % i } end
    table.sort(u, function(a, b) n = n + 1 return a.k < b.k end)
      for j = 2, i do assert(u[j - 1].k <= u[j].k) end end
  print("compared", n) end
print(table.concat({ 1, 2, 3 }), table.concat({ 1, 2, 3 }, ", "),
  table.concat({ 1, 2, 3 }, "-", 2), table.concat({ 1, 2, 3 }, "-", 2, 3),
  table.concat({}, "x"), table.concat({ 1 }, "x", 3))
print(pcall(table.concat, { 1, nil, 3 }, "", 1, 3))
print(pcall(table.concat, {}, "", 1, 2))
local q = {}
table.insert(q, "a")
table.insert(q, 1, "b")
table.insert(q, 3, "c")
print(cat(q), table.remove(q, 1), table.remove(q), cat(q), table.remove(q),
  table.remove(q), #q)
print(pcall(table.insert, q))
print(pcall(table.insert, q, 1, 2, 3))
print(pcall(table.insert, nil, 1))
print(table.remove({ 1, 2, 3 }, 5), table.remove({}, 1))
for i = 1, 300 do table.insert(q, i) if i % 3 == 0 then table.insert(q, 1, -i)
  end if i % 4 == 0 then table.remove(q, 2) end
    if i % 5 == 0 then table.remove(q) end end
print(#q, q[1], q[#q], q[math.floor(#q / 2)])
print(table.maxn({ 1, 2, [10.5] = 1, [7] = 1 }), table.maxn {}, table.getn and
  table.getn { 1, 2 })
table.foreach({ 1, 2 }, print)
table.foreachi({ "x", "y" }, print)
print(table.foreachi({ 1, 2, 3 }, function(i) if i == 2 then
    return "stopped" end end))
if table.move then print(cat(table.move({ 1, 2, 3 }, 1, 3, 2)),
  cat(table.move({ 1, 2, 3 }, 2, 3, 1)), cat(table.move({ 1, 2 }, 1, 2, 1, { 9,
  9, 9 }))) else print("no move") end
do local new, clear = require("table.new"), require("table.clear")
  local n = new(50, 20) for i = 1, 200 do n[i] = i n["k" .. i % 30] = i end
  print(#n, n.k7) clear(n) print(#n, next(n), n.k7) n[1] = 1 print(#n)
  print(pcall(new, "x")) print(pcall(clear, 1)) local s = 0 for _ = 1, 100 do
    local m = new(4, 2) m[1], m.x = 1, 2 s = s + #m + m.x clear(m)
    s = s + #m end print(s) end
for _, n in ipairs { "isarray", "isempty", "nkeys", "clone" } do
  local ok, f = pcall(require, "table." .. n)
    if ok and type(f) == "function" then
    local r, r2 = f { 1, 2 }, f { x = 1, [2] = 2 }
    print(n, type(r) == "table" and cat(r) or r, type(r2) == "table" and
    r2.x or r2, pcall(f, 1)) else print("no table." .. n) end end
-- raw access
local mt = setmetatable({ 1, 2 }, { __index = function()
  return "idx" end, __newindex = function() error("ni") end, __eq = function()
  return true end })
print(mt.x, rawget(mt, "x"), rawset(mt, "x", 5) == mt, mt.x, rawequal(mt,
  setmetatable({}, getmetatable(mt))), rawequal("a", "a"), rawlen and
  rawlen(mt) or 2)
local s = 0
for i = 1, 300 do s = s + (rawget(mt, i % 3) or 0) rawset(mt, 3 + i % 2, i) end
print(s, rawget(mt, 3), rawget(mt, 4))
print(pcall(rawget, 1))
print(pcall(rawset, {}, nil, 1))
print(pcall(rawset, {}, 0 / 0, 1))
-- keys of every kind, growth, holes, negative, large, float
local k = {}
for i = -50, 50 do k[i] = i end
for i = 1, 20 do k[i + 0.5] = i k[2 ^ 40 + i] = i k["s" .. i] = i end
k[true] = 1
k[false] = 2
k[print] = 3
k[1e300] = 4
k[-0.0] = "zero"
local n, sum = 0, 0
for kk, v in pairs(k) do n = n + 1 if type(v) == "number" then sum = sum + v
  end end
print(n, sum, #k, k[0], k[2 ^ 40 + 3], k[1e300], k[true], k[2.5])
for i = 1, 50, 2 do k[i] = nil end
n = 0
for _ in pairs(k) do n = n + 1 end
print(n, k[1], k[2], k[49])
local lens = {}
for i = 1, 40 do local h = {} for j = i, 1, -1 do h[j] = j end lens[i] = #h end
print(cat(lens))
local nilt = { n = 1, nil, 2, nil }
print(nilt[2], nilt.n)
print(#{ n = 1 }, #{ 1, 2, 3, nil }, #{ (function() return 1, 2, 3 end)() })
-- next, pairs, ipairs; clearing while iterating; iteration over array order
local d = {}
for i = 1, 200 do d[i] = i d["k" .. i] = i end
n = 0
for kk in pairs(d) do d[kk] = nil n = n + 1 end
print(n, next(d))
print(next({}), next({ 10 }), next({ 10 }, 1), type(next), select("#", next({
  })))
print(pcall(next, {}, "no"))
print(pcall(next))
for i, v in ipairs { 1, 2, nil, 4 } do io.write(i, "=", v, " ") end
print()
local order = {}
for i, v in pairs { "a", "b", "c", "d" } do order[#order + 1] = i .. v end
print(cat(order))
for kk, v in next, { x = 1 } do print(kk, v) end
do local it, st, c = pairs({}) print(it == next, type(st), c)
  it, st, c = ipairs({}) print(type(it), type(st), c) end
local cnt = 0
for r = 1, 100 do for i, v in ipairs { r, r, r } do cnt = cnt + v * i end
    for _, v in pairs { a = r, b = r } do cnt = cnt + v end
  local key, val = next({ [r] = r }) cnt = cnt + key + val end
print(cnt)
-- constructors
local function three() return 1, 2, 3 end
print(#{ three() }, #{ three(), three() }, #{ (three()) }, ({ three(),
  x = 1 })[3], ({ [1] = "a", "b" })[1])
local c = {}
for i = 1, 150 do local v = { i, i + 1, name = "n" .. i, [i + 10] = true, {
  i } } c[i] = v[2] + v[3][1] + #v.name end
print(c[1], c[150], #c)
local long = {}
for i = 1, 130 do long[i] = tostring(i) end
print(#loadstring("return {" .. table.concat(long, ",") .. "}")(),
  #loadstring("return {" .. table.concat(long, ",") .. ", ...}")(1, 2, 3))
print(unpack({ 1, 2, 3 }, -1, 1))
