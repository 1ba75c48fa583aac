local sessions, served = {}, 0

local function remember(id)
  sessions[id] = {id = id, name = "user" .. id, seen = id * 2} -- FAULT
  sessions[id - 50] = nil
  return sessions[id]
end

local function handle(id)
  local s = remember(id)
  local sum = s.seen
  for i = 1, 2000 do sum = (sum * 31 + i) % 65521 end
  served = served + sum
end

for id = 1, 6000 do
  handle(100000 + id)
  if id % 400 == 0 then collectgarbage() end
end
print(served)
