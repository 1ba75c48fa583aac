-- A session whose time is limited ends by itself, and the program goes on.
-- Usage: duration.lua HOW: sysprof, memprof, profile (their start{duration}), race,
-- forks PROFILER; for ljprof record: record, fork.
local checks = dofile((arg[0]:gsub("[^/]+$", "checks.lua")))
local check = checks.check
local ffi = require("ffi")
ffi.cdef [[int fork(void); int waitpid(int, int *, int); void _exit(int);
  int getpid(void); void exit(int); int usleep(unsigned);]]
local how = arg[1]
local GIVE_UP = os.clock() + 60

local function states()
  return misc.sysprof.status().state, misc.memprof.status().state
end
local function running()
  local cpu, memory = states()
  check(cpu ~= "failed" and memory ~= "failed", "state", cpu, memory)
  return cpu == "running" or memory == "running"
end

-- Works and allocates until the session has ended.
local kept = {}
local function before_the_end()
  for i = 1, 20000 do kept[i % 1009] = {i} end
end
local function after_the_end()
  for i = 1, 20000 do kept[i % 1009] = {i} end
end
local function wait_for_the_end()
  while running() do
    before_the_end()
    check(os.clock() < GIVE_UP, "it never ended")
  end
  local stop = os.clock() + 0.05
  repeat after_the_end() until os.clock() > stop
end

-- Waits until no thread of the profiler is left.
local function wait_for_the_threads()
  repeat
    local list = io.popen("cat /proc/" .. ffi.C.getpid() .. "/task/*/comm")
    local names = list:read("*a")
    list:close()
    check(os.clock() < GIVE_UP, "a thread stays", names)
  until not names:find("ljprof", 1, true)
end

if how == "record" then
  wait_for_the_end()
  wait_for_the_threads()
  io.open("ran-on", "w"):close()
  os.exit(7)
elseif how == "fork" then
  local pid = ffi.C.fork()
  wait_for_the_end()
  if pid == 0 then
    io.open("child-ran-on", "w"):close()
    ffi.C._exit(0)
  end
  ffi.C.waitpid(pid, nil, 0)
  io.open("ran-on", "w"):close()
  os.exit(0)
end

-- Sessions that are stopped at about the time when they end by themselves, and
-- the next one starts at once.
if how == "race" then
  local kinds, stopped = {misc.sysprof, misc.memprof, misc.profile}, 0
  for i = 1, 200 do
    local profiler = kinds[i % 3 + 1]
    check(profiler.start{path = "race.ljp", duration = 0.001 * (1 + i % 5)})
    local stop = os.clock() + 0.001 * (i % 7)
    repeat kept[i % 1009] = {i} until os.clock() > stop
    if profiler.stop() then stopped = stopped + 1 end
    while running() do end -- profiler.stop() came between its two parts
  end
  print("stopped by the program: " .. stopped .. " of 200")
  os.exit(0)
end

-- Forks while the session's end waits for the reader of a pipe, and before that.
if how == "forks" then
  local options = {path = "pipe", fork = "follow", flush = 10, duration = 0.3}
  if arg[2] == "profile" then
    options.memory = {every = true}
  else
    options.every = true
  end
  check(misc[arg[2]].start(options))
  for i = 1, 60000 do kept[i] = {i} end -- More than a pipe holds.
  for _ = 1, 20 do
    if ffi.C.fork() == 0 then
      before_the_end()
      ffi.C.usleep(200000) -- The writer of a child begins late.
      ffi.C.exit(0)
    end
    ffi.C.usleep(50000)
  end
  io.open("forked", "w"):close()
  while ffi.C.waitpid(-1, nil, 0) > 0 do end
  os.exit(0)
end

local profiler = misc[how]
for _, duration in ipairs{0, -1, 0 / 0, 1 / 0, "1", true} do
  checks.fails("duration " .. tostring(duration), 22,
    "option 'duration' is", profiler.start{duration = duration})
end
check(profiler.start{path = "over.ljp", duration = 0.2}, "start")
wait_for_the_end()
checks.fails("stop afterwards", 22, "running", profiler.stop())
-- A session that is stopped earlier; the next one outlives its time.
check(profiler.start{path = "early.ljp", duration = 0.1}, "start")
before_the_end()
profiler.stop()
check(profiler.start{path = "next.ljp"}, "start")
local stop = os.time() + 2
repeat before_the_end() until os.time() >= stop
check(running(), "the next session goes on")
check(profiler.stop(), "stop")
-- The end of the program does not wait for a session's time.
check(profiler.start{path = "last.ljp", duration = 1e6}, "start")
before_the_end()
print(checks.count > 5 and "ok")
