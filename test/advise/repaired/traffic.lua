local hits, hosts, paths = {}, {}, {}
for i = 1, 20 do
  hosts[i] = "host" .. i .. ".example.org"
  paths[i] = "/api/v1/item/" .. i
end

local function count(host, path, status)
  local of_host = hits[host] or {}
  local of_path = of_host[path] or {}
  hits[host], of_host[path] = of_host, of_path
  of_path[status] = (of_path[status] or 0) + 1
  return of_path[status] % 7
end

local sum = 0
for i = 1, 4000000 do
  sum = sum + count(hosts[i % 20 + 1], paths[i * 7 % 20 + 1], 200 + i % 3)
end
print(sum)
