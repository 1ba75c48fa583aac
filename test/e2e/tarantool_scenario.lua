-- What users of Tarantool's profilers count on: misc.memprof, misc.sysprof and
-- the Lua modules that read their files, as a script for Tarantool uses them.
-- Counts of events are exact. The compiler is on or off, as the command says.
-- Usage: tarantool_scenario.lua [FORMAT]: memory only, in files of this format.
local bufread = require "utils.bufread"
local memprof = require "memprof.parse"
local process = require "memprof.process"
local symtab = require "utils.symtab"
local sysprof = require "sysprof.parse"
local table_new = require "table.new"

local SOURCE = debug.getinfo(1, "S").source
local FILE = "scenario.bin"
local FORMAT = arg[1]
-- Kept, or its frees would be counted.
local OPTIONS = FORMAT and {path = FILE, format = FORMAT, every = true}
local compiled = jit.status()

local function same(what, wanted, got)
  if wanted ~= got then
    error(("%s: wanted %s, got %s"):format(what, tostring(wanted),
      tostring(got)), 2)
  end
end

local function at(line, source)
  return ("%s:%d"):format(source or SOURCE, line)
end

local function profile(payload)
  collectgarbage() -- Or frees of older garbage would be counted.
  assert(misc.memprof.start(OPTIONS or FILE))
  payload()
  assert(misc.memprof.stop())
  if FORMAT == "ljm" then -- What follows must not convert it.
    same("first bytes", "ljs\3\0\0\0\128ljm\3\0\0\0",
      assert(io.open(FILE, "rb")):read(15))
  end
  local reader = bufread.new(FILE)
  local symbols = symtab.parse(reader)
  local events = memprof.parse(reader, symbols)
  os.remove(FILE)
  return events, symbols
end

local function numbers(events)
  local by_place = {}
  for _, event in pairs(events) do
    by_place[event.loc] = event.num
  end
  return by_place
end

-- One table with an array part, and 20 strings.
local function payload()
  local _ = table_new(20, 0)
  for i = 1, 20 do
    _[i] = "string of the scenario " .. i
  end
  _ = nil
  collectgarbage()
end
local first = debug.getinfo(payload, "S").linedefined
local TABLE, LOOP, STRING = first + 1, first + 2, first + 3

jit.off()
jit.flush()
local events = profile(payload)
local alloc, free = numbers(events.alloc), numbers(events.free)
same("table and array part", 2, alloc[at(TABLE)])
same("strings", 20, alloc[at(STRING)])
same("frees", 22, free.INTERNAL)
local delta = process.form_heap_delta(events)
for _, line in ipairs{TABLE, STRING} do
  same("frees of line " .. line, delta[at(line)].nalloc, delta[at(line)].nfree)
  same("bytes of line " .. line, 0, delta[at(line)].dbytes)
end
same("a place without events", 0, delta["nowhere:1"].dbytes)

if compiled then
  jit.on()
  jit.opt.start(3, "hotloop=10")
  jit.flush()
  alloc = numbers(profile(payload).alloc)
  same("interpreted strings", 11, alloc[at(STRING)])
  same("strings of the trace", 9,
    alloc[("TRACE [1] started at %s"):format(at(LOOP))])
  same("table, with the compiler", 2, alloc[at(TABLE)])
  same("a line that does not exist", nil, alloc[at(0)])
  jit.opt.start(3, "hotloop=56")
end

-- A function that is loaded while the profiler runs.
alloc = numbers(profile(function()
  local chunk = assert(load([[
    local M = {
      text = string.rep("first", 100)
    }
    function M.second()
      local _ = string.rep("second", 100)
    end
    return M
  ]], "chunk of the scenario"))()
  chunk.second()
end).alloc)
same("main chunk", 1, alloc[at(2, "chunk of the scenario")])
same("its function", 1, alloc[at(5, "chunk of the scenario")])

-- A chunk name of several lines has an alias.
local _, symbols = profile(function()
  assert(load("local t = {}\nfor i = 1, 3 do t[i] = {i} end\nreturn t"))()
end)
same("aliases", 1, #symbols.alias)
same("alias", "function_alias_1", symbols.alias[symbols.alias[1]])

-- A library that is loaded while the profiler runs.
local kept
events, symbols = profile(function()
  kept = require("tarantool_module")()
end)
local found
for _, event in pairs(events.alloc) do
  found = found or event.loc:match("^allocate_text:0x%x+$") and event.num
end
same("allocations of the library", 1, found)
same("length of its text", 29, #kept) -- Its copy here would be the same string.
local function contains(node, name)
  return node and (node.value.name == name or contains(node.left, name) or
    contains(node.right, name)) or false
end
-- Files of format ljm name what has events.
same("a function without events", FORMAT ~= "ljm",
  contains(symbols.cfunc, "luaopen_os"))

if FORMAT then
  print("ok")
  return
end

-- Samples: the work goes on until there are some, however slow the machine is.
local function busy()
  local sum = 0
  for i = 1, 1e5 do
    sum = sum + i % 7
  end
  return sum
end
local counts
repeat
  assert(misc.sysprof.start{mode = "C", interval = 1, path = FILE})
  for _ = 1, 200 do
    busy()
  end
  assert(misc.sysprof.stop())
  counts = misc.sysprof.report()
until counts.samples > 5
local reader = bufread.new(FILE)
symbols = symtab.parse(reader)
local sum, of_busy = 0, 0
for stack, samples in pairs(sysprof.parse(reader, symbols)) do
  sum = sum + samples
  if stack:find(SOURCE, 1, true) then
    of_busy = of_busy + samples
  end
end
same("samples", counts.samples, sum)
assert(of_busy > 0, "no sample has a line of the scenario")

-- Each of the two files with the other reader.
assert(misc.memprof.start("memory.bin"))
assert(misc.memprof.stop())
reader = bufread.new("memory.bin")
local ok, why = pcall(sysprof.parse, reader, symtab.parse(reader))
assert(ok or why:find("has no samples", 1, true), why)
reader = bufread.new(FILE)
ok, why = pcall(memprof.parse, reader, symtab.parse(reader))
assert(not ok and why:find("has no memory events", 1, true), why)

-- The tree of addresses.
local avl = require "utils.avl"
local function shape(keys)
  local root
  for _, key in ipairs(keys) do
    root = avl.insert(root, key, -key)
  end
  return ("%d %d %d"):format(root.key, root.left.key, root.right.key), root
end
for _, keys in ipairs{{1, 2, 3}, {3, 2, 1}, {1, 3, 2}, {3, 1, 2}} do
  same("balanced", "2 1 3", (shape(keys)))
end
local _, root = shape{1, 2, 3}
same("exact key", 1, (avl.floor(root, 1)))
same("no key", nil, (avl.floor(root, -10)))
same("key below", 2, (avl.floor(root, 2.75)))
same("value below", -2, select(2, avl.floor(root, 2.75)))
local many
for i = 1, 1000 do
  many = avl.insert(many, i * 7919 % 1009)
end
assert(many.height <= 14, "the tree is not balanced")
print("ok")
