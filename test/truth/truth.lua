-- A program that measures where its CPU time goes: each part runs in slices of
-- many lengths, and the thread's CPU clock times each slice.
--
--   truth.lua SECONDS INTERVAL TIMER FILE TABLE
--
-- Writes the profile and a table of "part seconds frame" (truth_judge).
local seconds, interval, timer, file, table_file = ...
local ffi = require("ffi")
local truth = require("truth_module")
local session = dofile((arg[0]:gsub("[^/]+$", "session.lua")))
local clock = truth.clock
ffi.cdef("long getrandom(void *, size_t, unsigned);")
local buffer = ffi.new("char[65536]")
local text = ("the quick brown fox "):rep(5000)

local function part_numeric(n)
  local x = 0
  for i = 1, n * 40 do
    x = (x * 31 + i) % 1000003
  end
  return x
end

local function step(t, i)
  t[i % 64 + 1] = i
  return #t
end
local function part_calls(n)
  local t, sum = {}, 0
  for i = 1, n * 20 do
    sum = sum + step(t, i)
  end
  return sum
end

local function part_coroutine(n)
  local sum = 0
  for i = 1, n * 5 do
    sum = sum + i % 7
    coroutine.yield(sum)
  end
end
local resume, create = coroutine.resume, coroutine.create
local function part_resume(n)
  local co = create(part_coroutine)
  for _ = 1, n * 5 do
    resume(co, n)
  end
end

local function part_builtin(n)
  local sum = 0
  for i = 1, n / 128 do
    -- A different string each time: otherwise the compiler would hoist the call
    -- out of the loop.
    sum = sum + text:sub(1 + i % 64):reverse():byte()
  end
  return sum
end


local function part_read(n)
  return truth.read_zero(n / 8)
end

local function part_random(n)
  for _ = 1, n / 64 do
    ffi.C.getrandom(buffer, 4096, 0)
  end
end

-- Each C function is a part, regardless of its caller.
local spin, divide = truth.spin, truth.divide
local parts = {
  { name = "Lua loop", frame = "part_numeric ", run = part_numeric },
  { name = "Lua calls", frame = "part_calls ", run = part_calls },
  { name = "coroutine", frame = "part_resume ", run = part_resume },
  { name = "builtin", frame = "part_builtin ", run = part_builtin },
  { name = "C function 1", frame = truth.frame("spin"), run = spin },
  { name = "C function 2", frame = truth.frame("divide"), run = divide },
  { name = "read(2) in C", frame = truth.frame("read_zero"), run = part_read },
  { name = "getrandom, FFI", frame = "part_random ", run = part_random },
}

local used, seed = {}, 1
for i = 1, #parts do
  used[i] = 0
end
local function slice()
  for i = 1, #parts do
    seed = (seed * 16807) % 2147483647
    local n = 512 + seed % 4096
    local run = parts[i].run
    local began = clock()
    run(n)
    used[i] = used[i] + (clock() - began)
  end
end
-- Each part must be called, not inlined into one trace with the clock.
jit.off(slice)
for _ = 1, 10 do
  slice()
end
for i = 1, #parts do
  used[i] = 0
end

session(file, interval, timer)
local began = clock()
repeat
  slice()
until clock() - began > tonumber(seconds)
local all = clock() - began
assert(misc.sysprof.stop())

local out = assert(io.open(table_file, "w"))
local sum = 0
for i, part in ipairs(parts) do
  out:write(("%s\t%.9f\t%s\n"):format(part.name, used[i], part.frame))
  sum = sum + used[i]
end
out:write(("other\t%.9f\t\n"):format(all - sum))
out:close()
