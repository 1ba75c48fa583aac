-- Numeric loops: a matrix product, a sieve, a Mandelbrot tile, bit mixing.
local size = tonumber(arg[1]) or 10
local bit = require("bit")

local function matrix(n)
  local a, b, trace = {}, {}, 0
  for i = 1, n do
    a[i], b[i] = {}, {}
    for j = 1, n do
      a[i][j], b[i][j] = i + j, i - j
    end
  end
  for i = 1, n do
    for j = 1, n do
      local s = 0
      for k = 1, n do
        s = s + a[i][k] * b[k][j]
      end
      if i == j then
        trace = trace + s
      end
    end
  end
  return trace
end

local function sieve(n)
  local crossed, count = {}, 0
  for i = 2, n do
    if not crossed[i] then
      count = count + 1
      for j = i * i, n, i do
        crossed[j] = true
      end
    end
  end
  return count
end

local function mandelbrot(n)
  local inside = 0
  for py = 0, n - 1 do
    for px = 0, n - 1 do
      local cx, cy = px / n * 3 - 2, py / n * 2 - 1
      local x, y, k = 0, 0, 0
      while x * x + y * y < 4 and k < 30 do
        x, y, k = x * x - y * y + cx, 2 * x * y + cy, k + 1
      end
      inside = inside + math.floor(k / 30)
    end
  end
  return inside
end

local total, mixed = 0, 0
for i = 1, size do
  total = total + matrix(18) + sieve(1500) + mandelbrot(16)
  for j = 1, 1500 do
    mixed = bit.bxor(bit.rol(mixed, 5), bit.tobit(i * j * 2654435))
  end
end
print(total, mixed)
