-- Every metamethod, in every way that leads to it, repeated many times so that
-- traces of them are compiled as well.

local log = {}
local function note(...)
  local t = {}
  for i = 1, select("#", ...) do t[i] = tostring((select(i, ...))) end
  log[#log + 1] = table.concat(t, " ")
end
local function flush(title)
  print(title, #log, table.concat(log, "; "))
  log = {}
end

-- Arithmetic: left operand, right operand, constants on either side.
local V = {}
V.__index = V
local function vec(x) return setmetatable({ x = x }, V) end
local function raw(a) return type(a) == "table" and a.x or a end
V.__add = function(a, b) return vec(raw(a) + raw(b)) end
V.__sub = function(a, b) return vec(raw(a) - raw(b)) end
V.__mul = function(a, b) return vec(raw(a) * raw(b)) end
V.__div = function(a, b) return vec(raw(a) / raw(b)) end
V.__mod = function(a, b) return vec(raw(a) % raw(b)) end
V.__pow = function(a, b) return vec(raw(a) ^ raw(b)) end
V.__unm = function(a, b) return vec(-a.x), rawequal(a, b) end
V.__concat = function(a, b) return vec(raw(a) .. "," .. raw(b)) end
V.__tostring = function(a) return "<" .. tostring(a.x) .. ">" end
for _ = 1, 120 do
  local a, b = vec(7), vec(3)
  local r = { a + b, a - b, a * b, a / b, a % b, a ^ b, -a, a .. b,
    a + 1, a - 1, a * 2, a / 2, a % 2, a ^ 2, a .. "s", a .. 1,
    1 + b, 1 - b, 2 * b, 2 / b, 2 % b, 2 ^ b, "s" .. b, 1 .. b,
    "p" .. "q" .. b, b .. "p" .. "q", "p" .. b .. "q" }
  for i = 1, #r do note(r[i]) end
  local s = table.concat(log, " ")
  log = { s }
  if _ < 120 then log = {} end
end
flush("arith")

-- Comparison. __eq only for two tables with the same handler.
local C = {}
C.__eq = function(a, b) note("eq", a.n, b.n) return a.n == b.n end
C.__lt = function(a, b) note("lt", a.n, b.n) return a.n < b.n end
C.__le = function(a, b) note("le", a.n, b.n) return a.n <= b.n end
local function cmp(n) return setmetatable({ n = n }, C) end
local a, b, c = cmp(1), cmp(2), cmp(1)
print(a == b, a == c, a ~= b, a ~= c, a == a, a == 1, a == nil, a == "x")
print(a < b, b < a, a <= b, b <= a, a > b, a >= b, not (a < b), not (a <= b))
flush("compare")
do -- without __le, "a <= b" is "not (b < a)"
  local L = { __lt = function(x, y) note("lt", x[1], y[1])
    return x[1] < y[1] end }
  local x, y = setmetatable({ 1 }, L), setmetatable({ 2 }, L)
  print(x <= y, y <= x, x >= y, y >= x, x <= x)
  flush("le by lt")
  print(pcall(function() return x < 1 end))
  print(pcall(function() return {} < {} end))
  print(pcall(function() return 1 < "2" end))
end
do -- truth values of comparison handlers are normalised
  local T = { __eq = function() return 0 end, __lt = function() return nil end,
    __le = function() return "yes", 2 end }
  local x, y = setmetatable({}, T), setmetatable({}, T)
  print(x == y, x < y, x <= y)
end
local hits = 0
for i = 1, 300 do
  local x, y = cmp(i % 5), cmp(i % 7)
  if x == y then hits = hits + 1 end
  if x < y then hits = hits + 10 end
  if x <= y then hits = hits + 100 end
end
print("hits", hits, #log)
log = {}

-- __index and __newindex: functions, tables, chains of both, integer keys.
local base = { deep = "base", [1] = "one" }
local l1 = setmetatable({}, { __index = base })
local l2 = setmetatable({}, { __index = l1 })
local l3 = setmetatable({}, { __index = function(t, k)
  if k == "fn" then return "by function", "dropped" end
  return l2[k]
end })
local sum = ""
for i = 1, 200 do
  local v = l3.deep .. l3[1] .. l3.fn
  if i == 200 then sum = v end
end
print(sum, l3.none, l3[2], rawget(l3, "deep"))
local store = {}
local w1 = setmetatable({}, { __newindex = store })
local w2 = setmetatable({}, { __newindex = w1 })
local w3 = setmetatable({}, { __newindex = function(t, k, v)
  rawset(t, k, v * 2)
end })
for i = 1, 200 do
  w2[i] = i
  w2["k" .. i % 10] = i
  w3[i] = i
end
print(#store, store.k3, rawget(w2, 1), rawget(w1, 1), w3[200], #w3)
w3[200] = 7 -- exists now: no handler
print(w3[200])
do
  local loop = {}
  setmetatable(loop, { __index = loop, __newindex = loop })
  print(pcall(function() return loop.x end))
  print(pcall(function() loop.x = 1 end))
end
do -- a chain whose length is beyond the limit, and one below it
  for _, n in ipairs { 90, 150 } do
    local t = { v = "end" }
    for _ = 1, n do t = setmetatable({}, { __index = t }) end
    print(n, pcall(function() return t.v end))
  end
end

-- __call: chains are not followed, varargs and results pass through.
local callee = setmetatable({}, { __call = function(self, ...)
  return select("#", ...), ...
end })
print(callee())
print(callee(nil))
print(callee(1, nil, 3, nil))
print((callee(1, 2)))
print(pcall(callee, "p", "q"))
print(select("#", callee(callee(1, 2, 3))))
local function tail(...) return callee(...) end
print(tail("a", "b"))
local t2 = setmetatable({}, { __call = callee })
print(pcall(t2, 1))
local total = 0
for i = 1, 300 do total = total + callee(i, i) end
print(total)
print(pcall(function() local n = nil; n() end))
print(pcall(function() local t = {}; t.x.y() end))
print(pcall(function() local t = {}; t:method() end))
print(pcall(function() undefined_global() end))
print(pcall(function() ("x")() end))

-- __len on tables is honoured only in a 5.2 build; strings have none.
local len = setmetatable({ 1, 2, 3 }, { __len = function() return 42 end })
print(#len, #"four", pcall(function() return #nil end))
print(pcall(function() return #12 end))
local u = newproxy(true)
getmetatable(u).__len = function() return 17 end
getmetatable(u).__index = function(_, k) return "u." .. k end
getmetatable(u).__newindex = function(_, k, v) note("set", k, v) end
getmetatable(u).__call = function(_, x) return "called", x end
getmetatable(u).__tostring = function() return "proxy" end
getmetatable(u).__unm = function() return "neg" end
u.field = 9
print(#u, u.abc, u(5), tostring(u), -u)
flush("proxy")
print(type(newproxy()), getmetatable(newproxy()), pcall(newproxy, 1))
local u2 = newproxy(u)
print(getmetatable(u2) == getmetatable(u), #u2)

-- __tostring, __metatable, __name.
print(pcall(tostring, setmetatable({}, { __tostring = function()
  return 1 end })))
local guarded = setmetatable({}, { __metatable = "locked" })
print(getmetatable(guarded), pcall(setmetatable, guarded, {}))
print(getmetatable("").__index == string, getmetatable("x").__name)
print(pcall(setmetatable, 1, {}), pcall(setmetatable, {}, 1))

-- __pairs and __ipairs exist in a 5.2 build only: either is printed as is.
local P = setmetatable({ 10, 20 }, {
  __pairs = function(t) return function(_, k) if not k then
        return 1, "P" end end, t end,
  __ipairs = function(t) return function(_, k) if k == 0 then
        return 1, "I" end end, t, 0 end })
for k, v in pairs(P) do print("pairs", k, v) end
for k, v in ipairs(P) do print("ipairs", k, v) end

-- Metatables of the basic types.
debug.setmetatable(1, { __index = { twice = function(n) return n * 2 end },
  __call = function(n, m) return n + m end, __len = function(n) return n end })
local acc = 0
for i = 1, 200 do acc = acc + (i):twice() + (i)(1) end
print(acc, #5)
debug.setmetatable(1, nil)
debug.setmetatable(nil, { __index = function(_, k) return "nil." .. k end,
  __add = function(x, y) return tostring(x) .. "+" .. tostring(y) end })
local none
print(none.x, none + 1, 1 + none)
debug.setmetatable(nil, nil)
debug.setmetatable(print, { __index = function(_, k) return "f." .. k end,
  __concat = function() return "fcat" end })
print(print.x, print .. "y", "y" .. print)
debug.setmetatable(print, nil)
debug.setmetatable(true, { __unm = function(x) return not x end })
print(-true, -false)
debug.setmetatable(true, nil)
print(pcall(function() return -true end))
print(pcall(function() return {} .. "x" end))
print(pcall(function() return {} + 1 end), pcall(function() return "x" + 1 end))

-- A metatable that changes while a hot loop uses it.
local m = { __index = function(_, k) return k end }
local obj = setmetatable({}, m)
local out = {}
for i = 1, 400 do
  if i == 150 then m.__index = { [151] = "t" } end
  if i == 250 then setmetatable(obj, nil) end
  if i == 350 then setmetatable(obj, { __index = function() return "z" end }) end
  local v = obj[i]
  if i % 50 == 0 or i == 151 then out[#out + 1] = tostring(v) end
end
print(table.concat(out, " "))

-- Handlers that raise, yield and call back.
local E = setmetatable({}, { __index = function(_, k) error("no " .. k, 2) end,
  __add = function() error({ code = 3 }) end })
print(pcall(function() return E.field end))
print(select(2, pcall(function() return E + 1 end)).code)
local Y = setmetatable({}, {
  __index = function(_, k) return coroutine.yield(k) end,
  __add = function(_, k) return coroutine.yield(k) end,
  __lt = function() return coroutine.yield("lt") end,
  __concat = function(_, k) return coroutine.yield("cat") end,
  __eq = function() return coroutine.yield("eq") end,
  __newindex = function(_, k, v) coroutine.yield(k) end,
  __call = function(_, ...) return coroutine.yield(...) end })
local Y2 = setmetatable({}, getmetatable(Y))
local co = coroutine.wrap(function()
  local r = { Y.idx, Y + 5, Y < Y2, Y .. "x" .. "y", Y == Y2 }
  Y.new = 1
  r[#r + 1] = Y("called")
  if Y < Y2 then r[#r + 1] = "then" else r[#r + 1] = "else" end
  for i = 1, #r do r[i] = tostring(r[i]) end
  return table.concat(r, ",")
end)
local v = co()
local n = 0
while v and n < 20 do
  n = n + 1
  note(v)
  if #log > 8 then break end
  v = co(n)
end
flush("yield in handlers")
