-- kind: exits
-- function: classify
jit.opt.start("hotexit=100000") -- Exits get no side traces.
local function classify(list)
  local n = 0
  for i = 1, #list do
    local v = list[i] % 3
    if v == 0 then -- FAULT
      n = n + 1
    elseif v == 1 then
      n = n + 2
    else
      n = n - 1
    end
  end
  return n
end

local list = {}
for i = 1, 300 do list[i] = (i * 7919) % 1009 end
local s = 0
for round = 1, 30000 do s = s + classify(list) end
print(s)
