-- Growing and deep stacks at the shortest interval: samples are deferred to the
-- end of a stack's move, and the sampler lengthens its interval.
-- Usage: sysprof_grow.lua PATH
jit.off()
assert(misc.sysprof.start{path = arg[1], interval = 0.05, flush = 20})
local function down(n)
  if n == 0 then return 0 end
  return 1 + down(n - 1)
end
local throttled = false
local t0 = os.clock()
while os.clock() - t0 < 0.8 do
  assert(coroutine.wrap(function() return down(5000) end)() == 5000)
  throttled = throttled or misc.sysprof.status().throttled
end
local report = misc.sysprof.report()
assert(misc.sysprof.stop())
assert(throttled, "the interval was not lengthened")
assert(report.deferred > 20, "deferred: " .. report.deferred)
assert(report.cuts.DEPTH > 20, "cut by depth: " .. report.cuts.DEPTH)
for reason, count in pairs(report.cuts) do
  assert(reason == "DEPTH" or count == 0, "cut: " .. reason .. " " .. count)
end
assert(report.cuts.RESIZE == 0 and report.losses.BUSY == 0, "lost in a resize")
assert(report.handler_seconds < 0.25 * report.seconds,
  "handler: " .. report.handler_seconds .. " of " .. report.seconds)
print(report.samples .. " samples, " .. report.deferred .. " deferred")
