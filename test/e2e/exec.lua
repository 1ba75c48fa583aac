-- Programs that exec while they are sampled. Usage: luajit exec.lua TIMER
-- MODE N, in a folder of its own. In N children the profiler samples as often as
-- it can; each then replaces itself by another program. MODE: "own", each child
-- starts its session; "follow", the sessions follow the forks. Prints how many
-- of the new programs did not end as they should.
local ffi = require("ffi")
ffi.cdef[[
int fork(void);
int execv(const char *path, const char *const *argv);
int waitpid(int pid, int *status, int options);
void _exit(int code);
]]
local timer, mode, n = arg[1], arg[2], tonumber(arg[3])

local function spin(seconds)
  local t0, x = os.clock(), 0
  while os.clock() - t0 < seconds do
    for i = 1, 1000 do x = x + i % 3 end
  end
  return x
end

local function start(path)
  local ok, why = misc.sysprof.start{path = path, timer = timer,
    interval = 0.05, max_overhead = 0, fork = mode == "follow" and mode or nil}
  if not ok then
    print("refused: " .. why)
    os.exit(77)
  end
end

if mode == "follow" then start("parent.ljp") end
local argv = ffi.new("const char *[2]")
argv[0] = "true"
local status = ffi.new("int[1]")
local bad = 0
for i = 1, n do
  local child = ffi.C.fork()
  if child == 0 then
    if mode == "own" then start("child." .. i .. ".ljp") end
    spin(0.003)
    ffi.C.execv("/bin/true", argv)
    ffi.C._exit(1)
  end
  assert(child > 0 and ffi.C.waitpid(child, status, 0) == child)
  if status[0] ~= 0 then bad = bad + 1 end
end
if mode == "follow" then assert(misc.sysprof.stop()) end
print(bad)
