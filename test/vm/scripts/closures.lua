-- Upvalues open and closed, shared, in loops, in recursion; hot and cold.
local function counter() local n = 0 return function() n = n + 1
    return n end, function() return n end, function(v) n = v end end
local inc, get, set = counter()
for _ = 1, 500 do inc() end
print(get())
set("str")
print(get(), pcall(inc))
set(5.5)
print(inc())
set({ 1 })
print(type(get()))
local fs = {}
for i = 1, 200 do local j = i * 2 fs[i] = { function() j = j + 1
    return i + j end, function() return j end } end
local s = 0
for r = 1, 3 do for i = 1, 200 do s = s + fs[i][1]() + fs[i][2]() end end
print(s)
local function y(f) return (function(x) return x(x) end)(function(x)
    return f(function(...) return x(x)(...) end) end) end
local fact = y(function(self) return function(n)
    return n == 0 and 1 or n * self(n - 1) end end)
for _ = 1, 30 do fact(20) end
print(fact(20))
local function compose(...) local f = { ... } return function(x)
      for i = 1, #f do x = f[i](x) end return x end end
local g = compose(function(x) return x + 1 end, function(x)
  return x * 2 end, math.sqrt, function(x) return ("%.3f"):format(x) end)
for i = 1, 100 do g(i) end
print(g(17))
local x = 0
local function a() local function b() local function c() x = x + 1 return x end
    return c() end return b() end
for _ = 1, 300 do a() end
print(x)
local function vals(...) local t = { ... } return function()
    return unpack(t) end end
print(vals(1, nil, 3)())
local stack = {}
local function push(v) stack = { v, stack } end
local function pop() local v = stack[1] stack = stack[2] return v end
for i = 1, 300 do push(i) end
local sum = 0
for _ = 1, 150 do sum = sum + pop() end
print(sum)
local co = coroutine.wrap(function() local z = 0 local f = function() z = z + 1
    return z end while true do coroutine.yield(f) end end)
local f1 = co()
for _ = 1, 100 do f1() co() end
print(f1())
do local w = 1 local function setw(v) w = v end local function getw()
    return w end for i = 1, 400 do setw(i % 2 == 0 and i or tostring(i)) end
  print(type(getw()), getw()) while true do local brk = {}
    local function keep() return brk end if keep() then break end end end
local t = {}
for k, v in pairs { a = 1, b = 2 } do t[k] = function() v = v + 1
    return k .. v end end
print(t.a(), t.a(), t.b())
local function ack(m, n) if m == 0 then return n + 1 elseif n == 0 then
    return ack(m - 1, 1) end return ack(m - 1, ack(m, n - 1)) end
print(ack(2, 30))
local function hanoi(n, p, q, r) if n == 0 then return 0 end
  return hanoi(n - 1, p, r, q) + 1 + hanoi(n - 1, r, q, p) end
print(hanoi(12, 1, 2, 3))
local memo = setmetatable({}, { __mode = "v" })
local function fibm(n) if n < 2 then return n end local m = memo[n]
    if not m then m = { fibm(n - 1) + fibm(n - 2) } memo[n] = m end
  return m[1] end
print(fibm(70))
local big = {}
for i = 1, 60 do big[i] = "u" .. i end
local src = "local " .. table.concat(big, ",") .. " = " .. ("1,"):rep(59) ..
  "1 return function(d) "
for i = 1, 60 do src = src .. big[i] .. "=" .. big[i] .. "+d " end
src = src .. "return " .. table.concat(big, "+") .. " end"
local bf = loadstring(src)()
for i = 1, 100 do bf(i) end
print(bf(0))
local Account = {}
Account.__index = Account
function Account.new(b) return setmetatable({ balance = b }, Account) end
function Account:deposit(v) self.balance = self.balance + v return self end
function Account:get() return self.balance end
local Special = setmetatable({}, { __index = Account })
Special.__index = Special
function Special.new(b) return setmetatable(Account.new(b), Special) end
function Special:get() return Account.get(self) * 2 end
local objs = { Account.new(1), Special.new(2) }
for i = 1, 500 do objs[i % 2 + 1]:deposit(i):get() end
print(objs[1]:get(), objs[2]:get())
local ops = { function(v) return v + 1 end, function(v)
  return v .. "" end, function(v) return tonumber(v) * 2 % 1009 end,
  function(v) return v end }
local v = 1
for i = 1, 800 do v = ops[i % 4 + 1](v) end
print(v)
