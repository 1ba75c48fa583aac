-- luajit memprof_storm.lua VARIED ROUNDS FILE MODE: calls VARIED over and over
-- and prints what depends on its work only. MODE: plain, every, combined, native
local varied, rounds, path, mode = arg[1], tonumber(arg[2]), arg[3], arg[4]
local start, stop = function() end, function() end
if mode == "every" then
  start = function() assert(misc.memprof.start(path)) end
  stop = function() assert(misc.memprof.stop()) end
elseif mode ~= "plain" then
  start = function()
    assert(misc.profile.start { path = path,
      cpu = { interval = 0.1, max_overhead = 0 },
      memory = { every = true, native = mode == "native" } })
  end
  stop = function() assert(misc.profile.stop()) end
end
local run = assert(loadfile(varied))
local sum = 0
start()
for round = 1, rounds do
  run(round)
  sum = (sum * 31 + #string.format("%d", round * 7919)) % 1000003
end
stop()
print(sum)
if mode ~= "plain" then
  local s = misc.memprof.status()
  io.stderr:write(s.allocs + s.frees + s.reallocs, " ", s.losses, " ", s.cut, "\n")
end
