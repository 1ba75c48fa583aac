-- Heap snapshots in every state that a VM can be in when Lua code runs: the bytes
-- of all objects and parts are what the VM counts. Run in a folder that may be
-- written to; prints the names of the files.
local checks = dofile((arg[0]:gsub("[^/]+$", "checks.lua")))
local check, fails = checks.check, checks.fails
local ffi = require("ffi")
local jit_on = jit.status()
local EBUSY, EINVAL, ENOENT = 16, 22, 2

ffi.cdef("int waitpid(int, int *, int);")
local WNOHANG, ALL, ECHILD = 1, 0x40000000, 10

local files = 0
-- The first copy is checked like all others; every second snapshot is in place.
local function snap(what, options)
  files = files + 1
  local o = options or {}
  o.path = o.path or ("%s-%d.ljp"):format(what, files)
  o.wait = true
  if o.in_place == nil then o.in_place = files % 2 == 0 end
  local r, message = misc.memprof.snapshot(o)
  check(r, what, message)
  check(r.bytes == r.heap_bytes, what .. ": all bytes", r.bytes, r.heap_bytes)
  check(r.objects > 100 and r.refs > r.objects, what .. ": objects")
  check(ffi.C.waitpid(-1, nil, WNOHANG + ALL) == -1 and ffi.errno() == ECHILD,
    what .. ": the copy is gone")
  check(r.taken == (o.in_place and "place" or "copy"), what .. ": taken", r.taken)
  return r
end

local function odd_tables()
  local t = {}
  t[t] = t
  setmetatable(t, t)
  t.__index = t
  t.__mode = "kv"
  local wide, sparse = {}, {}
  for i = 1, 70000 do wide[i] = (i % 7 == 0) and {} or i end
  for i = 1, 20 do sparse[2 ^ i + 0.5] = { [true] = {}, [false] = "no" } end
  local list
  for _ = 1, 50000 do list = { next = list } end
  return { t, wide, sparse, list, setmetatable({}, { __mode = "k" }) }
end

