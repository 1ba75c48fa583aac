local function weight(v) return v % 7 end

local function total(list)
  local sum = 0
  for i = 1, #list do sum = sum + weight(list[i]) end
  return sum
end

local list, sum = {}, 0
for i = 1, 1000 do list[i] = i * 3 end
for round = 1, 10000 do sum = sum + total(list) end
print(sum)
