-- A workload of bench/joined.sh: joined.lua NAME FOLDER. It runs the workload for some
-- rounds, and once more each time that a client has come, and has gone: it writes
-- FOLDER/1 and waits for FOLDER/2, then 3 and 4. It prints the median CPU time of a round
-- before the client, with it and after it: of the thread, then of the process.
local name, folder = arg[1], arg[2]
local ffi = require("ffi")
ffi.cdef [[
int usleep(unsigned);
struct ljp_time { long sec, nsec; };
int clock_gettime(int, struct ljp_time *);
]]
local PROCESS, THREAD = 2, 3 -- CLOCK_PROCESS_CPUTIME_ID, CLOCK_THREAD_CPUTIME_ID
local time = ffi.new("struct ljp_time")
local function now(clock)
  ffi.C.clock_gettime(clock, time)
  return tonumber(time.sec) + tonumber(time.nsec) * 1e-9
end

local loads = {}
function loads.numeric()
  local sum = 0
  for i = 1, 3e6 do sum = sum + i % 7 end
  return sum
end
function loads.churn()
  local t
  for i = 1, 2e5 do t = {i, name = "n" .. i % 100} end
  return t
end
function loads.calls()
  local sum = 0
  for i = 1, 3e5 do sum = sum + #tostring(i) + math.floor(i / 3) end
  return sum
end
function loads.coroutines()
  local sum = 0
  for i = 1, 5e4 do
    for v in coroutine.wrap(function() coroutine.yield(i) end) do sum = sum + v end
  end
  return sum
end

local off = name:match("^(.*)%.off$")
if off then jit.off() end
local load = loads[off or name]
local function touch(file)
  local f = io.open(folder .. "/" .. file, "w")
  f:write("\n")
  f:close()
end
local function await(file)
  while true do
    local f = io.open(folder .. "/" .. file)
    if f then return f:close() end
    ffi.C.usleep(5000)
  end
end
local function rounds(count)
  local thread = {}
  local process = now(PROCESS)
  for i = 1, count do
    local start = now(THREAD)
    load()
    thread[i] = now(THREAD) - start
  end
  process = (now(PROCESS) - process) / count
  table.sort(thread)
  return {thread[math.ceil(count / 2)], process}
end

rounds(10)
local before = rounds(15)
touch("1")
await("2")
rounds(3)
local with = rounds(15)
touch("3")
await("4")
rounds(3)
local after = rounds(15)
for i = 1, 2 do print(before[i], with[i], after[i]) end
