-- All metamethods, as Lua functions, builtins and chains.
local log = 0
local mt = {}
local function new(v) return setmetatable({ v = v }, mt) end
local function val(x) return type(x) == "table" and x.v or x end
mt.__add = function(a, b) return new(val(a) + val(b)) end
mt.__sub = function(a, b) return new(val(a) - val(b)) end
mt.__mul = function(a, b) return new(val(a) * val(b)) end
mt.__div = function(a, b) return new(val(a) / val(b)) end
mt.__mod = function(a, b) return new(val(a) % val(b)) end
mt.__pow = function(a, b) return new(val(a) ^ val(b)) end
mt.__unm = function(a) return new(-a.v) end
mt.__concat = function(a, b) return new(tostring(val(a)) .. tostring(val(b))) end
mt.__len = function(a) return a.v end
mt.__eq = function(a, b) return a.v == b.v end
mt.__lt = function(a, b) return val(a) < val(b) end
mt.__le = function(a, b) return val(a) <= val(b) end
mt.__call = function(self, a, b) return self.v + (a or 0) + (b or 0), self end
mt.__tostring = function(a) return "<" .. tostring(a.v) .. ">" end
mt.__index = function(t, k) log = log + 1; return k .. "!" end
mt.__newindex = function(t, k, v) rawset(t, k, v) end
local base = { greet = function() return "hi" end }
local mid = setmetatable({}, { __index = base })
local top = setmetatable({}, { __index = mid })
local sink = {}
local fwd = setmetatable({}, { __newindex = sink })
local rawidx = setmetatable({}, { __index = rawget })
local meta_len = setmetatable({}, { __len = function() return 42 end })

for round = 1, 8 do
  local a, b = new(round), new(3)
  assert((a + b).v == round + 3 and (a + 1).v == round + 1 and (1 + a).v == round + 1)
  assert((a - b).v == round - 3 and (a * b).v == round * 3)
  assert((a / b).v == round / 3 and (a % b).v == round % 3 and (a ^ 2).v == round ^ 2)
  assert((-a).v == -round)
  assert((a .. "x").v == round .. "x" and ("x" .. a).v == "x" .. round)
  local long = "p" .. "q" .. a .. "r"
  assert(#b == 3 or true)
  assert(a == new(round) and not (a == b and round ~= 3))
  assert((a < b) == (round < 3) and (a <= b) == (round <= 3) and (a > b) == (round > 3))
  if a < b then log = log + 1 end
  while a > new(100) do log = 0 end
  assert(a(1, 2) == round + 3)
  local r, s = a(5)
  local function tailcall(...) return a(...) end
  assert(tailcall(1) == round + 1)
  assert(tostring(a) == "<" .. round .. ">")
  assert(a.foo == "foo!" and a[12] == "12!" and a["x" .. round])
  a.bar = 1; a[3] = 2; a["y" .. round] = 3
  assert(top.greet() == "hi" and top.nothing == nil)
  fwd.x = round; fwd[round] = 1
  assert(rawidx.zip == nil)
  assert(#{ 1, 2, 3 } == 3 and #"abc" == 3)
  for k, v in pairs({ 1, 2, x = 3 }) do log = log + 1 end
  for i, v in ipairs({ 1, 2, 3 }) do log = log + 1 end
  for k, v in next, { a = 1, b = 2 } do log = log + 1 end
  local iter = setmetatable({}, { __call = function(self, s, c) if c < 3 then return c + 1 end end })
  for i in iter, nil, 0 do log = log + i end
  local function closure_iter(n) local i = 0 return function() i = i + 1 if i <= n then return i end end end
  for i in closure_iter(4) do log = log + i end
end
