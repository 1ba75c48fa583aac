-- Allocates known numbers of blocks of known sizes, all of them primes or made
-- of primes, each on a line of its own, and prints what must be in the stream:
--   line, type, bytes, how many, function
-- luajit memprof_exact.lua STREAM [OPTION=VALUE]
local path = ...
local new_table = require "table.new"
local ffi = require "ffi"
local box = ffi.typeof "char[1013]"
local keep = new_table(16384, 0)
local used = 0
local pad = ("x"):rep(1000)

local function hold(v)
  used = used + 1
  keep[used] = v
end

local function strings(n)
  for i = 1, n do
    hold(pad .. (100000000 + i)) -- 1009 bytes long
  end
end

local function arrays(n)
  for _ = 1, n do
    hold(new_table(131, 0))
  end
end

local function hashes(n)
  for _ = 1, n do
    hold(new_table(0, 61))
  end
end

local function closures(n)
  local a, b, c = 1, 2, 3
  for i = 1, n do
    hold(function() a = b + c return i end)
  end
end

local function boxes(n)
  for _ = 1, n do
    hold(box())
  end
end

local function userdata(n)
  for _ = 1, n do
    hold(newproxy())
  end
end

local function threads(n)
  for _ = 1, n do
    hold(coroutine.create(strings))
  end
end

local function upvalues(n)
  for i = 1, n do
    local shared = i
    hold(function()
      shared = shared + 1
    end)
  end
end

local function chunks(n)
  for i = 1, n do
    hold(loadstring("return function() return " .. i .. " end"))
  end
end

-- Parts that grow: by one and doubled; nodes doubled.
local function lengthened(n)
  for _ = 1, n do
    local t = {}
    for i = 1, 100 do
      t[i] = i
    end
    hold(t)
  end
end

local names = {}
for i = 1, 100 do names[i] = "name " .. i end
local function named(n)
  for _ = 1, n do
    local t = {}
    for i = 1, 100 do
      t[names[i]] = i
    end
    hold(t)
  end
end

local function repeated(n)
  for i = 1, n do
    local unit = string.char(i % 26 + 65, i / 26 + 65)
    hold(unit:rep(1013))
  end
end

local function joined(n)
  for i = 1, n do
    hold(table.concat({ pad, i + 100000000, pad }))
  end
end

-- Called by the builtin: its comparisons are counted.
local compared = 0
local box_77 = ffi.typeof "char[77]"
local function sorted(n)
  local list = {}
  for i = 1, n do list[i] = i * 7919 % n end
  table.sort(list, function(a, b)
    compared = compared + 1
    hold(box_77())
    return a < b
  end)
end

local box_79 = ffi.typeof "char[79]"
local function resumed(n)
  for _ = 1, n do
    hold(box_79())
    coroutine.yield()
  end
end

local function line_of(f, offset)
  return debug.getinfo(f, "S").linedefined + offset
end

-- Sizes on x86-64 with GC64.
local wanted = {
  { strings, 2, "string", 24 + 1012, 211 },
  { arrays, 2, "table", 64, 223 },
  { arrays, 2, "table array part", 132 * 8, 223 },
  { hashes, 2, "table", 64, 227 },
  { hashes, 2, "table hash part", 64 * 24, 227 },
  { closures, 3, "function", 40 + 4 * 8, 229 },
  { boxes, 2, "cdata", 16 + 1013, 233 },
  { userdata, 2, "userdata", 48, 239 },
  { threads, 2, "thread", "any", 241 },
  { threads, 2, "stack of a thread", "any", 241 },
  { upvalues, 5, "upvalue", 48, 251 },
  { upvalues, 5, "function", 40 + 8, 251 },
  { chunks, 2, "prototype", "any", 2 * 257 },
  { chunks, 2, "parser", 64, 257 },
  { repeated, 3, "string", 24 + 2028, 263 },
  { joined, 2, "string", 24 + 2012, 269 },
  { resumed, 2, "cdata", 16 + 79, 271 },
}
-- Room for 2 (and slot 0), then for 4, 8, ...
for k = 1, 7 do
  wanted[#wanted + 1] = { lengthened, 4, "table array part", (2 ^ k + 1) * 8, 277 }
end
for k = 1, 7 do
  wanted[#wanted + 1] = { named, 4, "table hash part", 2 ^ k * 24, 281 }
end

assert(misc.memprof.start { path = path, every = true })
strings(211)
arrays(223)
hashes(227)
closures(229)
boxes(233)
userdata(239)
threads(241)
upvalues(251)
chunks(257)
repeated(263)
joined(269)
lengthened(277)
named(281)
sorted(283)
local thread = coroutine.create(resumed)
for _ = 1, 271 do coroutine.resume(thread, 271) end
assert(misc.memprof.stop())

-- The comparison has no name: it is called after its place.
print(line_of(sorted, 5), "cdata", 16 + 77, compared, "function:" .. line_of(sorted, 3))
for _, w in ipairs(wanted) do
  local name
  for i = 1, 60 do
    local n, v = debug.getlocal(1, i)
    if v == w[1] then name = n end
  end
  print(line_of(w[1], w[2]), w[3]:gsub(" ", "_"), w[4], w[5], name)
end
