-- Many closures of few functions, called in turn: their traces are compiled for
-- the functions, so snapshots do not hold the closures as constants.
local function entity(i)
  local x, v = i, 1
  local self = {}
  function self.pos()
    return x
  end
  function self.step(dt)
    x = x + v * dt
    if x > 100 then
      v = -v
    elseif x < 0 then
      v = -v
    end
    return self.pos()
  end
  function self.think(w)
    local n = 0
    for k = 1, 3 do
      n = n + w[k].pos()
    end
    return n + self.step(37)
  end
  return self
end
local world = {}
for i = 1, 20 do
  world[i] = entity(i)
end
local s = 0
for _ = 1, 40 do
  for i = 1, #world do
    s = s + world[i].think(world)
  end
end
