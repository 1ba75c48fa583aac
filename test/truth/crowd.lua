-- A crowd of threads of several kinds, which measure where they wait. Lua's own
-- thread works and waits in turn, too.
--
--   crowd.lua SECONDS INTERVAL TIMER FILE TABLE
--
-- Writes the profile and a table of "part seconds frame thread" (truth_judge).
local seconds, interval, timer, file, table_file = ...
local ffi = require("ffi")
local crowd = require("truth_crowd")
local session = dofile((arg[0]:gsub("[^/]+$", "session.lua")))
local clock = crowd.clock
ffi.cdef([[
typedef struct { long s, ns; } span;
int nanosleep(const span *, span *);
]])
local C = ffi.C
local kinds = {
  { name = "turns", count = 2, parts = { "turns_work", "turns_nap" } },
  { name = "mixed", count = 2,
    parts = { "mixed_work", "mixed_short", "mixed_long", "mixed_longer" } },
  { name = "locks", count = 3,
    parts = { "locks_lock", "locks_hold", "locks_work" } },
  { name = "pairs", count = 2,
    parts = { "pairs_wait", "pairs_work", "pairs_nap" } },
  { name = "idle", count = 50, parts = { "idle_nap", "idle_work" } },
}

local span = ffi.new("span", 0, 300000)
local function lua_nap()
  assert(C.nanosleep(span, nil) == 0, "nanosleep was interrupted")
end

local function lua_work()
  local x, until_ = 0, clock() + 200e-6
  repeat
    for i = 1, 200 do
      x = (x * 31 + i) % 1000003
    end
  until clock() > until_
  return x
end

for _, kind in ipairs(kinds) do
  crowd.begin(kind.name, kind.count)
end
local worked, napped = 0, 0
local function turn()
  local began = clock()
  lua_work()
  local middle = clock()
  lua_nap()
  local ended = clock()
  worked, napped = worked + (middle - began), napped + (ended - middle)
end
jit.off(turn)
for _ = 1, 100 do
  turn()
end

session(file, interval, timer, "wall")
worked, napped = 0, 0
local began, ready = clock(), crowd.ready()
for _, kind in ipairs(kinds) do
  kind.before = crowd.seconds(kind.name)
end
repeat
  turn()
until clock() - began > tonumber(seconds)
for _, kind in ipairs(kinds) do
  kind.after = crowd.seconds(kind.name)
end
ready = crowd.ready() - ready
assert(misc.sysprof.stop())

local out = assert(io.open(table_file, "w"))
local function line(name, time, frame, thread)
  out:write(("%s\t%.9f\t%s\t%s\n"):format(name, time, frame, thread))
end
for _, kind in ipairs(kinds) do
  for _, part in ipairs(kind.parts) do
    line(part, kind.after[part] - kind.before[part], crowd.frame(part),
         kind.name)
  end
  line("ready", kind.after.ready - kind.before.ready, "", kind.name)
end
line("lua_work", worked, "lua_work ", "luajit")
line("lua_nap", napped, "lua_nap ", "luajit")
line("ready", ready, "", "luajit")
out:close()
