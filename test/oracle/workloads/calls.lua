-- Calls of every shape: fixed, vararg, tail, recursive, through upvalues,
-- fields and methods; returns of 0, 1, many, too many and too few values.
local function none() end
local function one(a) return a end
local function three(a) return a, a + 1, a + 2 end
local function many(...) return ... end
local function count(...) return select("#", ...) end
local function tail(n) if n == 0 then return 7 end return tail(n - 1) end
local function tailmany(...) return many(...) end
local function tailff(x) return tostring(x) end
local function vtail(n, ...) if n == 0 then return ... end return vtail(n - 1, ...) end
local function fill(a, b, c, d) return d, c, b, a end
local object = { n = 0 }
function object:inc(by) self.n = self.n + by; return self end
function object.make(n) return setmetatable({ n = n }, { __index = object }) end
local function fact(n) return n < 2 and 1 or n * fact(n - 1) end
local function even(n) if n == 0 then return true end return odd(n - 1) end
function odd(n) if n == 0 then return false end return even(n - 1) end
-- Functions that return functions: the result lies where the frame was.
local function self_() return self_ end
local function maker(n) return function(m) return n + m, maker end end
local function pick(...) local a, b = ... return b, a end

for round = 1, 12 do
  none(); none(1, 2, 3)
  local a = one(round)
  local b, c, d, e = three(a)
  local t = { many(1, 2, nil, 4) }
  local n = count(many()) + count(many(nil)) + count(many(1, 2, 3))
  assert(tail(9) == 7)
  assert(select("#", tailmany(1, 2, 3)) == 3)
  assert(tailff(12) == "12")
  local p, q = vtail(5, "x", "y")
  local w, x, y, z = fill(1)
  assert(object.make(3):inc(2):inc(3).n == 8)
  assert(fact(6) == 720)
  assert(even(8) and not odd(8))
  local m, back = maker(round)(2)
  assert(m == round + 2)
  local i, j = pick(tail, one)
  assert(i == one and j == tail)
  local s = self_ and self_()
  local big = { many(unpack(t, 1, 4)) }
  local str = (("x"):rep(3)):upper():lower():sub(2, -1)
end
