-- Micro-benchmark: math.modf.
local size = tonumber(arg[1]) or 10
local modf = math.modf
local sum = 0
for i = 1, size * 10000 do
  local n, f = modf(i / 8)
  sum = sum + n + f
end
print(sum)
