-- FFI callbacks that are never freed.
-- holder: FFI
local ffi = require("ffi")
for i = 1, 200 do
  local rows = {}
  for j = 1, 300 do rows[j] = "row" .. i .. j end
  ffi.cast("int (*)(int)", function() return #rows end)
end
