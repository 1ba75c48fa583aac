-- Loops inside of coroutines, and coroutines resumed in loops.
local function work(n)
  local s = 0
  for i = 1, n do
    s = s + i * 2
  end
  return s
end
local function body()
  while true do
    local s = work(100)
    coroutine.yield(s)
  end
end
local co = coroutine.create(body)
local t = 0
for _ = 1, 60 do
  local _, v = coroutine.resume(co)
  t = t + v
end
