-- Coroutines: created, resumed, wrapped, yielded across pcall, metamethods and
-- iterators, nested, dying, left alone, closed by the collector.
local function gen(n) return coroutine.wrap(function() for i = 1, n do coroutine.yield(i, i * 2, i * 3) end return "end" end) end
local function deep(n, f) if n == 0 then return f() end local r = deep(n - 1, f) return r end
local total = 0
for round = 1, 6 do
  local g = gen(5)
  for i = 1, 5 do local a, b, c = g(); total = total + a + b + c end
  assert(g() == "end"); assert(not pcall(g))
  local co = coroutine.create(function(a, b)
    local c = coroutine.yield(a + b); local d, e = coroutine.yield(c * 2); return d + e end)
  assert(select(2, coroutine.resume(co, 1, 2)) == 3); assert(select(2, coroutine.resume(co, 5)) == 10)
  assert(select(2, coroutine.resume(co, 3, 4)) == 7); assert(coroutine.status(co) == "dead")
  assert(not coroutine.resume(co))
  co = coroutine.create(function() return deep(20, function() return coroutine.yield("deep") end) end)
  assert(select(2, coroutine.resume(co)) == "deep"); assert(select(2, coroutine.resume(co, 9)) == 9)
  co = coroutine.wrap(function()
    local t = setmetatable({}, { __index = function(t, k) return coroutine.yield(k) end, __add = function(a, b) return coroutine.yield("add") end,
      __call = function(self, x) return coroutine.yield("call" .. x) end, __eq = function() return coroutine.yield("eq") end,
      __lt = function() return coroutine.yield("lt") end, __concat = function() return coroutine.yield("cat") end,
      __newindex = function(t, k, v) coroutine.yield("set") end, __len = function() return coroutine.yield("len") end })
    local u = setmetatable({}, getmetatable(t))
    local r = { t.foo, t + 1, t(4), t .. "x" }
    t.y = 1
    if t < u then r[#r + 1] = 1 end
    if t == u then r[#r + 1] = 2 end
    return "done" end)
  local r; repeat r = co(1) until r == "done"
  co = coroutine.wrap(function() local ok, v = pcall(function() return coroutine.yield(1) + 1 end); coroutine.yield(v)
    ok, v = xpcall(function() error(coroutine.yield(2)) end, function(e) return e end); return v end)
  co(); co(41); co(); co("err")
  co = coroutine.wrap(function() for k in (function() return coroutine.yield("it") end) do coroutine.yield(k) end return "x" end)
  co(); co(1); co(); co(nil)
  local inner = coroutine.wrap(function() local c2 = coroutine.wrap(function() coroutine.yield(coroutine.running()) end); c2(); coroutine.yield(1); c2(); return 2 end)
  inner(); inner()
  local abandoned = coroutine.wrap(function() while true do coroutine.yield() end end); abandoned()
  local many = {}
  for i = 1, 20 do many[i] = coroutine.create(function(x) while true do x = coroutine.yield(x + i) end end) end
  for k = 1, 3 do for i = 1, 20 do total = total + select(2, coroutine.resume(many[i], k)) end end
  local results = coroutine.wrap(function() return 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 end)
  total = total + select("#", results())
  local big = coroutine.wrap(function() return unpack({}, 1, 150) end); total = total + select("#", big())
end
collectgarbage()
