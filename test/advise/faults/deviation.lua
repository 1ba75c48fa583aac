-- kind: pairs
-- function: deviation
-- The walks are in two functions: a third is in the other one.
local function mean(list)
  local sum, n = 0, 0
  for _, v in pairs(list) do sum, n = sum + v, n + 1 end
  return sum / n
end

local function deviation(list, part)
  local m, sum, n = mean(part), 0, 0
  for _, v in pairs(list) do -- FAULT
    sum = sum + (v - m) ^ 2 / (v + 1)
    n = n + 1
  end
  return math.sqrt(sum / n)
end

local list, part, sum = {}, {}, 0
for i = 1, 2000 do list[i] = i * 31 % 977 end
for i = 1, 1000 do part[i] = list[i] end
for round = 1, 40000 do sum = sum + deviation(list, part) end
print(sum)
