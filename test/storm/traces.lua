-- The storm of traces: two VMs compile, link and drop generations of functions
-- in every possible way. Each generation has names of its own. A log says when
-- each generation ran: a function that a sample names must have run at that
-- time (traces_judge).
--
--   traces.lua SECONDS TIMER FILE LOG
local seconds, timer, file, log = ...
local module = require("storm_module")

-- In either VM: a generation is an outer function with a loop that calls a
-- middle function, which is the only one that calls the leaf. Runs the
-- generation; returns when it began and ended.
local source = [[
local letter, number, keep = ...
local ffi = require("ffi")
if not storm_declared then
  ffi.cdef("struct storm_time { long s, ns; };" ..
    "int clock_gettime(int, struct storm_time *);")
  storm_declared = true
end
local time = ffi.new("struct storm_time")
local function now()
  ffi.C.clock_gettime(1, time)
  return tonumber(time.s) * 1e9 + tonumber(time.ns)
end
jit.off(now)
local text = ([=[
  local function LETTER_leaf_NUMBER(x, i)
    if i % 7 == SEVEN then
      x = x + 0.25
    end
    return x * 0.5 + i
  end
  local function LETTER_mid_NUMBER(x, i)
    local y = LETTER_leaf_NUMBER(x, i) + 1
    return y
  end
  local function LETTER_outer_NUMBER(n)
    local x, t = 0, {}
    for i = 1, n do
      x = LETTER_mid_NUMBER(x, i)
      if i % FIVE == 0 then
        t[i % 3 + 1] = x
      end
    end
    for i = 1, n do
      x = LETTER_mid_NUMBER(x, i + n) + #t
    end
    return x
  end
  return LETTER_outer_NUMBER
]=]):gsub("%u+", { LETTER = letter, NUMBER = number, SEVEN = number % 7,
  FIVE = 2 + number % 4 })
local outer = keep or assert(loadstring(text, "=" .. letter .. number))()
local began = now()
outer(60 + number % 90 * (number % 3 == 0 and 60 or 1))
local ended = now()
return ("%s %d %.0f %.0f"):format(letter, number, began, ended), outer
]]
local generation = assert(loadstring(source, "=generation"))
local in_second = "jit.opt.start('hotloop=2', 'hotexit=2')\n" ..
  "local number = ...\n" ..
  "local said = assert(loadstring([==[" .. source .. "]==]))('b', number)\n" ..
  "if number % 3 == 0 then jit.flush() end\n" ..
  "return said"

local out = assert(io.open(log, "w"))
local function defaults()
  jit.opt.start("hotloop=2", "hotexit=2", "maxtrace=1000", "maxmcode=512",
    "sizemcode=64", "maxside=100")
end

local kept = {}
local function forget(number, outer)
  local how = number % 16
  if how == 0 then
    jit.flush()
  elseif how == 1 then
    for n = 1, 60 do
      pcall(jit.flush, n)
    end
  elseif how == 2 then
    jit.off(outer, true)
    kept[number % 7] = nil
  elseif how == 3 then
    jit.flush(outer, true)
  elseif how == 4 then
    collectgarbage()
  elseif how == 5 then
    jit.opt.start("maxmcode=32", "sizemcode=32")
  elseif how == 8 then
    jit.opt.start("maxtrace=20")
  elseif how == 11 then
    jit.opt.start("maxside=1")
  elseif how == 13 then
    defaults()
  elseif how == 14 then
    jit.off()
    jit.on()
  end
end
jit.off(forget)

local resident = dofile((arg[0]:gsub("storm/[^/]+$", "support/resident.lua")))

local function round(number)
  local said, outer = generation("a", number)
  out:write(said, "\n")
  forget(number, outer)
  -- A generation that has run before. Its code may be gone or not.
  kept[number % 7] = { number, outer }
  local old = kept[number % 5]
  if old then
    out:write((generation("a", old[1], old[2])), "\n")
  end
  if number % 4 == 0 then
    out:write(module.second(in_second, print, number), "\n")
  end
end
jit.off(round)

defaults()
for number = 1, 50 do
  round(number)
end
local ok, message = misc.sysprof.start({ mode = "C", interval = 0.1,
  path = file, timer = timer, max_overhead = 0 })
if not ok then
  print(message)
  os.exit(77)
end
local number, began, early = 50, os.clock(), nil
repeat
  for _ = 1, 20 do
    number = number + 1
    round(number)
  end
  if not early and os.clock() - began > tonumber(seconds) / 4 then
    collectgarbage()
    early = resident()
  end
until os.clock() - began > tonumber(seconds)
collectgarbage()
local late = resident()
assert(misc.sysprof.stop())
out:close()
print(("%d generations; resident after a quarter %d KiB, at the end %d KiB")
  :format(number, early, late))
-- The function entries that wait for the writer and the writer's tables grow up
-- to their bounds, which takes longer than a short run. Nothing else may grow:
-- each generation leaves ten functions and about twenty traces.
assert(late < math.max(early, 40 * 1024) + 4 * 1024,
  "memory grows without bound")