local function garbage(n)
  local kept = {}
  for i = 1, n do
    local s = "string " .. i
    local f = function() return s, kept end
    if i % 3 == 0 then kept[#kept + 1] = { f, s, ffi.new("char[?]", i % 100) } end
    if i % 5 == 0 then coroutine.wrap(function() coroutine.yield(f) end)() end
  end
  return kept
end

-- Step by step through a whole cycle.
local function phases()
  collectgarbage()
  local kept = garbage(3000)
  kept.final = 0
  for _ = 1, 50 do
    getmetatable(newproxy(true)).__gc = function() kept.final = kept.final + 1 end
    ffi.gc(ffi.new("int[4]"), function() kept.final = kept.final + 1 end)
  end
  local seen, before = {}, misc.getmetrics()
  collectgarbage("setstepmul", 100)
  for _ = 1, 100000 do
    collectgarbage("step", 0)
    local m = misc.getmetrics()
    for _, name in ipairs { "propagate", "sweepstring", "sweep", "finalize" } do
      local key = "gc_steps_" .. name
      if m[key] > before[key] then
        seen[name] = (seen[name] or 0) + 1
        if seen[name] % 16 == 1 and seen[name] < 64 then snap(name) end
      end
    end
    before = m
    if kept.final >= 100 then break end
  end
  collectgarbage("setstepmul", 200)
  check(kept.final >= 100, "the finalizers have run", kept.final)
end

local function in_places()
  local co = coroutine.create(function(a)
    local inside = { a }
    snap("coroutine")
    coroutine.yield(inside)
    error("ends badly")
  end)
  check(coroutine.resume(co, "x"), "the coroutine runs")
  snap("suspended")
  check(not coroutine.resume(co), "the coroutine fails")
  snap("failed-coroutine")
  local taken = 0
  debug.sethook(function()
    debug.sethook()
    snap("hook")
    taken = taken + 1
  end, "", 1)
  for _ = 1, 10 do taken = taken + 0 end
  getmetatable(newproxy(true)).__gc = function()
    snap("finalizer")
    taken = taken + 1
  end
  ffi.gc(ffi.new("int[4]"), function()
    snap("cdata-finalizer")
    taken = taken + 1
  end)
  collectgarbage()
  collectgarbage()
  ffi.cdef("void qsort(void *, size_t, size_t, int (*)(const int *, const int *));")
  local sorted = false
  local callback = ffi.cast("int (*)(const int *, const int *)", function(a, b)
    if not sorted then
      sorted = true
      snap("callback")
      taken = taken + 1
    end
    return a[0] - b[0]
  end)
  ffi.C.qsort(ffi.new("int[5]", 5, 3, 4, 1, 2), 5, 4, callback)
  snap("callback-kept")
  callback:free()
  check(not pcall(function() local _ = snap("error") .. nil end), "an error")
  xpcall(function() error("x") end, function() snap("handler") taken = taken + 1 end)
  table.sort({ 3, 1, 2 }, function(a, b)
    if taken == 5 then taken = taken + 1 snap("sort") end
    return a < b
  end)
  ;("abc"):gsub("b", function() snap("gsub") end)
  check(taken == 6, "all places were reached", taken)
  local buffer = require("string.buffer").new()
  buffer:put(("x"):rep(100000))
  snap("buffer")
  check(buffer:tostring():len() == 100000, "the buffer is whole")
end

-- While the trace recorder works: each bytecode that is recorded is an event.
local function recording()
  if not jit_on then return end
  local taken = 0
  local function on_record()
    if taken < 6 then
      taken = taken + 1
      snap("recording")
    end
  end
  jit.attach(on_record, "record")
  local t = { n = 0 }
  for i = 1, 300 do t.n = t.n + #tostring(i) end
  jit.attach(on_record)
  check(taken == 6, "snapshots while a trace is recorded", taken)
  snap("traces")
  jit.flush()
  snap("flushed")
end

local function refusals()
  local snapshot = misc.memprof.snapshot
  fails("a folder that is not there", ENOENT, "cannot write the heap into 'no/such'",
    snapshot("no/such"))
  fails("strings", EINVAL, "from 0 to 4096", snapshot { path = "x", strings = 5000 })
  fails("unknown", EINVAL, "the nearest is 'strings'", snapshot { string = 1 })
  fails("of another call", EINVAL, "misc.memprof.start", snapshot { every = true })
  fails("there", EINVAL, "it is an option of misc.memprof.snapshot",
    misc.memprof.start { strings = 1 })
  fails("no name", EINVAL, "name of a file", snapshot { path = "" })
  fails("a NUL", EINVAL, "has no NUL byte", snapshot { path = "a\0b" })
  fails("no options", EINVAL, 'snapshot{path = "FILE"}; the argument is 5', snapshot(5))
  fails("no names", EINVAL, 'snapshot{path = "FILE"}', snapshot { "a.ljp" })
  local out = assert(io.open("kept", "w"))
  out:write("old")
  out:close()
  local r, message, errno = snapshot { path = "/dev/full", wait = true }
  check(r == nil and errno == 28, "a full disk", message, errno)
  check(assert(io.open("kept")):read("*a") == "old", "the old file is there")
end

phases()
local kept = odd_tables()
check(snap("odd", { strings = 0 }).objects > 50000, "a long list")
snap("long-strings", { strings = 4096 })
check(#kept == 5, "the heap is as it was")
kept = nil
collectgarbage()
in_places()
recording()
refusals()

-- One at a time, without waiting.
check(misc.memprof.snapshot("behind.ljp").taken == "copy", "a copy")
local r, message, errno = misc.memprof.snapshot("refused.ljp")
check(r or (errno == EBUSY and message:find("another heap snapshot")), "busy", message)
misc.closing = newproxy(true)
getmetatable(misc.closing).__gc = function()
  local ok, why, number
  repeat -- the copy above may still be at work
    ok, why, number = misc.memprof.snapshot { path = "closing.ljp", in_place = true }
  until number ~= EBUSY
  assert(ok and ok.bytes == ok.heap_bytes, why)
end
print(checks.count)
