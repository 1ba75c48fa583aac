-- Elements are added and taken at the end: nothing is moved.
local stack, sum = {}, 0
for round = 1, 600000 do
  for i = 1, 10 do table.insert(stack, i) end
  for i = 1, 10 do sum = sum + table.remove(stack) end
end
print(sum)
