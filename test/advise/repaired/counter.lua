local function apply(f, v, n) return f(v, n) end

local function add(v, n) return v + n end

local function total(n)
  return apply(add, 3, n)
end

local sum = 0
for i = 1, 1500000 do sum = sum + total(i) end
print(sum)
