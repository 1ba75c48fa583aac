-- kind: callback
-- function: function
local ffi = require "ffi"
ffi.cdef "void qsort(void *, size_t, size_t, int (*)(const int *, const int *));"
local order = ffi.cast("int (*)(const int *, const int *)", function(x, y) -- FAULT
  return x[0] - y[0]
end)

local function sort(a, n)
  ffi.C.qsort(a, n, 4, order)
end

local data, sum = ffi.new("int[?]", 6000), 0
for round = 1, 70 do
  for i = 0, 5999 do data[i] = (i * 7919 + round) % 6007 end
  sort(data, 6000)
  sum = sum + data[0] + data[3000] * 3 + data[5999]
end
print(sum)
