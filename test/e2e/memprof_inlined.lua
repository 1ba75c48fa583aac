-- Allocates in functions that compiled code has inlined, in every shape there is,
-- and prints what must be in the stream:
--   type, bytes, how many, chain of NAME:LINE, innermost first
-- luajit memprof_inlined.lua STREAM
local path = ...
local new_table = require "table.new"
local ffi = require "ffi"
local kept = new_table(100000, 0)
local used = 0
local wanted = {}

local function hold(v)
  used = used + 1
  kept[used] = v
end

-- A wanted line: bytes (each case has its own), and links: function, name, offset
-- of the line from that of its definition.
local function want(type, bytes, count, ...)
  local chain = {}
  for i = 1, select("#", ...), 3 do
    local f, name, offset = select(i, ...)
    chain[#chain + 1] = name .. ":" ..
      debug.getinfo(f, "S").linedefined + offset
  end
  wanted[#wanted + 1] = { type, bytes, count, table.concat(chain, "<") }
end

local cases = {}

-- Hash parts of 4 nodes, two functions deep.
local function remember(i) hold({ leaked = i, also = i, more = i }) end
local function handle(i)
  local n = i
  remember(n)
  return n
end
function cases.nested(run)
  local function loop()
    for i = 1, 1009 do
      handle(i)
    end
  end
  run(loop)
  want("table_hash_part", 4 * 24, 1009, remember, "remember", 0,
    handle, "handle", 2, loop, "loop", 2)
end

-- Methods, four deep.
local box7 = ffi.typeof "char[7]"
local class = {}
class.__index = class
function class:make() hold(box7()) return self end
function class:middle()
  return self:make():top()
end
function class:top() return self end
function class:outer()
  local n = self
  return n:middle() and 1
end
function cases.methods(run)
  local object = setmetatable({}, class)
  local function loop()
    local n = 0
    for _ = 1, 1013 do
      n = n + object:outer()
    end
    return n
  end
  run(loop)
  want("cdata", 16 + 7, 1013, class.make, "make", 0, class.middle, "middle", 1,
    class.outer, "outer", 2, loop, "loop", 3)
end

-- Two places in a function, two callers of it.
local box11, box13 = ffi.typeof "char[11]", ffi.typeof "char[13]"
local function places()
  hold(box11())
  hold(
    box13())
end
local function left() places() return 1 end
local function right() places() return 2 end
function cases.places(run)
  local function loop()
    local n = 0
    for _ = 1, 503 do
      n = n + left()
      n = n + right()
    end
    return n
  end
  run(loop)
  want("cdata", 16 + 11, 503, places, "places", 1, left, "left", 0,
    loop, "loop", 3)
  want("cdata", 16 + 11, 503, places, "places", 1, right, "right", 0,
    loop, "loop", 4)
  want("cdata", 16 + 13, 503, places, "places", 3, left, "left", 0,
    loop, "loop", 3)
  want("cdata", 16 + 13, 503, places, "places", 3, right, "right", 0,
    loop, "loop", 4)
end

-- Metamethods, called by operators.
local box17 = ffi.typeof "char[17]"
local number = {}
number.__add = function(a)
  hold(box17())
  return a
end
local function sum(a, b)
  return a + b
end
function cases.metamethods(run)
  local a, b = setmetatable({}, number), setmetatable({}, number)
  local function loop()
    for _ = 1, 1019 do
      a = sum(a, b)
    end
  end
  run(loop)
  want("cdata", 16 + 17, 1019, number.__add, "__add", 1, sum, "sum", 1,
    loop, "loop", 2)
end

-- Varargs, pcall, a closure that is called where it is made.
local box19 = ffi.typeof "char[19]"
local function take(...)
  local n = select("#", ...)
  hold(box19())
  return n
end
local function guarded(i)
  local _, n = pcall(take, i, i, i)
  return n
end
function cases.varargs(run)
  local function loop()
    for i = 1, 1021 do
      guarded(i)
    end
  end
  run(loop)
  want("cdata", 16 + 19, 1021, take, "take", 2, guarded, "guarded", 1,
    loop, "loop", 2)
end

-- Recursion, a fixed depth of it.
local box23 = ffi.typeof "char[23]"
local function descend(n)
  if n == 0 then
    hold(box23())
    return 0
  end
  return 1 + descend(n - 1)
end
function cases.recursion(run)
  local function loop()
    for _ = 1, 1031 do
      descend(3)
    end
  end
  run(loop)
  want("cdata", 16 + 23, 1031, descend, "descend", 2, descend, "descend", 5,
    descend, "descend", 5, descend, "descend", 5, loop, "loop", 2)
end

-- Branches that become side traces.
local box29, box31, box37 = ffi.typeof "char[29]", ffi.typeof "char[31]",
  ffi.typeof "char[37]"
local function branch(i)
  if i % 3 == 0 then
    hold(box29())
  elseif i % 3 == 1 then
    hold(box31())
  else
    hold(box37())
  end
end
function cases.branches(run)
  local function loop()
    for i = 1, 3 * 337 do
      branch(i)
    end
  end
  run(loop)
  want("cdata", 16 + 29, 337, branch, "branch", 2, loop, "loop", 2)
  want("cdata", 16 + 31, 337, branch, "branch", 4, loop, "loop", 2)
  want("cdata", 16 + 37, 337, branch, "branch", 6, loop, "loop", 2)
end

-- A loop in a function in a loop.
local box41 = ffi.typeof "char[41]"
local function inner(n)
  for _ = 1, n do
    hold(box41())
  end
end
function cases.loops(run)
  local function loop()
    for _ = 1, 61 do
      inner(61)
    end
  end
  run(loop)
  want("cdata", 16 + 41, 61 * 61, inner, "inner", 2, loop, "loop", 2)
end

-- In a coroutine that yields in between: what resumed it stands below.
local box43 = ffi.typeof "char[43]"
local function produce()
  hold(box43())
end
local function body()
  for _ = 1, 1033 do
    for _ = 1, 3 do
      produce()
    end
    coroutine.yield()
  end
end
function cases.coroutines(run)
  local function loop()
    local co = coroutine.wrap(body)
    for _ = 1, 1033 do
      co()
    end
  end
  run(loop)
  want("cdata", 16 + 43, 3 * 1033, produce, "produce", 1, body, "body", 3,
    loop, "loop", 3)
end

-- Strings: built by concatenation (1009 + 13 bytes and a zero).
local pad = ("p"):rep(1009)
local function text(i)
  local n = 1000000000000 + i
  return pad .. n
end
local function titled(i)
  hold(text(i))
end
function cases.strings(run)
  local function loop()
    for i = 1, 1039 do
      titled(i)
    end
  end
  run(loop)
  want("string", 24 + 1024, 1039, text, "text", 2, titled, "titled", 1,
    loop, "loop", 2)
end

-- Closures and their 7 upvalues; a function is made where its text ends.
local function closed(i)
  local a, b, c, d, e, f, g = i, 2, 3, 4, 5, 6, 7
  local function all()
    a = b + c + d + e + f + g
  end
  b, c, d, e, f, g = i, i, i, i, i, i
  hold(all)
end
function cases.closures(run)
  local function loop()
    for i = 1, 211 do
      closed(i)
    end
  end
  run(loop)
  want("function", 40 + 7 * 8, 211, closed, "closed", 4, loop, "loop", 2)
  want("upvalue", 48, 7 * 211, closed, "closed", 4, loop, "loop", 2)
end

-- Tail calls: who made them has gone.
local box47 = ffi.typeof "char[47]"
local function last(i)
  hold(box47())
  return i
end
local function hand_on(i)
  local n = i + 1
  return last(n)
end
local function first(i)
  local n = hand_on(i)
  return n
end
function cases.tails(run)
  local function loop()
    local n = 0
    for i = 1, 1049 do
      n = n + first(i)
    end
    return n
  end
  run(loop)
  want("cdata", 16 + 47, 1049, last, "last", 1, first, "first", 1,
    loop, "loop", 3)
end

-- Iterators: a closure and ipairs, called by the loop.
local box53 = ffi.typeof "char[53]"
local function advance(n, i)
  if i < n then
    hold(box53())
    return i + 1
  end
end
local function up_to(n)
  local count = 0
  for _ in advance, n, 0 do
    count = count + 1
  end
  return count
end
function cases.iterators(run)
  local list = {}
  for i = 1, 31 do list[i] = 37 end
  local function loop()
    for _, n in ipairs(list) do
      up_to(n)
    end
  end
  run(loop)
  want("cdata", 16 + 53, 31 * 37, advance, "advance", 2, up_to, "up_to", 2,
    loop, "loop", 2)
end

-- Functions behind __index and __newindex, and one that C calls back.
local box59, box61 = ffi.typeof "char[59]", ffi.typeof "char[61]"
local function missing(_, key)
  hold(box59())
  return key
end
local function assign()
  hold(box61())
end
function cases.indexes(run)
  local t = setmetatable({}, { __index = missing, __newindex = assign })
  local function access(i)
    local n = t[i]
    t[i] = n
  end
  local function loop()
    for i = 1, 1051 do
      access(i)
    end
  end
  run(loop)
  want("cdata", 16 + 59, 1051, missing, "missing", 1, access, "access", 1,
    loop, "loop", 2)
  want("cdata", 16 + 61, 1051, assign, "assign", 1, access, "access", 2,
    loop, "loop", 2)
end

local box67 = ffi.typeof "char[67]"
local function replace(c)
  hold(box67())
  return c
end
function cases.callbacks(run)
  local word = ("w"):rep(17)
  local function loop()
    for _ = 1, 53 do
      word:gsub(".", replace)
    end
  end
  run(loop)
  want("cdata", 16 + 67, 17 * 53, replace, "replace", 1, loop, "loop", 2)
end

local names = {}
for name in pairs(cases) do names[#names + 1] = name end
table.sort(names)
local function run(loop) loop() end
assert(misc.memprof.start { path = path, every = true })
for _, name in ipairs(names) do
  cases[name](run)
end
assert(misc.memprof.stop())
for _, w in ipairs(wanted) do
  print(unpack(w))
end
