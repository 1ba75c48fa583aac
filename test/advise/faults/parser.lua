-- kind: built-strings
-- function: parse
local text = ("((a+b)*(c-d)+e)*"):rep(40) .. "f"
local memo

local function term(rule, pos)
  local value = (pos * 7 + rule * 13) % 251
  for i = pos, pos + 8 do value = (value * 3 + (text:byte(i) or 0)) % 8191 end
  return value
end

local function parse(rule, pos)
  local found = memo[rule .. ":" .. pos] -- FAULT
  if not found then
    found = term(rule, pos)
    memo[rule .. ":" .. pos] = found
  end
  return found
end

local sum = 0
for round = 1, 120 do
  memo = {}
  for rule = 1, 12 do memo[rule] = {} end
  for pass = 1, 4 do
    for rule = 1, 12 do
      for pos = 1, #text do sum = sum + parse(rule, pos) end
    end
  end
end
print(sum)
