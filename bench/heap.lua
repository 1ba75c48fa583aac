-- For heap.sh. heap.lua pause MB FILE: takes snapshots of a heap of this size, and
-- prints for how many ms each call held up the program.
-- heap.lua walk OBJECTS FILE: writes a snapshot of small arrays in one large array;
-- each refers to another two. Prints objects, references, the walk's seconds, and the
-- bytes of the file.
-- heap.lua bytes OBJECTS FILE: writes snapshots of so many arrays with 2 and with 10
-- references each, to random arrays. Prints the bytes of the file that an object takes,
-- and those that a reference takes.
-- heap.lua analyze LJPROF FILE [OPTION]...: runs `ljprof heap`; prints the seconds of
-- CPU time that it took, and its peak memory in bytes.
local ffi = require("ffi")
local what, amount, file = arg[1], arg[2], arg[3]

local function random_arrays(count, refs)
  local all, new_table = {}, require("table.new")
  for i = 1, count do
    all[i] = new_table(refs, 0)
  end
  for i = 1, count do
    for k = 1, refs do
      all[i][k] = all[math.random(count)]
    end
  end
  return all
end

-- Milliseconds for which clone() holds up the program. The copy ends at once.
local function bare_clone()
  ffi.cdef [[
    long syscall(long number, ...);
    int waitpid(int pid, int *status, int options);
    int clock_gettime(int clock, long *time);
  ]]
  local clone, exit_group, monotonic, wclone = 56, 231, 1, -2 ^ 31
  local from, to, none = ffi.new("long[2]"), ffi.new("long[2]"), ffi.new("long")
  ffi.C.clock_gettime(monotonic, from)
  local pid = tonumber(ffi.C.syscall(clone, none, none, none, none, none))
  if pid == 0 then
    ffi.C.syscall(exit_group, none)
  end
  ffi.C.clock_gettime(monotonic, to)
  assert(pid > 0 and ffi.C.waitpid(pid, nil, wclone) == pid, "no clone")
  return tonumber(to[0] - from[0]) * 1e3 + tonumber(to[1] - from[1]) / 1e6
end

if what == "pause" then
  collectgarbage("setpause", 100)
  local all, bytes = {}, tonumber(amount) * 2 ^ 20
  while collectgarbage("count") * 1024 < bytes do
    for _ = 1, 1000 do
      all[#all + 1] = { id = #all, name = "name " .. #all, { #all } }
    end
  end
  collectgarbage()
  local pauses, clones = {}, {}
  for i = 1, 15 do
    local r = assert(misc.memprof.snapshot { path = file, wait = true })
    assert(r.taken == "copy", "no copy of the process")
    pauses[i] = r.pause * 1e3
    clones[i] = bare_clone()
  end
  table.sort(pauses)
  table.sort(clones)
  local words = { pauses[1], pauses[8], pauses[15], clones[1], clones[8], clones[15] }
  words[7] = io.open("/proc/self/status"):read("*a"):match("VmRSS:%s+(%d+)") / 1024
  print(("%.2f "):rep(7):format(unpack(words)))
elseif what == "walk" then
  collectgarbage("stop")
  Kept = random_arrays(tonumber(amount), 2)
  local best
  for _ = 1, 3 do
    local r = assert(misc.memprof.snapshot { path = file, wait = true })
    best = best and best.walk < r.walk and best or r
  end
  print(best.objects, best.refs, best.walk, best.file_bytes)
elseif what == "bytes" then
  collectgarbage("stop")
  local few, many = 2, 10
  local function taken(refs)
    Kept = random_arrays(tonumber(amount), refs)
    return assert(misc.memprof.snapshot { path = file, wait = true, gc = true })
  end
  local a, b = taken(few), taken(many)
  local of_ref = (b.file_bytes - a.file_bytes) / (b.refs - a.refs)
  print((a.file_bytes - of_ref * a.refs) / a.objects, of_ref)
else
  ffi.cdef [[
    struct ljp_usage { long user_s, user_us, system_s, system_us, most_kb, rest[15]; };
    int getrusage(int who, struct ljp_usage *usage);
  ]]
  local command = { "'" .. amount .. "' heap" }
  for i = 4, #arg do
    command[#command + 1] = "'" .. arg[i] .. "'"
  end
  command[#command + 1] = "'" .. file .. "' > /dev/null"
  assert(os.execute(table.concat(command, " ")) == 0, "ljprof heap failed")
  local usage = ffi.new("struct ljp_usage")
  assert(ffi.C.getrusage(-1, usage) == 0) -- RUSAGE_CHILDREN
  local seconds = tonumber(usage.user_s + usage.system_s)
    + tonumber(usage.user_us + usage.system_us) / 1e6
  print(seconds, tonumber(usage.most_kb) * 1024)
end
