local cache, count = {}, 0

local function lookup(key)
  local v = cache[key]
  if not v then
    v = {key = key, rows = {}}
    for i = 1, 20 do
      v.rows[i] = key .. i
    end
    count = count + 1
    if count > 1000 then cache, count = {}, 1 end -- a limit
    cache[key] = v
  end
  return v
end

local function request(n)
  local sum = 0
  for i = 1, 200 do sum = sum + #lookup("user" .. (n * 200 + i)).rows end
  return sum
end

local sum = 0
for n = 1, 270 do sum = sum + request(n) end
print(sum)
