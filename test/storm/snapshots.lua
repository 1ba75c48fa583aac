-- snapshots.lua SECONDS PAUSE [MODE]: works with tables, closures, coroutines, strings and
-- cdata, and takes a snapshot of the heap every PAUSE seconds (0: none), by turns in
-- a copy and in place, now and then in a finalizer, a hook or a callback of sort.
-- MODE every, sampled: while a memory session runs, by turns into its file, and the
-- session takes some itself. Prints what it has computed; to stderr, what the snapshots held.
local seconds, pause = tonumber(arg[1]), tonumber(arg[2])
local mode = arg[3]
local ffi = require("ffi")
local rounds = 2000
local taken, refused, unequal, pauses, copies = 0, 0, 0, 0, 0
local due = os.clock()

local function snapshot()
  if pause == 0 or os.clock() < due then return end
  due = os.clock() + pause
  local wait = taken % 3 ~= 0
  local r, message, errno = misc.memprof.snapshot {
    path = (not mode or taken % 4 == 3) and "storm.ljp" or nil, wait = wait,
    in_place = taken % 5 == 4, strings = taken % 7 }
  if not r then
    if errno ~= 16 then error(message) end
    refused = refused + 1
    return
  end
  taken = taken + 1
  if r.taken == "copy" then
    pauses, copies = pauses + r.pause, copies + 1
  end
  if r.bytes ~= r.heap_bytes then unequal = unequal + 1 end
end

local sum, kept = 0, {}
local function work(i)
  local t = {}
  for k = 1, 40 do
    t[k] = { k, tostring(k * i), { name = "n" .. k % 9, f = function() return k, t end } }
  end
  table.sort(t, function(a, b)
    if a[1] == 7 and b[1] == 8 then snapshot() end
    return a[2] < b[2]
  end)
  local co = coroutine.wrap(function(a)
    for k = 1, 5 do a = coroutine.yield(a + #t[k][2]) end
  end)
  for k = 1, 4 do sum = (sum + (co(k) or 0)) % 1000003 end
  local box = ffi.gc(ffi.new("int[?]", i % 50 + 1), function() snapshot() end)
  box[0] = i
  kept[i % 200] = { t, box, co, (("x"):rep(i % 300)):gsub("x", "y") }
  sum = (sum + box[0] + #t) % 1000003
end

if mode then
  assert(misc.memprof.start { path = "session.ljp", every = mode == "every" or nil,
    sample = mode == "sampled" and 4096 or nil, snapshot = 0.1 })
end
local start = os.clock()
for round = 1, rounds do
  work(round)
  if round % 50 == 0 then snapshot() end
  if round % 400 == 0 then
    debug.sethook(function() snapshot() end, "", 1000)
    for k = 1, 20 do work(round + k) end
    debug.sethook()
  end
end
local result = sum
while os.clock() - start < seconds do
  snapshot()
  work(1)
end
print(result)
if mode then assert(misc.memprof.stop()) end
repeat -- the last copy may still be at work
  local ok, message, errno = misc.memprof.snapshot { path = "storm.ljp", wait = true }
  assert(ok or errno == 16, message)
until ok
ffi.cdef("int waitpid(int, int *, int);")
local WNOHANG, ALL, ECHILD = 1, 0x40000000, 10
assert(ffi.C.waitpid(-1, nil, WNOHANG + ALL) == -1 and ffi.errno() == ECHILD,
  "a copy is left")
io.stderr:write(("%d snapshots, %d refused, %d unequal, mean pause %.2f ms\n"):format(
  taken, refused, unequal, pauses / math.max(1, copies) * 1e3))
os.exit(unequal == 0)
