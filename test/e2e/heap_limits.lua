-- heap_limits.lua LIMIT [WAY]: heap snapshots while a limit of the process is just
-- above what it uses, in small steps. Each is whole, or refused with a reason; the
-- program goes on. Prints the number of snapshots, and of refusals.
jit.off()
local checks = dofile((arg[0]:gsub("[^/]+$", "checks.lua")))
local check = checks.check
local limit, way = arg[1], arg[2] or "copy"
local ffi = require("ffi")
ffi.cdef [[
  struct limit { unsigned long now, most; };
  int getrlimit(int, struct limit *); int setrlimit(int, const struct limit *);
  int waitpid(int, int *, int); int usleep(unsigned); int setresuid(int, int, int);
  int prctl(int, long, long, long, long); int getpid(void); int kill(int, int);
  int fork(void); void _exit(int);
]]
local C, memprof = ffi.C, misc.memprof
local NUMBERS = { file_size = 1, processes = 6, descriptors = 7, memory = 9 }
local WNOHANG, ALL, ECHILD, EBUSY, PAGE = 1, 0x40000000, 10, 16, 4096
local in_session = way == "session"
local most = ffi.new("struct limit[1]")
assert(C.getrlimit(NUMBERS[limit] or 9, most) == 0)

heap = {}
for i = 1, 1009 do heap[i] = { i, "item " .. i, function() return heap end } end
do -- The collector keeps the memory, so what follows need not ask the system.
  local room = {}
  for i = 1, 20011 do room[i] = { i } end
end
collectgarbage()

local function number_in(path)
  local f = assert(io.open(path))
  local n = f:read("*n")
  f:close()
  return n
end

local function await(path)
  local r, message, errno
  repeat
    r, message, errno = memprof.snapshot { path = path, wait = true }
    if errno == EBUSY then C.usleep(500) end
  until errno ~= EBUSY
  return check(r and r.bytes == r.heap_bytes, "without the limit", message, errno)
end

local taken, refused, in_place = 0, 0, 0
local wanted = ffi.new("struct limit[1]")
-- One snapshot under a limit; of memory: beyond what is in use.
local function attempt(value, number)
  local path = ("%s-%s.ljp"):format(limit, way)
  local options = { path = path, wait = way ~= "behind", in_place = way == "place" }
  if in_session then
    options.path = nil
    check(memprof.start { path = "session.ljp", every = true }, "the session")
  end
  if limit == "memory" then value = value + number_in("/proc/self/statm") * PAGE end
  wanted[0].now, wanted[0].most = value, most[0].most
  check(C.setrlimit(number, wanted) == 0, "setrlimit", value)
  local r, message, errno = memprof.snapshot(options)
  check(C.setrlimit(number, most) == 0, "setrlimit back")
  taken = taken + 1
  if r then
    check(way == "behind" or r.bytes == r.heap_bytes, limit, r.bytes, r.heap_bytes)
    in_place = in_place + (r.refused and 1 or 0)
  else
    refused = refused + 1
    local advice = { memory = "ulimit -v", descriptors = "ulimit -n",
      file_size = "ulimit -f" }
    check(errno > 0 and errno ~= EBUSY, limit, message, errno)
    check(message:find(advice[limit] or "; ", 1, true), limit, message)
  end
  if in_session then
    local good, why = memprof.stop()
    check(good or limit == "file_size", "the session's end", why)
  end
  await(path .. ".next")
  check(C.waitpid(-1, nil, WNOHANG + ALL) == -1 and ffi.errno() == ECHILD,
    "the copy is gone")
  return r
end

local cases = {}

-- In children: what the first snapshot of a process allocates is kept for the next.
function cases.memory()
  local REFUSED, PLACE, FAILED = 1, 2, 3
  local status = ffi.new("int[1]")
  for step = 0, 127 do
    local pid = C.fork()
    if pid == 0 then
      local good, r = pcall(function()
        return attempt(step * 5 * PAGE, NUMBERS.memory) or false
      end)
      if not good then io.stderr:write(r, "\n") end
      C._exit(not good and FAILED or not r and REFUSED or r.refused and PLACE or 0)
    end
    check(C.waitpid(pid, status, 0) == pid, "a child")
    local code = status[0] / 256
    check(code < FAILED, "a child", step, status[0])
    taken = taken + 1
    refused = refused + (code == REFUSED and 1 or 0)
    in_place = in_place + (code == PLACE and 1 or 0)
  end
end

function cases.descriptors()
  for n = 0, 24 do attempt(n, NUMBERS.descriptors) end
end

function cases.file_size()
  local bytes = 0
  repeat
    local r = attempt(bytes, NUMBERS.file_size)
    bytes = bytes + 4099
  until r and bytes > 100000
end

-- As another user, since the limit is not for root.
function cases.processes()
  if C.setresuid(54321, 54321, 54321) == 0 then
    C.prctl(4, 1, 0, 0, 0) -- PR_SET_DUMPABLE: /proc/self is ours.
  end
  for n = 0, 4 do attempt(n, NUMBERS.processes) end
  attempt(most[0].now, NUMBERS.processes)
  check(in_place > 0, "no copy was refused")
end

-- For disks of all sizes: one snapshot into a folder.
function cases.disk()
  local path = way .. "/disk.ljp"
  for _, place in ipairs { false, true } do
    local r, message, errno = memprof.snapshot { path = path, wait = true, in_place = place }
    taken, refused = taken + 1, refused + (r and 0 or 1)
    check(r or errno == 28, "a full disk", message, errno)
  end
  if not memprof.start { path = way .. "/session.ljp", every = true } then return end
  local r, message = memprof.snapshot { wait = true }
  taken, refused = taken + 1, refused + (r and 0 or 1)
  check(r or #message > 20, "a full disk", message)
  memprof.stop()
end

-- Stops a copy of the process that has offered itself to the system. Returns its
-- number, unless it has ended before.
local function stopped(pid)
  local state = pid and C.kill(pid, 19) == 0 and "R"
  while state and not state:find("[TZX]") do
    C.usleep(1000)
    local f = io.open("/proc/" .. pid .. "/stat")
    state = f and (f:read("*a") or ""):match("%) (%a)")
    if f then f:close() end
  end
  if state ~= "T" then return end
  if number_in("/proc/" .. pid .. "/oom_score_adj") == 1000 then return pid end
  C.kill(pid, 18)
end

-- In a group with little memory: pages that the program writes are copied as long
-- as the copy of the process lives, which is stopped for that. So memory runs out,
-- and the system ends the copy.
function cases.group()
  local big = require("table.new")(1000000, 0)
  for i = 1, 1000000 do big[i] = { i } end
  collectgarbage()
  local self = C.getpid()
  local children = ("/proc/%d/task/%d/children"):format(self, self)
  local pid
  for _ = 1, 20000 do
    local r, _, errno = memprof.snapshot("group.ljp")
    check(r or errno == EBUSY, "a snapshot")
    pid = stopped(r and number_in(children))
    if pid then break end
    C.usleep(1000)
  end
  for round = 1, 2 do
    for i = 1, #big do big[i][1] = i + round end
  end
  for i = 1, #big do check(big[i][1] == i + 2, "the heap") end
  if pid then C.kill(pid, 18) end
  taken = pid and 1 or 0
  await("next.ljp")
end

local function sum()
  local n = 0
  for i = 1, #heap do n = n + heap[i][1] + #heap[i][2] end
  return n
end

local before = sum()
cases[limit]()
check(sum() == before, "the heap is as it was")
print(taken, refused, in_place)
