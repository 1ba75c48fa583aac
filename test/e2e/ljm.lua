-- Programs whose memory is recorded in the format ljm, for ljm.sh.
-- Usage: ljm.lua WHAT ARGUMENT...
local what, first, second, third = ...
local ffi = require("ffi")
ffi.cdef [[
  int fork(void);
  int getpid(void);
  int waitpid(int pid, int *status, int options);
  void _exit(int code);
]]

local function start(path, more)
  local options = {path = path, format = "ljm"}
  for key, value in pairs(more or {}) do options[key] = value end
  assert(misc.memprof.start(options))
  local status = misc.memprof.status()
  assert(status.format == "ljm" and status.every and status.sample == 0)
end

-- "allocs frees reallocs" of the session that has ended.
local function counts()
  local s = misc.memprof.status()
  assert(s.losses == 0, "events were lost")
  return ("%d %d %d"):format(s.allocs, s.frees, s.reallocs)
end

local kept
local function allocate(n)
  kept = {}
  for i = 1, n do
    kept[i] = {i}
    kept[i].text = "text " .. i
  end
end

local programs = {}

function programs.work(format, path, jit_status)
  if jit_status == "off" then jit.off() end
  local options = {path = path, format = format, every = true}
  collectgarbage()
  collectgarbage("stop")
  assert(misc.memprof.start(options))
  for round = 1, 3 do
    local t = {}
    for i = 1, 101 do t[i] = {i, round} end
    for i = 1, 53 do t[i] = "s" .. i .. round end
    for i = 1, 31 do t[i] = function() return t, i end end
    t = table.concat({"a", "b", round}, ",")
    t = string.rep(t, 1000):upper():gsub("A", "bb")
    local co = coroutine.wrap(function(x) coroutine.yield({x}) end)
    co(t)
    local chunk = assert(load("local t = {...}\nreturn {t, {}}", "=chunk"))
    chunk(1, 2, 3)
    table.sort({3, 1, 2}, function(a, b) return tostring(a) < tostring(b) end)
    collectgarbage()
    collectgarbage("stop")
  end
  assert(misc.memprof.stop())
  print(counts())
end

programs["ends"] = function(how, path)
  start(path)
  allocate(100)
  if how == "exit" then os.exit(0) end
  if how == "error" then error("on purpose") end
end

function programs.many(path)
  start(path, {flush = 10})
  for i = 1, 3000 do
    assert(load("local t = {}\nt[1] = {}\nreturn t", "=chunk " .. i))()
    allocate(20)
  end
  assert(misc.memprof.stop())
  print(counts())
end

function programs.forever(path)
  start(path, {flush = 10})
  while misc.memprof.status().bytes < 2 ^ 27 do allocate(100) end
end

function programs.full(path)
  start(path, {flush = 10})
  repeat allocate(100) until misc.memprof.status().state == "failed"
  local ok, message, number = misc.memprof.stop()
  print(ok, message, number, misc.memprof.status().state)
end

-- Until an event is lost; then the reader of the pipe may go on.
function programs.slow(path, flag)
  start(path)
  repeat
    allocate(1000)
    local s = misc.memprof.status()
  until s.losses > 0
  assert(io.open(flag, "w")):close()
  allocate(10)
  local ok, message, number = misc.memprof.stop()
  local lost = not ok and message:match(": (%d+) events are missing from the " ..
    "file, which cannot say so itself: the output was too slow$")
  assert(lost and number == 105, message)
  local s = misc.memprof.status()
  print(lost, s.allocs + s.frees + s.reallocs)
end

-- The child reports through a file, since both processes print.
function programs.fork(fork, path)
  start(path, {fork = fork, flush = 10})
  allocate(100)
  local pid = ffi.C.fork()
  if pid == 0 then
    local ok, message = pcall(function()
      allocate(50)
      if fork == "follow" then
        assert(misc.memprof.stop())
      else
        assert(not misc.memprof.stop())
        start(path .. ".own")
        allocate(10)
        assert(misc.memprof.stop())
      end
      local out = assert(io.open("child.txt", "w"))
      out:write("child ", counts(), "\n")
      out:close()
    end)
    if not ok then io.stderr:write(message, "\n") end
    ffi.C._exit(ok and 0 or 1)
  end
  allocate(100)
  local status = ffi.new("int[1]")
  assert(ffi.C.waitpid(pid, status, 0) == pid and status[0] == 0, "the child")
  allocate(100)
  assert(misc.memprof.stop())
  print("parent " .. counts())
  io.write(assert(io.open("child.txt")):read("*a"))
end

function programs.errors(path)
  local function refused(wanted, options, module)
    options.path = options.path or path
    local ok, message, number = (module or misc.memprof).start(options)
    print(message)
    assert(ok == nil and number == 22 and
      message:find("profiler misuse: " .. wanted, 1, true), message)
    assert(not misc.memprof.stop())
  end
  refused([[option 'format' is the string 'ljx', but must be "ljprof" or "ljm"]],
    {format = "ljx"})
  refused([[option 'format' is 1, but must be "ljprof" or "ljm"]], {format = 1})
  refused([[option 'format' is the string 'LJM', but must be]], {format = "LJM"})
  refused([[option 'format' is the string 'ljm', but must be]],
    {format = "ljm\0"})
  for name, value in pairs{sample = 512, vms = "all", native = true, depth = 8,
    compress = 3, rotate_bytes = 4096, rotate_seconds = 1, keep = 3} do
    refused(([[format "ljm" cannot have option '%s': it ]]):format(name),
      {format = "ljm", [name] = value})
  end
  refused([[format "ljm" cannot have option 'every = false': it records every]],
    {format = "ljm", every = false})
  refused([[format "ljm" has memory events only: use misc.memprof.start]],
    {memory = {format = "ljm"}}, misc.profile)
  refused("unknown option 'format'", {format = "ljm"}, misc.profile)

  -- What changes nothing is no contradiction.
  path = path .. ".2"
  start(path, {every = true, vms = "own", native = false, compress = 0,
    sync = true, keep = 0})
  allocate(10)
  for _, format in ipairs{"ljm", "ljprof"} do
    local ok, message, number = misc.memprof.start{path = path, format = format}
    print(message)
    assert(ok == nil and message == "profiler is running already" and
      number == 16)
  end
  local ok, message, number = misc.memprof.mark("here")
  print(message)
  assert(ok == nil and number == 22 and message ==
    [[profiler misuse: a file of format "ljm" has no marks]])
  assert(misc.memprof.stop())
  -- Sessions of both formats follow each other.
  assert(misc.memprof.start{path = path, format = "ljprof"})
  assert(misc.memprof.status().format == "ljprof")
  assert(misc.memprof.mark("here"))
  assert(misc.memprof.stop())
  ok, message, number = misc.memprof.start{path = "no/such", format = "ljm"}
  print(message)
  assert(ok == nil and message == "no/such: No such file or directory" and
    number == 2)
end

programs[what](first, second, third)
