local function each(list, visit, extra)
  local sum = 0
  for i = 1, #list do sum = sum + visit(list[i], i, extra) end
  return sum
end

local function cell_width(cell, k, indent)
  return cell % 10 + k + indent
end

local function render(rows, indent)
  local width = 0
  for i = 1, #rows do
    width = width + each(rows[i], cell_width, indent)
  end
  return width
end

local rows, total = {}, 0
for i = 1, 50 do
  rows[i] = {}
  for k = 1, 20 do rows[i][k] = i * k end
end
for round = 1, 60000 do total = total + render(rows, round % 7) end
print(total)
