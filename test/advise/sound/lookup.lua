local names, ages = {}, {}
for i = 1, 2000 do
  names[i] = "name" .. i
  ages[names[i]] = i % 90
end

local function average(names, ages)
  local sum = 0
  for i = 1, #names do sum = sum + ages[names[i]] end
  return sum / #names
end

local total = 0
for round = 1, 60000 do total = total + average(names, ages) end
print(total)
