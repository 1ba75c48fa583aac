#!/bin/sh
# LOVE without a window, under ljprof record: a game loop with physics, and
# three threads made by love.thread, which block all signals and have their own
# VMs.
. "$(dirname "$0")/record_lib.sh"
need love

mkdir "$tmp/game"
cat > "$tmp/game/conf.lua" << 'EOL'
function love.conf(t)
  t.modules.window = false
  t.modules.graphics = false
  t.modules.audio = false
  t.modules.joystick = false
end
EOL
cat > "$tmp/game/worker.lua" << 'EOL'
local channel, number = ...
local function toss(n)
  local t = {}
  for i = 1, n do t[i] = i * 7919 % 251 end
  table.sort(t, function(a, b) return a < b end)
  return t[1] + t[n]
end
local sum = 0
for _ = 1, 2000 do sum = sum + toss(200) end
channel:push(number .. " " .. sum)
EOL
cat > "$tmp/game/main.lua" << 'EOL'
local threads, channel, frames, world = {}, nil, 0, nil
function love.load()
  for path in io.open("/proc/self/maps"):read("*a"):gmatch("%S*libluajit%S*") do
    mapped = path
  end
  print("mapped " .. mapped)
  channel = love.thread.newChannel()
  for i = 1, 3 do
    threads[i] = love.thread.newThread("worker.lua")
    threads[i]:start(channel, i)
  end
  world = love.physics.newWorld(0, 9.81)
  for i = 1, 50 do
    local body = love.physics.newBody(world, i, 0, "dynamic")
    love.physics.newFixture(body, love.physics.newCircleShape(1))
  end
end
local function simulate()
  for _ = 1, 3 do world:update(1 / 60) end
end
function love.update()
  frames = frames + 1
  simulate()
  if frames < 200 then return end
  local done = {}
  for i = 1, 3 do
    threads[i]:wait()
    done[i] = channel:demand()
  end
  table.sort(done)
  print("result " .. table.concat(done, ", "))
  love.event.quit(0)
end
EOL
export SDL_VIDEODRIVER=dummy SDL_AUDIODRIVER=dummy HOME="$tmp"
record_start love "$tmp/game"
record_end
same mapped "mapped $library" "$(grep '^mapped' "$tmp/host.log")"
same result 'result 1 506000, 2 506000, 3 506000' \
  "$(grep '^result' "$tmp/host.log")"
whole
names 'simulate '
