-- luajit memprof_faults.lua CASE FILE: what happens to programs while their memory
-- is recorded. Prints what depends on the program alone.
local case, path = ...
local start = case:match("^both") and function()
  assert(misc.profile.start { path = path, memory = { every = true },
    cpu = { interval = 0.1, max_overhead = 0 } })
end or function()
  assert(misc.memprof.start { path = path, every = true, flush = 50 })
end
local stop = case:match("^both") and misc.profile.stop or misc.memprof.stop
if case:match("plain$") then
  start, stop = function() end, function() return true end
end

local function work(n)
  local kept = {}
  for i = 1, n do
    kept[i % 101] = { tostring(i) }
  end
end

-- Strings, one twice as long as the one before, until there is no memory.
local function exhaust()
  local s, rounds = ("x"):rep(1009), 0
  local ok, message
  repeat
    ok, message = pcall(function()
      s = s .. s
    end)
    rounds = rounds + 1
  until not ok
  return rounds, message
end

-- Blocks of sizes that nobody can have, asked for in all ways there are: by
-- themselves, and for a block that grows.
local function refused()
  local ffi, new = require "ffi", require "table.new"
  local function none(...)
    local ok, message = pcall(...)
    assert(not ok and message == "not enough memory", message)
  end
  for i = 1, 7 do
    none(ffi.new, "char[?]", 700000000 + i)
    none(new, 100000000 + i, 0)
    none(string.rep, "x", 700000010 + i)
    local t = {}
    for k = 1, 5 do t[k] = k end
    work(211)
  end
end

if case:match("refused") then
  -- "seldom": no block is so large that it would be a sample.
  local ways = { refused = { every = true }, sampledrefused = { sample = 524288 },
    seldomrefused = { sample = 10 ^ 12 } }
  ways[case].path = path
  assert(misc.memprof.start(ways[case]))
  refused()
  assert(misc.memprof.stop())
  local status = misc.memprof.status()
  print(status.failed, status.cut)
  return
end

start()
if case:match("^limit") or case:match("^bothlimit") then
  print(exhaust())
  work(1009)
  print(exhaust())
  print(stop())
elseif case:match("^full") or case:match("^bothfull") then
  work(300000)
  print("worked")
  local ok, message, number = stop()
  if not case:match("plain$") then io.stderr:write(tostring(ok), " ", message, " ", number) end
elseif case:match("^fork") or case:match("^bothfork") then
  local ffi = require "ffi"
  ffi.cdef "int fork(void); int waitpid(int, int *, int); void _exit(int);"
  work(20011)
  local child = ffi.C.fork()
  if child == 0 then
    work(30011)
    ffi.C._exit(misc.memprof.status().state == "running" and 1 or 0)
  end
  local status = ffi.new("int[1]")
  ffi.C.waitpid(child, status, 0)
  print("child ended with", status[0])
  work(20021)
  print(stop())
elseif case == "steps" then -- children whose first event is the collector's
  assert(stop())
  assert(misc.memprof.start { path = path, every = true, fork = "follow" })
  local ffi = require "ffi"
  ffi.cdef "int fork(void); int waitpid(int, int *, int);"
  local status, sum = ffi.new("int[1]"), 0
  work(20011)
  for _ = 1, 29 do
    local child = ffi.C.fork()
    if child == 0 then
      collectgarbage("step", 0)
      work(11)
      os.exit(stop() and 7 or 1)
    end
    ffi.C.waitpid(child, status, 0)
    sum = sum + status[0] / 256
    collectgarbage("step", 0)
  end
  print("children ended with", sum)
  print(stop())
elseif case:match("follow") then
  assert(stop())
  if case == "bothfollow" then
    assert(misc.profile.start { path = path, fork = "follow",
      memory = { every = true } })
  else
    assert(misc.memprof.start { path = path, every = true, fork = "follow" })
  end
  local ffi = require "ffi"
  ffi.cdef "int fork(void); int waitpid(int, int *, int);"
  work(20011)
  local child = ffi.C.fork()
  if child == 0 then
    work(30011)
    os.exit(misc.memprof.status().state == "running" and stop() and 7 or 1)
  end
  local status = ffi.new("int[1]")
  ffi.C.waitpid(child, status, 0)
  print("child ended with", status[0] / 256)
  work(20021)
  print(stop())
elseif case:match("^exit") then
  work(50021)
  os.exit(3)
elseif case:match("^error") then
  work(50021)
  error("as it wants")
elseif case:match("^forget") then
  work(50021)
end
