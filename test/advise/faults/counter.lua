-- kind: closures
-- function: total
-- run: -joff
local function apply(f, v) return f(v) end

local function total(n)
  return apply(function(v) return v + n end, 3) -- FAULT
end

local sum = 0
for i = 1, 1500000 do sum = sum + total(i) end
print(sum)
