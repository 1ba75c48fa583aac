-- luajit memprof_leak.lua FILE: a server that keeps the session of
-- one request in 10,000, beside a cache that is full from early on.
local cache, sessions = {}, {}

local function new_session(id)
  return { id = id, user = "user " .. id, rights = { "read", "write" } }
end

local function handle(id)
  local session = new_session(id)
  local answer = {}
  for i = 1, 5 do answer[i] = session.user .. " line " .. i end
  cache[id % 512] = table.concat(answer)
  if id % 10000 == 0 then sessions[#sessions + 1] = session end -- the leak
  return #answer
end

for id = 1, 2000 do handle(id) end
assert(misc.memprof.start { path = arg[1], every = true })
for part = 1, 5 do
  for id = 1, 40000 do handle(part * 40000 + id) end
  collectgarbage()
  assert(misc.memprof.mark("part " .. part))
end
assert(misc.memprof.stop())
