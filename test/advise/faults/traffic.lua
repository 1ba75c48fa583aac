-- kind: built-strings
-- function: count
-- section: strings-built-in-loops
local hits, hosts, paths = {}, {}, {}
for i = 1, 20 do
  hosts[i] = "host" .. i .. ".example.org"
  paths[i] = "/api/v1/item/" .. i
end

local function count(host, path, status)
  local key = string.format("%s|%s|%d", host, path, status) -- FAULT
  hits[key] = (hits[key] or 0) + 1
  return hits[key] % 7
end

local sum = 0
for i = 1, 4000000 do
  sum = sum + count(hosts[i % 20 + 1], paths[i * 7 % 20 + 1], 200 + i % 3)
end
print(sum)
