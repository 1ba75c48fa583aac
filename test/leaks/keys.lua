-- Strings that are kept as keys.
-- holder: _G.Sessions
Sessions = {}
for i = 1, 10000 do Sessions["session-" .. i .. ("k"):rep(200)] = true end
