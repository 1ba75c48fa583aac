-- Micro-benchmark: math.frexp.
local size = tonumber(arg[1]) or 10
local frexp = math.frexp
local sum = 0
for i = 1, size * 10000 do
  local m, e = frexp(i)
  sum = sum + m + e
end
print(sum)
