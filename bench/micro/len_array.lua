-- Micro-benchmark: the length of a table with an array part.
local size = tonumber(arg[1]) or 10
local t = { 1, 2, 3, 4, 5, 6, 7 }
local sum = 0
for i = 1, size * 10000 do
  sum = sum + #t + i % 2
end
print(sum)
