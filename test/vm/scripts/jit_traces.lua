-- What makes and destroys traces: side exits, retries, flushes, many loops,
-- long traces, aborts, type changes; output does not tell whether it compiled.
local s = 0
for i = 1, 2000 do if i % 2 == 0 then s = s + 1 elseif i % 3 == 0 then
    s = s + 2 elseif i % 5 == 0 then s = s - 1 else s = s + 0.5 end
    if i % 97 == 0 then s = s * 2 end end
print(s)
local fl = {}
for n = 1, 150 do
  fl[n] = loadstring("local n = ... local s = 0 for i = 1, 80 do s = s + i % " ..
  (n % 7 + 1) .. " if i == n then s = s + 100 end end return s") end
local t = 0
for r = 1, 3 do for n = 1, 150 do t = t + fl[n](n) end
    if r == 2 then jit.flush() end end
print(t)
local function poly(x) return x + 1 end
local vals = { 1, 2.5, "3", -0.0, 1e300, 2 ^ 31 }
local r = 0
for i = 1, 1200 do r = (r + poly(vals[i % #vals + 1])) % 1e6 end
print(("%.6f"):format(r))
local st = {}
for i = 1, 600 do local o = { x = i, y = { z = i } }
    if i % 50 == 0 then st[#st + 1] = o end s = s + o.x + o.y.z end
print(s, #st, st[3].y.z)
local function nested(a) local n = 0 for i = 1, a do for j = 1, i do
        for k = 1, j do n = n + k end end end return n end
print(nested(30))
local function inl(n) return n < 1 and 0 or inl2(n - 1) end
function inl2(n) return n < 1 and 1 or inl(n - 1) end
for i = 1, 200 do s = s + inl(i % 20) end
print(s)
jit.off(poly)
for i = 1, 300 do poly(i) end
jit.on(poly, true)
for i = 1, 300 do poly(i) end
jit.flush(poly)
print(poly(1))
local u = require("jit.util")
print(type(u.funcinfo(poly)), u.funcinfo(poly).linedefined,
  u.funcinfo(poly).params, u.funcinfo(poly).bytecodes, u.funcinfo(print).ffid,
  type(u.funcbc(poly, 0)), u.funck(poly, 0), u.funcuvname(nested, 0))
local nilable
for i = 1, 500 do if i > 250 then nilable = i end local ok = pcall(function()
    return nilable + 1 end) if ok then s = s + 1 end end
print(s)
local g = {}
for i = 1, 400 do g[i] = i for k, v in pairs(g) do s = s + v if k > 10 then
      break end end end
print(s)
local sink = 0
for i = 1, 500 do local a, b = { i }, { i + 1 }
    if i % 100 == 0 then sink = sink + select(2, pcall(function()
      return a[1] + b[1] end)) end sink = sink + a[1] - b[1] end
print(sink)
local function up(n) if n == 0 then return 0 end return 1 + up(n - 1) end
for _ = 1, 30 do s = s + up(100) end
print(s)
local function down(n, a) if n == 0 then return a end
  return down(n - 1, a + n) end
for _ = 1, 30 do s = s + down(200, 0) end
print(s)
local str = ""
for i = 1, 300 do str = str .. (i % 10)
    if #str > 50 then str = str:sub(-20) end end
print(str)
local q = {}
for i = 1, 700 do q[#q + 1] = i if #q > 30 then table.remove(q, 1) end end
print(#q, q[1], q[30])
local maxed = 0
for i = 1, 300 do local long = i long = long + 1 long = long * 2
  long = long - 3 long = long % 1000 long = long + bit.band(i, 7)
  long = long + math.floor(long / 3) maxed = math.max(maxed, long) end
print(maxed)
for i = 1, 5 do jit.flush() local c = 0 for j = 1, 200 do c = c + j end
  print(c) end
local e = 0
for i = 1, 400 do local ok, err = pcall(error, i)
    if not ok then e = e + err end end
print(e)
local w = {}
for i = 1, 300 do w[i] = ("k"):rep(i % 7) .. i end
table.sort(w)
print(w[1], w[300])
local lm = 0
for i = 1, 1000 do lm = lm + (i > 500 and #w or -#w) + (w[i] and 1 or
  0) + (i == 999 and #w[1] or 0) end
print(lm)
local swap1, swap2 = 1, "a"
for i = 1, 301 do swap1, swap2 = swap2, swap1 end
print(swap1, swap2)
for _, o in ipairs { "hotloop=1", "hotexit=1", "maxtrace=5", "maxrecord=50",
  "maxmcode=64", "sizemcode=1", "loopunroll=1", "callunroll=1", "recunroll=1",
  "tryside=1", "instunroll=1", "minstitch=0", "-fold", "+fold", "-loop",
  "-fuse", "3" } do jit.opt.start(o) local c = 0
    for i = 1, 150 do c = c + (i % 3 == 0 and up(3) or fl[i](i)) end
  io.write(o, "=", c, " ") end
print()
print(pcall(jit.opt.start, "nonsense"))
print(pcall(jit.opt.start, "hotloop=x"))
