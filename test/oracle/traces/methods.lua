-- Method calls through a metatable, fields, upvalues.
local Account = {}
Account.__index = Account
function Account:check(n)
  if n < 0 then
    return 0
  end
  return n
end
function Account:add(n)
  local ok = self:check(n)
  self.sum = self.sum + ok
  return self
end
function Account:total()
  return self.sum * 2
end
local a = setmetatable({ sum = 0 }, Account)
local t = 0
for i = 1, 600 do
  a:add(i)
  t = t + a:total()
  if i % 7 == 0 then
    a:add(-i)
  end
end
