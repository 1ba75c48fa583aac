-- Sessions in a global table and in a queue of the registry: neither holds them alone.
-- holder: _G.Sessions
Sessions = {}
local queue = {}
debug.getregistry().queues = { waiting = queue }
for i = 1, 2000 do
  local session = { id = i, words = { "word" .. i, "other" .. i } }
  Sessions["session" .. i] = session
  queue[i] = session
end
