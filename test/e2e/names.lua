-- Functions that outlive the chunk that defined them, and a session that starts
-- early or late.
--   luajit names.lua STREAM WHEN
-- WHEN is "before" or "after" the chunks are loaded, or "collected": after the
-- collector has freed everything that it can.
local path, when = ...
local keep = {}

local function start()
  assert(misc.memprof.start{path = path, every = true})
end

local source = [[
  local out, allocate = ...
  local function as_local() return (allocate()) end
  local slot
  function as_global() return (allocate()) end
  local t = {}
  function t.as_field() return (allocate()) end
  function t:as_method() return (allocate()) end
  slot = function() return (allocate()) end
  local function as_upvalue_of() slot2 = function() return (allocate()) end end
  local function maker()
    local function inner() return (allocate()) end
    return inner
  end
  as_upvalue_of()
  out[1], out[2], out[3], out[4] = as_local, as_global, t.as_field, t.as_method
  out[5], out[6], out[7] = slot, slot2, maker()
  out[8] = (function(f) return f end)(function() return (allocate()) end)
  as_global, slot2 = nil, nil
]]

-- Makes functions that die at once, whose table entries are used again.
local function litter(n)
  for i = 1, n do
    loadstring("local function litter" .. i .. "() return function() end end")()
  end
end

local function allocate()
  local v = {}
  keep[#keep + 1] = v
  return #keep
end

collectgarbage("setpause", 20)
if when == "before" then start() end
litter(500)
local plain, dumped = {}, {}
assert(loadstring(source, "@plain.lua"))(plain, allocate)
litter(500)
local bytecode = string.dump(loadstring(source, "@dumped.lua"))
assert(loadstring(bytecode))(dumped, allocate)
bytecode = nil
litter(500)
if when == "collected" then
  collectgarbage() collectgarbage()
  litter(500)
  collectgarbage()
end
if when ~= "before" then start() end
for i = 1, 8 do
  plain[i]()
  dumped[i]()
end
assert(misc.memprof.stop())
print(#keep)
