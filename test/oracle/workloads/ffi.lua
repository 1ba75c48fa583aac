-- FFI calls, callbacks, metatypes, finalizers.
local ffi = require("ffi")
ffi.cdef[[
typedef struct { int a; double b; } ljp_pair;
void qsort(void *base, size_t n, size_t size, int (*cmp)(const int *, const int *));
int abs(int); size_t strlen(const char *); int snprintf(char *, size_t, const char *, ...);
int toupper(int c); double fabs(double x);
]]
local C = ffi.C
local total = 0
local cmp = ffi.cast("int (*)(const int *, const int *)", function(a, b) total = total + 1; return a[0] - b[0] end)
for round = 1, 3 do
  local arr = ffi.new("int[8]", { 5, 2, 7, 1, 8, 3, 6, 4 })
  C.qsort(arr, 8, 4, cmp)
  assert(arr[0] == 1 and arr[7] == 8)
  total = total + C.abs(-3) + C.toupper(97) + C.fabs(-2.5) + tonumber(C.strlen("hello"))
  local buf = ffi.new("char[64]"); C.snprintf(buf, 64, "%d %s", ffi.cast("int", 42), "x")
  assert(ffi.string(buf) == "42 x")
  local p = ffi.new("ljp_pair", 1, 2.5); p.a = p.a + 3; total = total + p.b + p.a
  local i64 = 1LL; for i = 1, 10 do i64 = i64 * 3LL + 1 end
  assert(tostring(i64)); assert(i64 > 5LL); assert((2ULL ^ 3) == 8)
  ffi.gc(ffi.new("ljp_pair"), function(x) total = total + 1 end)
  local cb = ffi.cast("int (*)(int)", function(x) return x + round end)
  assert(cb(3) == 3 + round); cb:free()
  local ok = pcall(function() return ffi.new("nosuchtype") end)
  ok = pcall(function() return p.nosuch end)
  for i = 0, 3 do local q = ffi.cast("int *", arr); total = total + q[i] end
end
local point; local mt = { __add = function(a, b) return point(a.a + b.a, a.b + b.b) end, __index = { len = function(s) return s.a * s.a end },
  __tostring = function(s) return "pair" end, __call = function(s, x) return s.a + x end, __eq = function() return true end }
point = ffi.metatype("ljp_pair", mt)
for i = 1, 6 do local x = point(i, i) + point(1, 2); total = total + x:len() + x(3); assert(tostring(x) == "pair"); assert(x == x) end
collectgarbage()
cmp:free()
