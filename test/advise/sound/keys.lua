-- Each string is a key that is kept, in a table that has its size.
local index, seed = require "table.new"(0, 150000), 3
for i = 1, 150000 do
  seed = seed * 16807 % 2147483647
  index["k" .. seed] = i
end
local sum = 0
for round = 1, 40 do
  for i = 1, 150000 do sum = sum + i % round end
end
print(sum, next(index) ~= nil)
