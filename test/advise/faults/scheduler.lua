-- kind: coroutines
-- function: spawn
-- record: --memory --every
local waiting, done = {}, 0

local function task(n)
  coroutine.yield(n)
  while n > 0 do coroutine.yield(n) end
  done = done + n
end

local function spawn(n)
  local co = coroutine.create(task) -- FAULT
  waiting[#waiting + 1] = co
  coroutine.resume(co, n)
end

local function run()
  local rest = {}
  for i = 1, #waiting do
    local co = waiting[i]
    if coroutine.status(co) == "suspended" then
      coroutine.resume(co)
      if coroutine.status(co) ~= "dead" then rest[#rest + 1] = co end
    end
  end
  waiting = rest
end

local work = 0
for round = 1, 160 do
  for i = 1, 20 do spawn(i) end
  run()
  for i = 1, 400 do work = work + #("x" .. (round * 1000 + i)) end
  if round % 16 == 0 then collectgarbage() end
end
print(work)
