-- Coroutines: life cycle, yields across everything, many of them, limits.

local yield, wrap, create = coroutine.yield, coroutine.wrap, coroutine.create
local resume, status = coroutine.resume, coroutine.status

local co = create(function(a, b)
  print("start", a, b, status(coroutine.running()))
  local c = yield(a + b)
  print("got", c)
  local d, e = yield(c * 2, "second")
  print("got", d, e)
  return "fin", d, e
end)
print(status(co), resume(co, 1, 2))
print(status(co), resume(co, 10))
print(status(co), resume(co, "x", "y"))
print(status(co), resume(co))
print(pcall(resume, 1), pcall(status, nil), pcall(create, 1))
print(coroutine.running())
print(resume(create(function() return coroutine.running() ~= nil end)))
print(pcall(yield, 1))
print(coroutine.isyieldable and coroutine.isyieldable() or false)

-- Errors inside, error objects, dead coroutines, wrap.
local bad = create(function() local x = nil; return x.field end)
print(resume(bad))
print(status(bad), resume(bad))
local obj = create(function() error({ code = 5 }) end)
local ok, e = resume(obj)
print(ok, type(e), e.code)
local w = wrap(function() yield(1) error("in wrap", 0) end)
print(w(), pcall(w))
print(pcall(w))
print(select(2, pcall(wrap(function() error("lvl1") end))))
print((debug.traceback(bad):gsub("0x%x+", "ADDR")))
local self
self = create(function() return resume(self) end)
print(resume(self))
local outer
outer = wrap(function() return wrap(function()
    return status(outer2 or create(print)) end)() end)
print(outer())
do
  local a
  local b = create(function() print("a is", status(a)) yield() end)
  a = create(function() resume(b) print("b is", status(b)) end)
  resume(a)
end

-- Yield across pcall, xpcall, metamethods, iterators, tail calls, varargs.
local across = wrap(function()
  print(pcall(function() yield("p1"); error("after yield", 0) end))
  print(xpcall(function() yield("x1"); error("boom", 0) end,
    function(m) return "handled " .. m end))
  for i in function() return yield("iter") end do print("iter", i) end
  local t = setmetatable({}, { __index = function(_, k) return yield(k) end })
  print(t.key, t.other)
  return (function(...) return yield(...) end)("tail", nil, 3)
end)
local v = { across() }
for i = 1, 12 do
  io.write(i, " ", tostring(v[1]), " ", #v, "\n")
  if v[1] == "tail" then break end
  v = { across(i < 5 and i or nil) }
end
print(across("result"))
print(pcall(wrap(function() table.sort({ 3, 1, 2 }, function()
    yield() end) end)))
print(pcall(wrap(function() ("x"):gsub(".", function() yield() end) end)))
print(pcall(wrap(function() return loadstring("coroutine.yield(9) return 8")()
  end)))
print(wrap(function() return require == nil or yield("plain") end)())

-- Generators in hot loops.
local function range(n) return wrap(function()
      for i = 1, n do yield(i) end end) end
local s = 0
for i in range(500) do s = s + i end
print(s)
local function permute(a, n)
  n = n or #a
  if n <= 1 then yield(table.concat(a)) else
    for i = 1, n do
      a[n], a[i] = a[i], a[n]
      permute(a, n - 1)
      a[n], a[i] = a[i], a[n]
    end
  end
end
local list = {}
for p in wrap(function() permute { "a", "b", "c", "d" } end) do
  list[#list + 1] = p end
print(#list, table.concat(list, " "))
local function tree(n) if n > 0 then tree(n - 1) yield(n) tree(n - 1) end end
s = 0
for x in wrap(function() tree(9) end) do s = s * 3 % 65521 + x end
print(s)
-- A pipeline of filters: the sieve.
local function gen(n) return wrap(function()
      for i = 2, n do yield(i) end end) end
local function filter(p, g)
  return wrap(function()
    while 1 do
      local n = g()
      if n == nil then return end
      if n % p ~= 0 then yield(n) end
    end
  end)
end
local primes, g = {}, gen(300)
while 1 do
  local n = g()
  if n == nil then break end
  primes[#primes + 1] = n
  g = filter(n, g)
end
print(#primes, primes[#primes])

-- Ten thousand alive at once, resumed in turn, then dropped half-way.
local all = {}
for i = 1, 10000 do
  all[i] = create(function(k)
    local acc = k
    while true do acc = acc + yield(acc) end
  end)
end
local sum = 0
for round = 1, 3 do
  for i = 1, #all do
    local _, r = resume(all[i], round == 1 and i or round)
    sum = sum + r
  end
end
print(sum)
for i = 1, #all, 2 do all[i] = false end
collectgarbage()
sum = 0
for i = 2, #all, 2 do local _, r = resume(all[i], 1) sum = sum + r end
print(sum)
all = nil
collectgarbage()

-- Deep stacks inside a coroutine, and coroutines nested in coroutines.
local function deep(n) if n == 0 then yield("bottom") return 0 end
  return 1 + deep(n - 1) end
for _, n in ipairs { 10, 100, 1000, 10000 } do
  local c = create(deep)
  local _, a = resume(c, n)
  local _, b = resume(c)
  print(n, a, b, status(c))
end
local function nest(n)
  if n == 0 then return "innermost" end
  return wrap(nest)(n - 1)
end
print(nest(100))
local okn, msg = pcall(nest, 1000)
print(okn, okn or (tostring(msg):gsub("^.-: ", "")))
local ko, ke = resume(create(function() local function r() return 1 + r() end
  return r() end))
print(ko, ke)
-- Yield with more values than the other stack has room for.
local many = wrap(function(...)
  while true do yield(unpack({}, 1, select("#", ...))) end
end)
for _, n in ipairs { 0, 1, 50, 3000 } do
  print(n, select("#", many(unpack({}, 1, n))))
end
