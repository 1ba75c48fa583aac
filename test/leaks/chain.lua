-- Each handler keeps the one before, with its request.
-- holder: package.loaded["my.handlers"].run
local handlers = { run = function() end }
package.loaded["my.handlers"] = handlers
for i = 1, 2000 do
  local before, request = handlers.run, { rows = {} }
  for j = 1, 20 do request.rows[j] = "row " .. i .. "." .. j end
  handlers.run = function()
    before()
    return request
  end
end
