-- Table churn: many small tables, array and hash parts that grow, deletion.
local size = tonumber(arg[1]) or 10

local sum, live = 0, {}
for i = 1, size * 500 do
  local point = { x = i, y = i + 1, tags = { i % 3, i % 5 } }
  live[i % 89 + 1] = point
  local list = {}
  for j = 1, 12 do
    list[j] = j * i
  end
  list["k" .. i % 31] = point
  list[i + 0.5] = true
  sum = (sum + #list + list[7] + live[1 + i % #live].tags[2]) % 1000003
  if i % 10 == 0 then
    for key in pairs(list) do
      list[key] = nil
    end
    sum = sum + (next(list) and 1 or 0)
  end
  table.insert(list, 1, i)
  sum = sum + table.remove(list)
end
print(sum)
