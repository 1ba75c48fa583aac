-- FFI: types, arithmetic, calls, callbacks, metatypes, finalizers, errors.
local ffi = require("ffi")
local C = ffi.C
ffi.cdef [[
typedef struct { int32_t x, y; } vmt_point;
typedef struct vmt_node { struct vmt_node *next; double v; } vmt_node;
typedef union { uint64_t u; double d; uint8_t b[8]; } vmt_pun;
struct vmt_bits { unsigned a : 3; int b : 5; bool c : 1; uint64_t d; };
enum vmt_color { RED, GREEN = 5, BLUE };
typedef int (*vmt_cmp)(const void *, const void *);
void qsort(void *, size_t, size_t, vmt_cmp);
int abs(int); long labs(long); double ldexp(double, int);
size_t strlen(const char *); int snprintf(char *, size_t, const char *, ...);
void *memset(void *, int, size_t); int toupper(int); char *getenv(const char *);
static const int VMT_CONST = 77;
struct vmt_var { int n; int32_t a[?]; };
]]
local function clean(s) return (tostring(s):gsub("0x%x+", "ADDR")) end

-- 64-bit arithmetic, in loops that compile.
local s, u = 0LL, 1ULL
for i = 1, 300 do
  s = s + i * 3LL - (i % 7)
  u = u * 6364136223846793005ULL + 1442695040888963407ULL
end
print(s, u, s / 7, s % 7, -s, s * s, u / 10, u % 1000, 2LL ^ 10, 7LL / -2)
print(1LL < 2, 1LL == 1, 1ULL > -1LL, 5LL <= 5ULL, tonumber(s),
  0x7fffffffffffffffLL + 1)
print(pcall(function() return 1LL / 0 end))
print(bit.band(0xffff0000ffffULL, 0xff00ffLL), bit.lshift(1LL, 40),
  bit.bswap(1ULL),
  bit.tohex(u), bit.rol(u, 13), bit.bnot(0LL), bit.arshift(-8LL, 1), bit.bor(1LL,
    2, 4ULL))
print(pcall(function() return 1LL + "x" end))
print(pcall(function() return 1LL + {} end))

-- Structs, arrays, unions, bit fields, variable length, initialisers.
local p = ffi.new("vmt_point", 3, 4)
local arr = ffi.new("vmt_point[?]", 100)
for r = 1, 3 do
  for i = 0, 99 do arr[i].x, arr[i].y = i * r, p.x + i end
end
local t = 0
for i = 0, 99 do t = t + arr[i].x * arr[i].y end
print(p.x, p.y, t, ffi.sizeof(p), ffi.sizeof(arr), ffi.alignof("double"))
print(ffi.offsetof("vmt_node", "v"), ffi.offsetof("vmt_point", "nope"))
local pun = ffi.new("vmt_pun")
pun.d = 1.5
print(pun.u, pun.b[7], pun.b[6])
local b = ffi.new("struct vmt_bits", { a = 9, b = -3, c = true, d = 5 })
print(b.a, b.b, b.c, b.d, ffi.offsetof("struct vmt_bits", "b"))
local vv = ffi.new("struct vmt_var", 5, { 5, { 1, 2, 3 } })
print(vv.n, vv.a[0], vv.a[2], ffi.sizeof(vv))
print(tonumber(ffi.new("enum vmt_color", "GREEN")), C.BLUE, C.VMT_CONST, C.RED)
print(ffi.new("enum vmt_color", 6) == "BLUE", ffi.new("int[3]", { 7 })[2],
  ffi.new("int[3]", 1, 2)[2])
local copy = ffi.new("vmt_point", p)
copy.x = 9
print(p.x, copy.x, ffi.istype("vmt_point", copy), ffi.istype("int", copy))
local list
for i = 1, 50 do local n = ffi.new("vmt_node", list, i) arr[i].x = n.v
  list = nil end
print(arr[50].x)
for _, f in ipairs {
  function() return p.z end, function() p.z = 1 end, function() p.x = "s" end,
  function() return ffi.new("nosuch") end, function()
    return ffi.new("int", {}, 1) end,
  function() return ffi.cast("int", {}) end, function() ffi.cdef("int (") end,
  function() return C.no_such_symbol end, function() return p + 1 end,
  function() return #p end, function() return p() end, function()
    return p < 1 end,
  function() return ffi.new("vmt_point[2]")[0].q end, function() C.abs({}) end,
  function() C.abs() end, function() C.abs(1, 2) end, function()
    return ffi.string(5) end,
  function() ffi.load("vmt_no_such_library_at_all") end, function()
    return ffi.typeof("struct vmt_none") end,
  function() return ffi.new("struct vmt_none") end, function()
    return ffi.sizeof("struct vmt_none") end,
} do print(clean(select(2, pcall(f)))) end

