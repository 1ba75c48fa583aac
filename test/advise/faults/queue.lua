-- kind: shifting
-- function: search
local function search(width, height)
  local distance = {}
  for i = 1, width * height do distance[i] = -1 end
  local queue = {1}
  distance[1] = 0
  local function visit(from, to)
    if distance[to] < 0 then
      distance[to] = distance[from] + 1
      table.insert(queue, to)
    end
  end
  while #queue > 0 do
    local at = table.remove(queue, 1) -- FAULT
    local column = (at - 1) % width
    if column > 0 then visit(at, at - 1) end
    if column < width - 1 then visit(at, at + 1) end
    if at > width then visit(at, at - width) end
    if at + width <= #distance then visit(at, at + width) end
  end
  return distance[width * height]
end

local sum = 0
for round = 1, 6 do sum = sum + search(400 + round, 400) end
print(sum)
