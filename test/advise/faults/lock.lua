-- kind: lock
-- function: store
-- record: --event wall
local ffi = require "ffi"
ffi.cdef [[
typedef struct { char bytes[64]; } mutex;
typedef struct { long s, ns; } moment;
int pthread_mutex_init(mutex *, void *);
int pthread_mutex_lock(mutex *);
int pthread_mutex_unlock(mutex *);
int pthread_mutex_timedlock(mutex *, const moment *);
int clock_gettime(int, moment *);
]]
local C, lock, moment = ffi.C, ffi.new("mutex"), ffi.new("moment")
C.pthread_mutex_init(lock, nil)
C.pthread_mutex_lock(lock) -- As another thread would.

local function store(n)
  C.clock_gettime(0, moment)
  moment.ns = moment.ns + 20000000
  if moment.ns >= 1000000000 then
    moment.s, moment.ns = moment.s + 1, moment.ns - 1000000000
  end
  C.pthread_mutex_timedlock(lock, moment) -- FAULT
  return n % 7
end

local sum = 0
for i = 1, 30 do
  for k = 1, 200000 do sum = (sum * 31 + k) % 65521 end
  sum = sum + store(i)
end
print(sum)
