local function inside(cx, cy)
  local x, y = 0, 0
  for i = 1, 80 do
    local xx, yy = x * x, y * y
    if xx + yy > 4 then return i end
    x, y = xx - yy + cx, 2 * x * y + cy
  end
  return 0
end

local sum = 0
for py = 1, 4000 do
  for px = 1, 500 do sum = sum + inside(px / 250 - 1.5, py / 2000 - 1) end
end
print(sum)
