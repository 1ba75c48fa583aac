-- math, bit, number arithmetic at its edges, numeric loops.
local function p(...) local t = {} for i = 1, select("#", ...) do
    local v = select(i, ...) t[i] = type(v) == "number" and (v ~= v and
    "nan" or ("%.14g"):format(v)) or tostring(v) end
  print(table.concat(t, " ")) end
local xs = { 0, 1, -1, 0.5, -0.5, 2, 10, 1e10, -1e10, 1 / 0, -1 / 0, 0 / 0,
  3.7, -3.7, 2 ^ 31, 2 ^ 53, 1e-10 }
for _, n in ipairs { "abs", "acos", "asin", "atan", "ceil", "cos", "cosh",
  "deg", "exp", "floor", "log", "log10", "rad", "sin", "sinh", "sqrt", "tan",
  "tanh" } do local r = {} for r2 = 1, 8 do
      for i, x in ipairs(xs) do r[i] = math[n](x) end end io.write(n, " ")
  p(unpack(r)) end
for _, x in ipairs(xs) do p(x, math.frexp(x)) p(math.modf(x))
  p(math.ldexp(x, 3), math.fmod(x, 3), math.pow(x, 2), math.atan2(x, 2),
  math.max(x, 1, 2), math.min(x, 1, 2), x % 3, x ^ 0.5, -x, x / 3, 3 % x,
  math.fmod(7, x)) end
p(math.pi, math.huge, math.log(8, 2), math.log(100, 10), math.mod and
  math.mod(7, 3) or "nomod", 5 % -3, -5 % 3, -5 % -3, 5.5 % -2, 2 ^ -1, 0 ^ 0,
  (-8) ^ (1 / 3), 1 / 0 % 2, 2 % (1 / 0), -2 % (1 / 0))
print(pcall(math.max))
print(pcall(math.floor, {}))
print(pcall(math.random, 0))
print(pcall(math.random, 2, 1))
print(pcall(math.random, 1, 2, 3))
print(math.floor("3.7"), math.max("10", 9))
math.randomseed(42)
local r = {}
for i = 1, 8 do r[i] = math.random(1000) end
p(unpack(r))
p(math.random(), math.random(5), math.random(-5, 5))
math.randomseed(42)
p(math.random(1000) == r[1])
local lo, hi = 1, 0
for _ = 1, 500 do local x = math.random() lo = math.min(lo, x)
  hi = math.max(hi, x) end
print(lo >= 0, hi < 1, lo < 0.1, hi > 0.9)
local b = bit
for _, x in ipairs { 0, 1, -1, 255, 0x12345678, 2 ^ 31, 2 ^ 32 + 7, -2 ^ 31,
  1.5, 0xdeadbeef } do p(x, b.tobit(x), b.bnot(x), b.band(x, 0xff), b.bor(x,
  1), b.bxor(x, -1), b.lshift(x, 4), b.rshift(x, 4), b.arshift(x, 4), b.rol(x,
  8), b.ror(x, 8), b.bswap(x), b.tohex(x), b.tohex(x, 4), b.tohex(x, -4)) end
print(pcall(b.band))
print(b.bor(1, 2, 4, 8), b.band(15, 7, 3), b.bxor(1, 1, 1), b.lshift(1, 33),
  b.rshift(-1, 31), pcall(b.bnot, "x"))
local h = 0
for i = 1, 2000 do h = b.bxor(b.rol(h, 5), b.tobit(i * 2654435761))
  h = b.band(h, 0x7fffffff) end
print(h)
for _, f in ipairs { { 1, 10, 3 }, { 10, 1, -4 }, { 1, 0, 1 }, { 0, 1, 0.25 },
  { 1, 3, 0.7 }, { 2 ^ 31 - 3, 2 ^ 31 + 2, 1 }, { -2 ^ 31 + 2, -2 ^ 31 - 2,
  -1 }, { 1, 0, -1 }, { 2 ^ 53, 2 ^ 53 + 4, 2 } } do local s = {}
    for i = f[1], f[2], f[3] do s[#s + 1] = ("%.17g"):format(i) if #s > 20 then
      break end end print(#s, table.concat(s, " ")) end
print(pcall(function() local n = 0 for i = 1, 3, 0 do n = n + 1 if n > 5 then
      return n end end return n end))
print(pcall(function() for i = 1 / 0, 1 do end
    for i = 0 / 0, 1 do error("nan") end return "ok" end))
local s, f, i32, ov = 0, 0.5, 1, 2 ^ 31 - 200
for i = 1, 500 do s = s + i * i % 7 - i / 2 f = f * 1.0001 + i ^ 0.5
  i32 = (i32 * 1103515245 + 12345) % 2147483648 ov = ov + 1
  s = s + math.floor(i / 3) + math.ceil(i / 3) + math.abs(-i) + math.min(i,
  9) + math.max(i, 9) + math.sqrt(i) + (i % 3 == 0 and 1 or 0) end
p(s, f, i32, ov)
local acc = 0
for i = 1, 300 do local a, c = math.frexp(i) local d, e = math.modf(i / 7)
  acc = acc + a + c + d + e + math.ldexp(a,
  3) + math.log(i) + math.exp(-i) + math.sin(i) * math.cos(i) + math.atan2(i,
  2) + i ^ 2 + 2 ^ -i + (-i) % 5 end
p(acc)
local function coll(n) local c = 0 while n ~= 1 do n = n % 2 == 0 and n / 2 or
    3 * n + 1 c = c + 1 end return c end
local best, at = 0, 0
for i = 1, 600 do local c = coll(i) if c > best then best, at = c, i end end
print(best, at)
local sieve, np = {}, 0
for i = 2, 5000 do if not sieve[i] then np = np + 1
      for j = i * i, 5000, i do sieve[j] = true end end end
print(np)
print(0x7fffffff + 1, 1e308 * 10, -1e308 * 10, 0x1p-1074, 0xffffffffffff, 1e1,
  .5, 5., 3e-2, 0x.8p1, 0xA.8)
print(1 == 1.0, 0 == -0, 1 / 0 == 1 / -0, 0 / 0 == 0 / 0, 2 ^ 53 == 2 ^ 53 + 1,
  1 < 0 / 0, not (1 >= 0 / 0))
