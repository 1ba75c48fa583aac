-- Closures that capture more than they need.
-- holder: _G.Events.handlers
local handlers = {}
local function on(event)
  local rows = {}
  for i = 1, 500 do rows[i] = "row " .. i .. event end
  handlers[#handlers + 1] = function() return #rows end
end
for i = 1, 100 do on(i) end
Events = { handlers = handlers }
