-- Varargs of every shape, multiple results, tail calls.

local function count(...) return select("#", ...) end
local function pass(...) return ... end
local function first(...) local a = ... return a end
local function pair(...) local a, b = ... return a, b end
local function last(...) return (select(select("#", ...), ...)) end

print(count(), count(nil), count(nil, nil), count(1, 2, 3))
print(first(), first(nil), first(7, 8), pair(1), pair(1, 2, 3))
print(pass(), "after", pass(1, 2), "mid", pass(3, 4))
print((pass(1, 2)), #{ pass(1, 2, 3) }, #{ pass(1, 2), pass(1, 2) })
print(last(1, 2, 3), pcall(last))
print(select(2, "a", "b", "c"), select(-1, "a", "b", "c"), select(-3, "a", "b",
  "c"))
print(pcall(select, 0, 1), pcall(select, -5, 1))
print(select("#"), select(1), select(5, 1, 2))

-- Hot loops over each shape.
local function sum(...)
  local s = 0
  for i = 1, select("#", ...) do s = s + (select(i, ...)) end
  return s
end
local function packed(...)
  local t, s = { ... }, 0
  for i = 1, #t do s = s + t[i] end
  return s
end
local function rec(n, ...)
  if n == 0 then return select("#", ...), ... end
  return rec(n - 1, n, ...)
end
local function fixed(a, b, ...) return b, a, ... end
local t = 0
for i = 1, 200 do
  t = t + sum() + sum(i) + sum(i, i) + packed(i, 1, 2) + (rec(5, i))
  local a, b, c, d = fixed(i, 2, 3)
  t = t + a + b + c + (d or 0)
  a, b, c = fixed(i)
  t = t + (a or 0) + b + (c or 1)
end
print(t)
print(rec(10, "x"))
print(fixed(), fixed(1), fixed(1, 2, nil, nil))

-- unpack, with holes, ranges and too many results.
print(unpack({ 1, 2, 3 }), unpack({ 1, nil, 3 }, 1, 3), unpack({ 1, 2, 3 }, 2))
print(unpack({ 1, 2, 3 }, 2, 2), unpack({}, 1, 2), unpack({ 1 }, 2, 1))
print(pcall(unpack, {}, 1, 1e7), pcall(unpack, {}, 1, 1e6))
print(select("#", unpack({}, 1, 200)), select("#", unpack({}, 1, 7000)))
print(pcall(unpack), pcall(unpack, 1))
local big = {}
for i = 1, 250 do big[i] = i end
print(sum(unpack(big)), packed(unpack(big)), select(250, unpack(big)))
print(math.max(unpack(big)), string.char(unpack(big, 65, 90)))

-- Argument counts beside the frame: fewer, more, none.
local function three(a, b, c) return a, b, c end
for _, f in ipairs { three, pass } do
  print(f(), f(1), f(1, 2, 3, 4, 5))
end
local x, y, z = three(1, 2), three(3, 4)
print(x, y, z)
x, y, z = (three(1, 2, 3))
print(x, y, z)

-- Tail calls: no stack growth, through pcall and metamethods too.
local function loop(n, acc)
  if n == 0 then return acc end
  return loop(n - 1, acc + n)
end
print(loop(1e5, 0))
local even, odd
function even(n) if n == 0 then return true end return odd(n - 1) end
function odd(n) if n == 0 then return false end return even(n - 1) end
print(even(100001), odd(100001))
local function vtail(n, ...)
  if n == 0 then return ... end
  return vtail(n - 1, ...)
end
print(vtail(1000, "kept", nil, "all"))
print(pcall(pcall, pcall, error, "deep"))
print(select("#", pcall(pass, nil, nil, nil)))
local obj = setmetatable({}, { __call = function(_, n)
  if n == 0 then return "called out" end
  return nil
end })
print((function() return obj(0) end)())
local method = { n = 0 }
function method:inc(k) self.n = self.n + k; return self end
for _ = 1, 150 do method:inc(1):inc(2):inc(3) end
print(method.n)

-- Vararg functions as iterators, handlers, coroutine bodies, chunks.
for a, b, c, d in function(s, k) k = (k or 0) + 1
  if k <= s then return k, k * 2, nil, "d" end end, 4 do
  io.write(a, b, tostring(c), d, " ")
end
print()
local co = coroutine.wrap(function(...)
  local n = select("#", ...)
  while true do n = select("#", coroutine.yield(n, ...)) end
end)
print(co(1, nil, 3), co(), co(nil), co(1, 2, 3, 4))
print(loadstring("return select('#', ...), ...")(5, nil, 7, nil))
print(xpcall(function(...) return select("#", ...), ... end, print, 1, nil, 3))
local args = { n = 0 }
local function keep(...) args = { n = select("#", ...), ... } end
keep(nil, 2, nil)
print(args.n, args[1], args[2], args[3])
if table.pack then
  local p = table.pack(1, nil, 3)
  print(p.n, table.unpack and table.unpack(p, 1, p.n))
else
  print(3, 1, nil, 3)
end
-- Long argument lists force stack growth in the middle of a call.
local function grow(n, ...)
  if n == 0 then return select("#", ...) end
  return grow(n - 1, n, n, n, n, n, n, n, n, ...)
end
print(grow(20), grow(200), (select(2, pcall(grow, 500))))