-- Conversions.
for _, v in ipairs { 1.9, -1.9, 300, -1, 2 ^ 31, 2 ^ 32 + 5 } do
  print(v, ffi.cast("int8_t", v), ffi.cast("uint8_t", v), ffi.cast("int32_t", v),
    ffi.cast("int64_t", v), tonumber(ffi.new("float", v)))
end
print(ffi.cast("bool", 2), tostring(ffi.typeof("int[4]")),
  ffi.new("uint8_t[4]", "abc")[1])
print(ffi.string("hello"), ffi.string(ffi.new("char[6]", "hello"), 3),
  ffi.string(ffi.cast("const char *", "zed")))
local buf = ffi.new("char[64]")
ffi.copy(buf, "copied text")
ffi.fill(buf + 2, 3, 0x2e)
print(ffi.string(buf), ffi.errno() == ffi.errno(5), ffi.errno(), ffi.os,
  ffi.arch, ffi.abi("64bit"), ffi.abi("le"))
local q = ffi.cast("int32_t *", arr)
print(q[3], (q + 5)[0], (q + 5) - q, q == q, q ~= q + 1, q < q + 1,
  ffi.cast("void *", nil) == nil, q ~= nil)

-- Calls from hot loops, varargs, callbacks in both directions.
local sum = 0
for i = -150, 150 do sum = sum + C.abs(i) + tonumber(C.labs(i)) + C.ldexp(i, 1)
  end
print(sum, C.strlen("twelve chars"), C.toupper(97))
print(C.snprintf(buf, 64, "%d %s %.2f %lld", ffi.new("int", 5), "str", 2.5,
  1LL), ffi.string(buf))
local n = 61
local nums = ffi.new("int[?]", n)
for i = 0, n - 1 do nums[i] = (i * 37) % n end
local calls = 0
local cb = ffi.cast("vmt_cmp", function(a, c)
  calls = calls + 1
  return ffi.cast("const int *", a)[0] - ffi.cast("const int *", c)[0]
end)
for _ = 1, 5 do
  for i = 0, n - 1 do nums[i] = (i * 37) % n end
  C.qsort(nums, n, 4, cb)
end
local sorted = true
for i = 0, n - 1 do sorted = sorted and nums[i] == i end
print(sorted, calls > 5 * n)
cb:set(function() return 0 end)
C.qsort(nums, n, 4, cb)
cb:free()
print(pcall(function() cb:free() end))
print(pcall(function() C.qsort(nums, 2, 4, function()
    error("out of a callback", 0) end) end))

-- Metatypes.
local P
P = ffi.metatype("vmt_point", {
  __add = function(a, c) return P(a.x + c.x, a.y + c.y) end,
  __eq = function(a, c) return a.x == c.x and a.y == c.y end,
  __lt = function(a, c) return a.x < c.x end,
  __le = function(a, c) return a.x <= c.x end,
  __unm = function(a) return P(-a.x, -a.y) end,
  __len = function(a) return a.x end,
  __call = function(a, k) return a.x * k end,
  __concat = function(a, c) return tostring(a) .. tostring(c) end,
  __tostring = function(a) return "(" .. a.x .. "," .. a.y .. ")" end,
  __index = { norm = function(a) return a.x * a.x + a.y * a.y end },
  __newindex = function(_, k) error("no field " .. k, 0) end,
  __new = function(ct, x, y) return ffi.new(ct, x or 1, y or 1) end,
  __pairs = function(a) return next, { x = a.x } end,
})
local acc = P(0, 0)
for i = 1, 300 do acc = acc + P(i, -i) end
print(tostring(acc), acc:norm(), #acc, acc(2), tostring(-acc), acc == P(45150,
  -45150), P(1) < P(2), P(1) <= P(1))
print(acc .. "!", tostring(P()), pcall(function() acc.zz = 1 end))
for k, v in pairs(P(5, 6)) do print(k, v) end
print(pcall(ffi.metatype, "vmt_point", {}))

-- Finalizers.
local freed = 0
for i = 1, 100 do
  local o = ffi.gc(ffi.new("vmt_node"), function() freed = freed + 1 end)
  if i % 4 == 0 then ffi.gc(o, nil) end
end
collectgarbage() collectgarbage()
print("freed", freed)
local nt = ffi.metatype("vmt_node", { __gc = function()
  freed = freed + 1000 end })
do local a = nt() a = nt() a = nil end
collectgarbage() collectgarbage()
print("freed", freed)
local key = { [1LL] = "boxed" }
print(key[1], key[1LL], type(1LL), tostring(1LL), tostring(2ULL), tostring(3i),
  pcall(next, {}, 1LL))
