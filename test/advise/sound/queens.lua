local function place(n, row, cols, up, down)
  if row > n then return 1 end
  local found = 0
  for c = 1, n do
    if not cols[c] and not up[row + c] and not down[row - c + n] then
      cols[c], up[row + c], down[row - c + n] = true, true, true
      found = found + place(n, row + 1, cols, up, down)
      cols[c], up[row + c], down[row - c + n] = false, false, false
    end
  end
  return found
end

local function flags(n)
  local t = {}
  for i = 1, n do t[i] = false end
  return t
end

local sum = 0
for round = 1, 3 do sum = sum + place(12, 1, flags(12), flags(24), flags(24)) end
print(sum)
