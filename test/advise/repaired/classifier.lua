jit.opt.start("hotexit=100000") -- Exits get no side traces.
local worth = {[0] = 1, 2, -1}

local function classify(list)
  local n = 0
  for i = 1, #list do n = n + worth[list[i] % 3] end
  return n
end

local list = {}
for i = 1, 300 do list[i] = (i * 7919) % 1009 end
local s = 0
for round = 1, 30000 do s = s + classify(list) end
print(s)
