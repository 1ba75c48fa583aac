-- Micro-benchmark: ipairs over a short table with a hash part.
local size = tonumber(arg[1]) or 10
local t = { 1, 2, 3, x = 1 }
local sum = 0
for i = 1, size * 10000 do
  for _, v in ipairs(t) do
    sum = sum + v + i % 2
  end
end
print(sum)
