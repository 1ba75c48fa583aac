-- kind: temporary-tables
-- function: add
-- record: --memory --sample 65536
local function add(a, b)
  return {x = a.x + b.x, y = a.y + b.y} -- FAULT
end

local units = {}
for i = 1, 3000 do units[i] = {pos = {x = i, y = -i}, speed = {x = 1, y = 2}} end

local function step(units)
  for i = 1, #units do
    local u = units[i]
    u.pos = add(u.pos, u.speed)
  end
end

for frame = 1, 1500 do step(units) end
local sum = 0
for i = 1, #units do sum = sum + units[i].pos.x + units[i].pos.y end
print(sum)
