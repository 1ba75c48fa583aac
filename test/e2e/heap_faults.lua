-- heap_faults.lua WAY once|onward STRIDE: takes many heap snapshots. In the first one
-- the first call fails, in the next one the second call, and so on (failing_calls.c).
-- Each snapshot is whole, or refused with a reason; nothing is left of it, and the
-- next one succeeds. onward: all later calls fail, too. STRIDE: after the 50th call,
-- only each STRIDE-th one fails (most of these calls name builtins). Prints the number
-- of failed calls, and of refusals.
jit.off()
local checks = dofile((arg[0]:gsub("[^/]+$", "checks.lua")))
local check = checks.check
local way, onward, stride = arg[1], arg[2] == "onward", tonumber(arg[3])
local ffi = require("ffi")
ffi.cdef [[
  void failing_arm(long, int); long failing_disarm(void);
  const char *failing_name(void);
  long failing_blocks(void), failing_mapped(void);
  long failing_descriptors(void), failing_threads(void), failing_spoiled(void);
  int waitpid(int, int *, int); int usleep(unsigned);
]]
local C, memprof = ffi.C, misc.memprof
local ONWARD, NOT_WRITER, PREAD_ONLY, SLOW_WAITER = 1, 2, 4, 8
local WNOHANG, ALL, ECHILD, EBUSY = 1, 0x40000000, 10, 16
local in_session = way:find("^session")

-- What a snapshot must not keep.
local function in_use()
  collectgarbage()
  check(C.failing_spoiled() == 0, "freed memory was written to")
  return { descriptors = tonumber(C.failing_descriptors()),
    threads = tonumber(C.failing_threads()),
    blocks = tonumber(C.failing_blocks()), mapped = tonumber(C.failing_mapped()) }
end

-- What there is more of than before.
local function more(before, after)
  for key, value in pairs(before) do
    if after[key] > value then return ("%s: %d > %d"):format(key, after[key], value) end
  end
end

-- What is left. A thread that ends still has some for a moment.
local function settled(before)
  local left
  for _ = 1, 1000 do
    left = more(before, in_use())
    if not left then break end
    C.usleep(1000)
  end
  return left
end

local function options(path)
  local o = { wait = way ~= "behind" }
  if not in_session then o.path = path end
  if way == "place" or way == "session_place" then o.in_place = true end
  return o
end

-- Waits until the one before is over.
local function whole(path)
  local r, message, errno
  repeat
    r, message, errno = memprof.snapshot(options(path))
    if errno == EBUSY then C.usleep(1000) end
  until errno ~= EBUSY
  check(r, "a snapshot in which nothing fails", message, errno)
  if way == "behind" then
    while select(3, memprof.snapshot { path = path, wait = true }) == EBUSY do
      C.usleep(1000)
    end
  end
  return r
end

-- One snapshot, whose n-th call fails. Returns the name of the call, and whether
-- there is a snapshot.
local function faulty(n, path)
  local how = (onward and ONWARD or 0) +
    (way == "session_read" and PREAD_ONLY or in_session and NOT_WRITER or 0) +
    (in_session and SLOW_WAITER or 0)
  local o = options(path)
  C.failing_arm(n, how)
  local r, message, errno = memprof.snapshot(o)
  if way == "behind" then C.usleep(5000) end
  C.failing_disarm()
  local name = C.failing_name() ~= nil and ffi.string(C.failing_name())
  local what = ("call %d (%s)"):format(n, name or "none")
  if r then
    check(way == "behind" or (r.bytes == r.heap_bytes and r.objects > 100), what)
  else
    check(type(message) == "string" and #message > 20 and errno > 0 and errno ~= EBUSY,
      what, message, errno)
    local advice = { [12] = "ulimit -v", [24] = "ulimit -n", [28] = "free space",
      [125] = "path of its own" }
    check(advice[errno] == nil or message:find(advice[errno], 1, true), what, message)
    check(not message:find("Success") and not message:find("unknown"), what, message)
  end
  return name, r
end

local function attempt(n, path, session)
  if in_session then
    assert(memprof.start { path = session, every = true })
  end
  local name, r = faulty(n, path)
  if in_session then
    local after, why = memprof.snapshot { wait = true, path = path .. ".own" }
    check(after, "a snapshot in a file of its own", why)
    check(memprof.stop(), "the session's end")
  else
    whole(path)
  end
  check(C.waitpid(-1, nil, WNOHANG + ALL) == -1 and ffi.errno() == ECHILD,
    "a copy is left")
  return name, r
end

heap = {}
for i = 1, 3001 do heap[i] = { i, "item " .. i, function() return heap end } end
attempt(0, "first.ljp", "first-session.ljp")
attempt(0, "first.ljp", "first-session.ljp")
local n, failed, refused, silent = 0, 0, 0, 0
repeat
  n = n + (n < 50 and 1 or stride)
  local name, r, left
  for try = 0, 6 do -- What is set up once stays; what leaks grows each time.
    local before = in_use()
    name, r = attempt(n, ("call-%d.ljp"):format(n), ("session-%d.ljp"):format(n))
    left = try == 0 and "all" or settled(before)
    if not left then break end
  end
  check(not left, ("call %d (%s) leaves %s"):format(n, tostring(name), tostring(left)))
  failed = failed + (name and 1 or 0)
  refused = refused + (r and 0 or 1)
  -- Whether a call of another thread is in time is a matter of chance.
  silent = name and 0 or silent + 1
until silent == (way == "behind" and 3 or 1)
print(failed, refused)
