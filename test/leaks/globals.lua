-- Globals that a misspelled name has made, beside one large table.
-- holder: _G 
Config = {}
for i = 1, 30000 do Config[i] = { name = "setting " .. i, values = { i } } end
for i = 1, 10000 do _G["session_" .. i] = { id = "id " .. i } end
