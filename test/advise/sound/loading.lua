-- record: --memory --sample 1024
-- Loads an index that stays, then answers from it, for five times as long.
local ffi = require "ffi"
ffi.cdef [[
typedef struct { long s, ns; } loading_time;
int clock_gettime(int, loading_time *);
]]
local time, monotonic = ffi.new "loading_time", 1
local function now()
  ffi.C.clock_gettime(monotonic, time)
  return tonumber(time.s) + tonumber(time.ns) / 1e9
end

local start, index, seed = now(), {}, 3
local function load(i)
  for k = 1, 400 do seed = (seed * 16807 + k) % 2147483647 end
  index[i] = {id = i, weight = seed % 100}
end

local function answer(question)
  local sum, list = 0, {}
  for k = 1, 4000 do
    sum = sum + index[(question * 31 + k) % #index + 1].weight
  end
  for k = 1, 5 do list[k] = {k, sum} end
  return list
end

for i = 1, 10000 do load(i) end
local stop, questions, sum = start + 6 * (now() - start), 0, 0
repeat
  questions = questions + 1
  sum = sum + #answer(questions)
until questions >= 4000 and now() >= stop
print(sum / questions)
