-- kind: concat-loop
-- function: encode
local function number(n) return n end

local function encode(list)
  local out = "["
  for i = 1, #list do
    if i > 1 then out = out .. "," end
    out = out .. '{"id":' .. list[i] .. "}" -- FAULT
  end
  return out .. "]"
end

local function price(i) -- The rest of the work.
  local p = 0
  for k = 1, 300 do p = (p * 31 + i * k) % 65521 end
  return p
end

local list, bytes, sum = {}, 0, 0
for i = 1, 2500 do list[i] = number(i) end
for round = 1, 60 do
  for i = 1, 500 do sum = sum + price(i + round) end
  bytes = bytes + #encode(list)
end
print(bytes, sum)
