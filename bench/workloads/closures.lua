-- Closures with shared upvalues, stored and called; strings built by
-- concatenation, by table.concat and by string.format.
local size = tonumber(arg[1]) or 10

local function counter(step)
  local n = 0
  return function()
    n = n + step
    return n
  end, function(v)
    n = v
  end
end

local parts, length, sum = {}, 0, 0
for i = 1, size * 700 do
  local next_value, reset = counter(i % 7)
  for _ = 1, 3 do
    sum = (sum + next_value()) % 1000003
  end
  reset(i)
  local text = "k" .. i % 97 .. ":" .. next_value()
  parts[i % 50 + 1] = text .. string.format("%d/%s", i % 13, text)
  if i % 50 == 0 then
    length = length + #table.concat(parts, ",")
  end
end
print(sum, length)
