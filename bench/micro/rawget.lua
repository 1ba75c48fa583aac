-- Micro-benchmark: rawget of a string and of a number.
local size = tonumber(arg[1]) or 10
local t = { 7, key = 5 }
local sum = 0
for i = 1, size * 10000 do
  sum = sum + rawget(t, "key") + (rawget(t, i % 2) or 0)
end
print(sum)
