local function add(list)
  local s = 0
  for i = 1, #list do s = s + list[i] end
  return s
end

local list, sum = {}, 0
for i = 1, 10000 do list[i] = i % 17 end
for round = 1, 12000 do sum = sum + add(list) end
print(sum)
