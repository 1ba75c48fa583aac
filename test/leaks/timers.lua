-- Callbacks of timers that never fire.
-- holder: registry.timers
local timers = {}
local function every(seconds, callback)
  timers[#timers + 1] = { seconds = seconds, callback = callback }
end
for i = 1, 2000 do
  local connection = { chunks = {} }
  for j = 1, 20 do connection.chunks[j] = "chunk" .. i .. j end
  every(i, function() return connection end)
end
debug.getregistry().timers = timers
