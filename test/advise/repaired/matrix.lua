local new = require "table.new"

local function row(n, seed)
  local t = new(n, 0)
  for k = 1, n do
    t[k] = k * seed
  end
  return t
end

local sum = 0
for i = 1, 400000 do
  local r = row(120, i)
  sum = sum + r[1] + r[120]
end
print(sum)
