-- Micro-benchmark: next over a hash part.
local size = tonumber(arg[1]) or 10
local t = { a = 1, b = 2, c = 3 }
local key, value
local sum = 0
for i = 1, size * 10000 do
  key, value = next(t, key)
  sum = sum + (value or i % 2)
end
print(sum)
