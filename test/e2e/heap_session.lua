-- heap_session.lua CASE FILE: heap snapshots in a session's file, and how the
-- session ends.
local case, file = arg[1], arg[2]
local ffi = require("ffi")
ffi.cdef [[
  int getpid(void); int kill(int, int); int fork(void); void _exit(int);
  int waitpid(int, int *, int); int usleep(unsigned); void exit(int);
]]
local EBUSY, EINVAL = 16, 22
local memprof = misc.memprof

local function grow(n)
  local t = {}
  for i = 1, n do t[i] = { i, "item " .. i, function() return t end } end
  return t
end

local function start(options)
  options = options or {}
  options.path = file
  if not options.sample then options.every = true end
  assert(memprof.start(options))
end

-- In the session's file, complete when it returns.
local function snap(options)
  options = options or {}
  options.wait = true
  local r = assert(memprof.snapshot(options))
  assert(r.bytes == r.heap_bytes and r.objects > 100)
  return r
end

local cases = {}

function cases.two()
  start()
  local t = grow(1009)
  snap()
  t.more = grow(2003)
  snap { in_place = true, strings = 0 }
  snap { path = "own.ljp" }
  assert(memprof.stop())
  return #t
end

function cases.last()
  start { snapshot = true }
  local t = grow(1009)
  assert(memprof.snapshot {}) -- The end waits for this one, too.
  assert(memprof.stop())
  return #t
end

function cases.sampled()
  start { sample = 4096, snapshot = true }
  kept = grow(1009)
  assert(memprof.stop())
end

function cases.compressed()
  start { compress = 3, snapshot = true }
  kept = grow(3001)
  assert(memprof.stop())
end

function cases.combined()
  assert(misc.profile.start { path = file, memory = { every = true, snapshot = true } })
  kept = grow(1009)
  snap()
  assert(misc.profile.stop())
end

-- lua_close() ends the session.
function cases.close()
  start { snapshot = true }
  kept = grow(1009)
end

function cases.exit()
  start { snapshot = true }
  kept = grow(1009)
  coroutine.wrap(function() os.exit(7) end)()
end

-- Compiled code has the VM's state in registers: no snapshot there, and no harm.
function cases.exit_compiled()
  start { snapshot = true }
  kept = grow(1009)
  local leave = ffi.C.exit
  for i = 1, 1000 do if i == 900 then leave(7) end end
end

-- Segments of the file: no snapshot is in two of them.
function cases.rotated()
  start { rotate_bytes = 65536, flush = 20 }
  kept = grow(3001)
  for _ = 1, 3 do
    snap()
    grow(3001)
  end
  assert(memprof.stop())
end

function cases.fork()
  start { fork = "follow" }
  kept = grow(1009)
  snap()
  assert(memprof.snapshot {}) -- On its way when the child is made.
  local pid = ffi.C.fork()
  if pid == 0 then
    grow(503)
    local r, message
    repeat r, message = memprof.snapshot { wait = true } until r or not message:find("another")
    assert(r, message)
    assert(memprof.stop())
    ffi.C._exit(5)
  end
  local status = ffi.new("int[1]")
  assert(ffi.C.waitpid(pid, status, 0) == pid and status[0] == 5 * 256, status[0])
  assert(memprof.stop())
end

-- Takes snapshots until the copy of the process for one is caught at work, and
-- stops it. Returns its number, and how many were complete before.
local function stop_copy()
  local self = ffi.C.getpid()
  local children = ("/proc/%d/task/%d/children"):format(self, self)
  for whole = 0, 50 do
    assert(memprof.snapshot {})
    local f = assert(io.open(children))
    local pid = tonumber(f:read("*a"):match("%d+"))
    f:close()
    local state = pid and ffi.C.kill(pid, 19) == 0 and "R"
    while state and state ~= "T" and state ~= "Z" and state ~= "X" do
      ffi.C.usleep(1000)
      f = io.open("/proc/" .. pid .. "/stat")
      state = f and (f:read("*a") or ""):match("%) (%a)")
      if f then f:close() end
    end
    if state == "T" then return pid, whole end
    repeat
      ffi.C.usleep(1000)
      local r, _, errno = memprof.snapshot { wait = true, path = "between.ljp" }
    until r or errno ~= EBUSY
  end
  error("no copy was caught at work")
end

