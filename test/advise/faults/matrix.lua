-- kind: growing-tables
-- function: row
local function row(n, seed)
  local t = {}
  for k = 1, n do
    t[#t + 1] = k * seed -- FAULT
  end
  return t
end

local sum = 0
for i = 1, 400000 do
  local r = row(120, i)
  sum = sum + r[1] + r[120]
end
print(sum)
