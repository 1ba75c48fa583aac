-- A cache made by a metatable.
-- holder: _G.Lookup
Lookup = setmetatable({}, { __index = function(t, key)
  local value = { key = key, "computed " .. key }
  rawset(t, key, value)
  return value
end })
for i = 1, 20000 do local _ = Lookup["user" .. i] end
