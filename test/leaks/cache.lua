-- A cache without a limit.
-- holder: upvalue cache of function
local cache = {}
local function get(key)
  local value = cache[key]
  if not value then
    value = { key, ("x"):rep(100) .. key }
    cache[key] = value
  end
  return value
end
for i = 1, 20000 do get(i) end
M = { get = get }
