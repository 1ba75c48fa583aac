-- Allocates known numbers of blocks of known sizes, all of them primes or made
-- of primes, each on a line of its own, and prints what must be in the stream:
--   line, type, bytes, how many, function
-- luajit memprof_exact.lua STREAM [OPTION=VALUE]
local path = ...
local new_table = require "table.new"
local ffi = require "ffi"
local box = ffi.typeof "char[1013]"
local keep = new_table(4096, 0)
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
}

assert(misc.memprof.start { path = path, every = true })
strings(211)
arrays(223)
hashes(227)
closures(229)
boxes(233)
userdata(239)
threads(241)
assert(misc.memprof.stop())

for _, w in ipairs(wanted) do
  local name
  for i = 1, 60 do
    local n, v = debug.getlocal(1, i)
    if v == w[1] then name = n end
  end
  print(line_of(w[1], w[2]), w[3]:gsub(" ", "_"), w[4], w[5], name)
end
