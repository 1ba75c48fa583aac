local function search(width, height)
  local distance = {}
  for i = 1, width * height do distance[i] = -1 end
  local queue, first, last = {1}, 1, 1
  distance[1] = 0
  local function visit(from, to)
    if distance[to] < 0 then
      distance[to] = distance[from] + 1
      last = last + 1
      queue[last] = to
    end
  end
  while first <= last do
    local at = queue[first]
    first = first + 1
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
