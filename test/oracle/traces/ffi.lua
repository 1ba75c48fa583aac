-- FFI: calls of C functions, structs, arrays.
local ffi = require("ffi")
ffi.cdef([[
typedef struct { double x, y; } point_t;
int abs(int);
double fabs(double);
]])
local C = ffi.C
local function length(p)
  local x = p.x * p.x
  return x + p.y * p.y
end
local function call(i)
  local a = C.abs(-i)
  return a + C.fabs(-1.5)
end
local arr = ffi.new("int[64]")
local p = ffi.new("point_t")
local s = 0
for i = 1, 400 do
  p.x = i
  p.y = i + 1
  s = s + length(p)
  s = s + call(i)
  arr[i % 64] = i
  s = s + arr[(i + 1) % 64]
end