function cases.crash()
  start()
  kept = grow(300000)
  local pid, whole = stop_copy()
  assert(ffi.C.kill(pid, 9) == 0)
  local r, message, errno
  repeat
    ffi.C.usleep(1000)
    r, message, errno = memprof.snapshot { wait = true, path = "later.ljp" }
  until r or errno ~= EBUSY
  assert(r, message)
  assert(memprof.stop())
  print(whole)
end

function cases.killed_before()
  start { flush = 10 }
  kept = grow(300000)
  local pid, whole = stop_copy()
  ffi.C.usleep(100000)
  print(pid, whole)
  io.stdout:flush()
  ffi.C.kill(ffi.C.getpid(), 9)
end

function cases.killed_after()
  start { flush = 10 }
  kept = grow(1009)
  snap()
  ffi.C.usleep(100000)
  ffi.C.kill(ffi.C.getpid(), 9)
end

-- Works until enough snapshots have been taken, or too much time has passed.
local function work(enough)
  local stop, list = os.time() + 60, {}
  repeat
    for i = 1, 20000 do list[i % 997] = { i, tostring(i), function() return list end } end
  until os.time() > stop or enough()
  assert(os.time() <= stop, "no snapshot was taken in time")
end

-- The session takes them itself, while compiled and interpreted code runs.
function cases.interval()
  start { snapshot = 0.1, sample = 4096 }
  work(function() return os.clock() > 1 end)
  assert(memprof.stop())
end

function cases.duration()
  start { snapshot = true, duration = 0.2, sample = 4096 }
  work(function() return memprof.status().state == "stopped" end)
end

-- A program that does nothing has no collector that could be asked.
function cases.duration_idle()
  collectgarbage("stop") -- On a busy machine a cycle could begin even here.
  start { snapshot = true, duration = 0.1 }
  for _ = 1, 40 do
    ffi.C.usleep(500000) -- Few calls: each makes garbage.
    if memprof.status().state == "stopped" then break end
  end
  assert(memprof.status().state == "stopped")
end

function cases.recorded()
  kept = grow(1009)
end

-- While a session of each kind runs: from a coroutine, a hook and a finalizer, into a
-- file of its own, and into the session's.
function cases.kinds()
  local kinds = {
    { misc.sysprof, { timer = "posix" } }, { misc.sysprof, { timer = "tick" } },
    { misc.sysprof, { event = "wall" } }, { memprof, { every = true }, true },
    { memprof, { sample = 512 }, true }, { memprof, { format = "ljm" } },
    { misc.profile, { cpu = { timer = "posix" }, memory = { every = true } }, true },
  }
  for number, kind in ipairs(kinds) do
    local profiler, options, records = kind[1], kind[2], kind[3]
    local taken = 0
    local function take()
      snap { path = "kind.ljp", in_place = taken % 2 == 1 }
      if records then snap { in_place = taken % 2 == 0 } end
      taken = taken + 1
    end
    options.path = ("kind-%d.ljp"):format(number)
    assert(profiler.start(options))
    kept = grow(1009)
    coroutine.wrap(take)()
    debug.sethook(function() debug.sethook() take() end, "", 1)
    for _ = 1, 10 do taken = taken + 0 end
    getmetatable(newproxy(true)).__gc = take
    collectgarbage()
    collectgarbage()
    kept = grow(1009)
    assert(profiler.stop())
    assert(taken == 3, taken)
    print(options.path, records and taken or 0)
  end
end

function cases.refusals()
  local function refused(errno, text, r, message, number)
    assert(r == nil and number == errno and message:find(text, 1, true), message)
  end
  refused(EINVAL, "none is running: give a path", memprof.snapshot())
  refused(EINVAL, "none is running: give a path", memprof.snapshot { wait = true })
  refused(EINVAL, "true, false, or a number", memprof.start { snapshot = 0 })
  refused(EINVAL, "has no heap snapshots", memprof.start { snapshot = true, format = "ljm" })
  assert(memprof.start { path = file, format = "ljm" })
  refused(EINVAL, "has no heap snapshots", memprof.snapshot {})
  assert(memprof.stop())
  assert(memprof.start { path = file })
  assert(memprof.snapshot {})
  local r, message, errno = memprof.snapshot {}
  assert(r or (errno == EBUSY and message:find("another heap snapshot")))
  assert(memprof.stop())
  -- Once the session has ended, a snapshot has nowhere to go.
  refused(EINVAL, "none is running: give a path", memprof.snapshot {})
end

cases[case]()
