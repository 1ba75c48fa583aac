-- Micro-benchmark: the length of a table with a hash part.
local size = tonumber(arg[1]) or 10
local t = { n = 1, [1] = 1, [2] = 2 }
local sum = 0
for i = 1, size * 10000 do
  sum = sum + #t + i % 2
end
print(sum)
