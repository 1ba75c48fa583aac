-- Micro-benchmark: the operator ^.
local size = tonumber(arg[1]) or 10
local x = 1.5
local sum = 0
for i = 1, size * 10000 do
  sum = sum + x ^ (i % 7)
end
print(sum)
