local Account = {}
Account.__index = Account
local function new(n) return setmetatable({balance = n, moves = 0}, Account) end
function Account:move(n)
  self.balance = self.balance + n
  self.moves = self.moves + 1
end
function Account:mean() return self.balance / (self.moves + 1) end

local accounts = {}
for i = 1, 500 do accounts[i] = new(i) end
local sum = 0
for round = 1, 100000 do
  for i = 1, #accounts do
    accounts[i]:move(i % 5)
  end
  sum = sum + accounts[round % 500 + 1]:mean()
end
print(sum)
