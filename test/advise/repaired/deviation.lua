local function mean(list)
  local sum = 0
  for i = 1, #list do sum = sum + list[i] end
  return sum / #list
end

local function deviation(list, part)
  local m, sum = mean(part), 0
  for i = 1, #list do
    local v = list[i]
    sum = sum + (v - m) ^ 2 / (v + 1)
  end
  return math.sqrt(sum / #list)
end

local list, part, sum = {}, {}, 0
for i = 1, 2000 do list[i] = i * 31 % 977 end
for i = 1, 1000 do part[i] = list[i] end
for round = 1, 40000 do sum = sum + deviation(list, part) end
print(sum)
