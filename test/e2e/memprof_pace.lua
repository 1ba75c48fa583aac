-- luajit memprof_pace.lua FILE [fork]: a session with a limit of samples, while the
-- program allocates much (far more samples than that), and then little; in between
-- cycles of the collector follow each other quickly. Prints what the judge needs.
local ffi = require "ffi"
ffi.cdef "int fork(void); int waitpid(int, int *, int); int usleep(unsigned); void _exit(int);"
local SAMPLE, LIMIT = 4096, 500
kept = nil -- a global, so that the compiler cannot leave an allocation out

-- A cycle of the collector ends: its own count of them.
local cycles = 0
local function watch()
  local proxy = newproxy(true)
  getmetatable(proxy).__gc = function()
    cycles = cycles + 1
    watch()
  end
end
watch()
collectgarbage()

local function status()
  return misc.memprof.status()
end

assert(misc.memprof.start { path = arg[1], sample = SAMPLE, max_samples = LIMIT,
  fork = arg[2] and "follow" or nil })
local start, before = misc.getmetrics().gc_allocated, cycles
local most = SAMPLE
-- As long as it takes to be noticed, whatever the machine is doing: each round would
-- be some 5,000 samples.
local rounds = 0
repeat
  for i = 1, 200000 do kept = { i, i + 1, i + 2 } end
  rounds = rounds + 1
  most = math.max(most, status().sample_now)
until rounds >= 100 and most >= 64 * SAMPLE or rounds == 2000
local s = status()
print("much", s.allocs, s.alloc_bytes, misc.getmetrics().gc_allocated - start, most,
  rounds)

if arg[2] then
  local pid = ffi.C.fork()
  if pid == 0 then
    assert(status().sample_now == SAMPLE, "a child begins with what was asked for")
    for i = 1, 200000 do kept = { i } end
    assert(misc.memprof.stop())
    ffi.C._exit(0)
  end
  local result = ffi.new "int[1]"
  ffi.C.waitpid(pid, result, 0)
  assert(result[0] == 0, "the child")
end

-- Some 60 samples a second: nearly each of these blocks, and its buffer.
local tries = 0
while status().sample_now > SAMPLE and tries < 3000 do
  tries = tries + 1
  kept = ("x"):rep(2 * status().sample_now + tries)
  ffi.C.usleep(30000)
end
print("little", status().sample_now, tries)
collectgarbage()
local told = status().gc_cycles
print("cycles", told, cycles - before)
assert(misc.memprof.stop())
print("stopped", status().gc_cycles)
