-- Solutions of the eight queens problem, which a coroutine yields one by one:
-- recursion, closures, coroutine switching.
local N = 8

local function solutions()
  local columns, falling, rising, row_of = {}, {}, {}, {}
  local function place(row)
    if row > N then
      coroutine.yield(table.concat(row_of, " "))
      return
    end
    for c = 1, N do
      if not (columns[c] or falling[row + c] or rising[row - c]) then
        columns[c], falling[row + c], rising[row - c] = true, true, true
        row_of[row] = c
        place(row + 1)
        columns[c], falling[row + c], rising[row - c] = nil, nil, nil
      end
    end
  end
  return coroutine.wrap(function() place(1) end)
end

local n, first = 0, nil
for s in solutions() do
  n = n + 1
  first = first or s
end
print("first of " .. n .. " solutions: " .. first)
assert(n == 92 and first == "1 5 8 6 3 7 2 4")
