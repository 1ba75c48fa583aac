-- Compile time: parses chunks (which makes prototypes) and makes loops hot
-- (which makes traces with side exits, flushed afterwards). It shows the cost of
-- the hooks where these are created.
local size = tonumber(arg[1]) or 10
local sum = 0
for i = 1, size * 40 do
  local chunk = loadstring([[
    local n, seed = ...
    local function add(x)
      return function(y)
        return x + y
      end
    end
    local s = 0
    for i = 1, 70 do
      if i % 3 == 0 then
        s = s + add(i)(seed)
      else
        s = s + n
      end
    end
    return s -- ]] .. i)
  sum = sum + chunk(i, i % 7)
  if i % 50 == 0 then
    jit.flush()
  end
end
print(sum)
