local rows = {}
local seed = 42
local function random()
  seed = (seed * 1103515245 + 12345) % 2147483648
  return seed
end

local function rank(rows)
  table.sort(rows)
end

local sum = 0
for round = 1, 250 do
  for i = 1, 3000 do rows[i] = random() end
  rank(rows)
  sum = sum + rows[1] % 1000 + rows[3000] % 1000
end
print(sum)
