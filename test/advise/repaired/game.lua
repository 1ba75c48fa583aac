local function add(a, b)
  a.x, a.y = a.x + b.x, a.y + b.y
end

local units = {}
for i = 1, 3000 do units[i] = {pos = {x = i, y = -i}, speed = {x = 1, y = 2}} end

local function step(units)
  for i = 1, #units do
    local u = units[i]
    add(u.pos, u.speed)
  end
end

for frame = 1, 1500 do step(units) end
local sum = 0
for i = 1, #units do sum = sum + units[i].pos.x + units[i].pos.y end
print(sum)
