-- Allocates in as many ways as possible. The test calls it over and over, with the
-- number of the call.
local round = ...

local Point = {}
Point.__index = Point
Point.__add = function(a, b) return setmetatable({x = a.x + b.x}, Point) end
Point.__concat = function(a, b) return tostring(a) .. tostring(b) end
Point.__tostring = function(p) return "point " .. p.x end
Point.__call = function(self, n) return {self, n} end
Point.__newindex = function(t, k, v) rawset(t, k, {v}) end
Point.__lt = function(a, b) local t = {a, b} return t[1].x < t[2].x end

local function deep(n)
  if n == 0 then return {} end
  local t = deep(n - 1)
  return {t}
end

local function tail(n, acc)
  if n == 0 then return acc end
  return tail(n - 1, {acc})
end

local function varargs(...)
  local t = {...}
  return select("#", ...), t, {n = #t, ...}
end

local function generator(n)
  return coroutine.wrap(function()
    for i = 1, n do
      coroutine.yield({i, tostring(i * round)})
    end
  end)
end

local function nested(n)
  local co = coroutine.create(function(m)
    if m > 0 then nested(m - 1) end
    local s = ("x"):rep(m + round % 7)
    coroutine.yield(s .. m)
    return {s}
  end)
  coroutine.resume(co, n)
  coroutine.resume(co)
end

local a, b = setmetatable({x = round}, Point), setmetatable({x = 2}, Point)
local c = a + b
local s = c .. a
c(3)
c[round % 5 + 10] = "new"
table.sort({c, a, b, a}, function(p, q) return p < q end)
deep(round % 60 + 1)
tail(9, nil)
varargs(1, nil, "x" .. round, {})
for v in generator(5) do v[3] = v[1] end
nested(4)

pcall(function() error({code = round}) end)
xpcall(function() local t = nil; return t.x end,
       function(m) return {m, debug.traceback(m)} end)
pcall(string.rep)

local fields = {}
for i = 1, 23 do
  fields["k" .. i * round] = i
  fields[i] = function() return i, fields, s end
end
for k in pairs(fields) do fields[k] = nil end
local function letter(w) fields[w] = {w} end
local function here(text) text:gsub("%w", letter) return 1 end
local function there(text) return here(text) + 1 end
for _ = 1, 5 do -- the same C frame, entered from two places
  here("a b")
  there("a b")
end
s = ("a b c d"):gsub("%w", function(w) return w:upper() .. round end)
for w in s:gmatch("%w+") do fields[w] = {w} end
local chunk = assert(loadstring("local t = {...} return function() return {t, " ..
                                round .. "} end", "=chunk"))
chunk(1)()
local parts = {}
for i = 1, 40 do parts[i] = i .. "," end
s = table.concat(parts)
string.format("%s %d %q %5.2f", s, round, s, round / 3)
s:reverse():upper():sub(2, -2)
tostring(parts)
local ok, ffi = pcall(require, "ffi")
if ok then
  local box = ffi.new("int[?]", 17)
  local wide = ffi.new("int64_t", round) + 1
  box[0] = tonumber(wide)
  ffi.gc(ffi.new("char[24]"), function() return {round} end)
end
if ok then
  if not Compare then
    ffi.cdef "void qsort(void *, size_t, size_t, int (*)(const int *, const int *));"
    Compare = ffi.cast("int (*)(const int *, const int *)", function(p, q)
      local t = {p[0], q[0]}
      return t[1] - t[2]
    end)
  end
  local list = ffi.new("int[7]", 3, 1, 4, 1, 5, 9, 2)
  ffi.C.qsort(list, 7, 4, Compare)
end
local proxy = newproxy(true)
getmetatable(proxy).__gc = function() return {deep(3)} end
proxy = nil
if round % 13 == 0 then collectgarbage() end
if round % 5 == 0 then collectgarbage("step", 10) end
table.insert(parts, {})
unpack(parts)
string.dump(deep)
setfenv(function() return {} end, {})()
for _, v in ipairs({{1}, {2}}) do v[2] = {} end
if not Sinks then
  Sinks = {}
  local function sink(n)
    if n > 0 then return sink(n - 1) + 1 end
    local t = {n}
    coroutine.yield()
    return #{t}
  end
  for i = 1, 29 do
    Sinks[i] = coroutine.wrap(function() while true do sink(i % 7) end end)
  end
end
for i = 1, #Sinks do Sinks[i]() end
local t = require("table.new")(round % 50, round % 9)
t.x = 1
