-- Cycles of upvalues through userdata.
-- holder: registry.held
local held = {}
for i = 1, 1000 do
  local ud, rows = newproxy(true), {}
  for j = 1, 50 do rows[j] = "row" .. i .. j end
  getmetatable(ud).__index = function() return ud, rows end
  held[i] = ud
end
debug.getregistry().held = held
