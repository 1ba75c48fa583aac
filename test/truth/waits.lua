-- A program that measures where its threads wait: each part waits or works for
-- many lengths of time, and the monotonic clock times it. Fails if a wait ends
-- early.
--
--   waits.lua SECONDS INTERVAL TIMER FILE TABLE
--
-- Writes the profile and a table of "part seconds frame" (truth_judge).
local seconds, interval, timer, file, table_file = ...
local ffi = require("ffi")
local waits = require("truth_waits")
local session = dofile((arg[0]:gsub("[^/]+$", "session.lua")))
local clock = waits.clock
ffi.cdef([[
typedef struct { long s, ns; } span;
int usleep(unsigned);
int poll(void *, unsigned long, int);
int nanosleep(const span *, span *);
]])
local C = ffi.C

local function part_usleep(ms)
  local began = clock()
  assert(C.usleep(ms * 1000) == 0, "usleep was interrupted")
  assert(clock() - began >= ms / 1000, "usleep ended early")
end

local function part_poll(ms)
  local began = clock()
  assert(C.poll(nil, 0, ms) == 0, "poll was interrupted")
  assert(clock() - began >= ms / 1000, "poll ended early")
end

-- Many short waits, compiled with the loop around them.
local span = ffi.new("span", 0, 500000)
local function part_short(ms)
  for _ = 1, ms do
    assert(C.nanosleep(span, nil) == 0, "nanosleep was interrupted")
  end
end

local function part_work(ms)
  local x, until_ = 0, clock() + ms / 1000
  repeat
    for i = 1, 2000 do
      x = (x * 31 + i) % 1000003
    end
  until clock() > until_
  return x
end

local parts = {
  { name = "usleep, FFI", frame = "part_usleep ", run = part_usleep },
  { name = "poll, FFI", frame = "part_poll ", run = part_poll },
  { name = "short, FFI", frame = "part_short ", run = part_short },
  { name = "Lua works", frame = "part_work ", run = part_work },
}
for _, name in ipairs({ "sleep", "poll", "epoll", "read", "futex", "lock",
                        "spin" }) do
  table.insert(parts, { name = name .. " in C", frame = waits.frame(name),
                        run = waits[name] })
end

local used, seed = {}, 1
local function slice()
  for i = 1, #parts do
    seed = (seed * 16807) % 2147483647
    local ms = 8 + seed % 17
    local run = parts[i].run
    local began = clock()
    run(ms)
    used[i] = (used[i] or 0) + (clock() - began)
  end
end
-- Each part must be called, not inlined into one trace with the clock.
jit.off(slice)

waits.threads()
slice()
for i = 1, #parts do
  used[i] = 0
end
session(file, interval, timer, "wall")
local began = clock()
local before = { waits.worker() }
repeat
  slice()
until clock() - began > tonumber(seconds)
local after = { waits.worker() }
local all = clock() - began
assert(misc.sysprof.stop())

local out = assert(io.open(table_file, "w"))
local function line(name, time, frame)
  out:write(("%s\t%.9f\t%s\n"):format(name, time, frame))
end
for i, name in ipairs({ "worker_sleep", "worker_poll", "worker_spin" }) do
  line(name, after[i] - before[i], waits.frame(name))
end
line("waker", all, waits.frame("waker_main"))
local sum = 0
for i, part in ipairs(parts) do
  line(part.name, used[i], part.frame)
  sum = sum + used[i]
end
line("other", all - sum, "")
out:close()
