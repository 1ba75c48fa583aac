local bit = require "bit"
local bxor, rol, tobit = bit.bxor, bit.rol, bit.tobit

local function hash(s)
  local h = 0
  for i = 1, #s do h = tobit(bxor(rol(h, 5), s:byte(i)) * 33) end
  return h
end

local text, sum = ("abcdefghij"):rep(1000), 0
for round = 1, 5000 do sum = bxor(sum, hash(text)) end
print(sum)
