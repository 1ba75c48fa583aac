local function sieve(n, flags)
  local count = 0
  for i = 2, n do flags[i] = true end
  for i = 2, n do
    if flags[i] then
      count = count + 1
      for k = i + i, n, i do flags[k] = false end
    end
  end
  return count
end

local flags, sum = {}, 0
for i = 1, 8192 do flags[i] = false end
for round = 1, 8000 do sum = sum + sieve(8192, flags) end
print(sum)
