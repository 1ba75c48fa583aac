-- record: --memory
-- What a list holds lives as long as the list, longer than a collection.
local function build(n)
  local list
  for i = 1, n do list = {next = list, value = i} end
  return list
end
local function sum(list)
  local s = 0
  while list do s, list = s + list.value, list.next end
  return s
end
local n = 0
for i = 1, 100 do n = n + sum(build(40000)) end
print(n)
