-- heap_shapes.lua SHAPE SIZE FILE: makes a heap of an odd shape, and a snapshot of it,
-- which must have every byte. Prints the number of objects, and the bytes.
local shape, n, file = arg[1], tonumber(arg[2]), arg[3]
local new_table = require("table.new")
local shapes = {}

function shapes.list()
  local list
  for _ = 1, n do list = { list } end
  return list
end

function shapes.array()
  local array = new_table(n, 0)
  for i = 1, n, 1009 do array[i] = { i } end
  return array
end

function shapes.hash()
  local hash = new_table(0, n)
  for i = 1, n / 2 do hash[i + 0.5] = i % 1009 == 0 and {} or i end
  return hash
end

function shapes.string()
  return ("x"):rep(n)
end

-- As deep as LuaJIT permits.
function shapes.stack()
  local kept = {}
  for i = 1, n do
    local function deep(level)
      if level == 0 then coroutine.yield({ i }) end
      return 1 + deep(level - 1)
    end
    local levels = 20000
    repeat
      kept[i] = coroutine.create(deep)
      levels = levels - 1000
    until coroutine.resume(kept[i], levels)
    assert(levels > 1000)
  end
  return kept
end

function shapes.upvalues()
  local names, kept = {}, {}
  for i = 1, 60 do names[i] = "u" .. i end
  local list = table.concat(names, ", ")
  local make = assert(loadstring(("local %s = ... return function() return %s end"):format(
    list, list)))
  for i = 1, n / 60 do kept[i] = make({}, i, kept, "x" .. i) end
  return kept
end

function shapes.metatables()
  local chain = {}
  for _ = 1, n do chain = setmetatable({}, chain) chain.__index = chain end
  return chain
end

function shapes.coroutines()
  local kept = {}
  for i = 1, n do
    kept[i] = coroutine.create(function(a) coroutine.yield(a, i) end)
    coroutine.resume(kept[i], kept[i - 1])
  end
  return kept
end

-- Each value is the key of the next entry: in one table, and each in its own.
function shapes.ephemerons()
  local weak = { __mode = "k" }
  local all, key = setmetatable({}, weak), {}
  local first = key
  for _ = 1, n do
    local next_key, own = {}, setmetatable({}, weak)
    all[key] = next_key
    own[key] = own
    next_key.own = own
    key = next_key
  end
  return { first, all }
end

kept = shapes[shape]()
collectgarbage()
local r, message = misc.memprof.snapshot { path = file, wait = true }
assert(r, message)
assert(r.bytes == r.heap_bytes, ("%d bytes of %d"):format(r.bytes, r.heap_bytes))
print(("%d %d %d"):format(r.objects, r.bytes, r.file_bytes))
