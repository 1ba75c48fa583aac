local ffi = require "ffi"
local function sink(a, i, n)
  local v = a[i]
  while 2 * i + 1 < n do
    local k = 2 * i + 1
    if k + 1 < n and a[k + 1] > a[k] then k = k + 1 end
    if a[k] <= v then break end
    a[i] = a[k]
    i = k
  end
  a[i] = v
end

local function sort(a, n)
  for i = math.floor(n / 2) - 1, 0, -1 do sink(a, i, n) end
  for i = n - 1, 1, -1 do
    a[0], a[i] = a[i], a[0]
    sink(a, 0, i)
  end
end

local data, sum = ffi.new("int[?]", 6000), 0
for round = 1, 70 do
  for i = 0, 5999 do data[i] = (i * 7919 + round) % 6007 end
  sort(data, 6000)
  sum = sum + data[0] + data[3000] * 3 + data[5999]
end
print(sum)
