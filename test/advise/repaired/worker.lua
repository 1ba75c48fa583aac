local function each(list, visit, extra)
  local sum = 0
  for i = 1, #list do sum = sum + visit(list[i], i, extra) end
  return sum
end

local function width(cell, k, indent)
  return cell % 10 + k + indent
end

local function render(rows, indent)
  local sum = 0
  for i = 1, #rows do sum = sum + each(rows[i], width, indent) end
  return sum
end

local function work(rows, rounds)
  local total = 0
  for round = 1, rounds do total = total + render(rows, round % 7) end
  return total
end

local rows = {}
for i = 1, 50 do
  rows[i] = {}
  for k = 1, 20 do rows[i][k] = i * k end
end
work({{1}}, 300000)
if arg[1] then assert(misc.sysprof.start{path = arg[1], timer = "posix", interval = 0.5}) end
print(work(rows, 60000))
if arg[1] then assert(misc.sysprof.stop()) end
