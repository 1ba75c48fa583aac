-- A C function calls Lua, but seldom.
local fold = require "fold"

local function apply(account)
  local sum = account
  for i = 1, 20000 do sum = (sum * 31 + i) % 65521 end
  return sum
end

local sum = 0
for account = 1, 3000 do sum = sum + fold.within(apply, account) end
print(sum)
