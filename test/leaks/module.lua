-- A table of a module that only grows.
-- holder: package.loaded["my.module"].log
package.loaded["my.module"] = { log = {} }
local m = require("my.module")
for i = 1, 30000 do m.log[#m.log + 1] = { time = i, text = "entry " .. i } end
