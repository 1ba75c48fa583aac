-- For wrk: requests of three routes and two tenants in turn. It ends at once if one
-- fails.
local n = 0
local paths = { "/a?t=x", "/b?t=x", "/c?t=x", "/a?t=y", "/b?t=y", "/c?t=y" }
function request()
  n = n % #paths + 1
  return wrk.format("GET", paths[n])
end
function response(status)
  if status ~= 200 then os.exit(1) end
end
