-- What the tests of the Lua interfaces share, for dofile(). checks.count is the
-- number of passed checks.
local checks = { count = 0 }

function checks.check(ok, what, ...)
  if not ok then
    local said = {}
    for i = 1, select("#", ...) do said[i] = tostring((select(i, ...))) end
    error(what .. ": " .. table.concat(said, " | "), 2)
  end
  checks.count = checks.count + 1
end

-- fails(WHAT, ERRNO, TEXT, CALL'S RESULTS...): the call must have failed with
-- this errno and a message that holds TEXT.
function checks.fails(what, errno, text, ok, message, number)
  checks.check(ok == nil and number == errno and message:find(text, 1, true),
    what, ok, message, number)
end

function checks.read(path)
  local f = assert(io.open(path, "rb"))
  local text = f:read("*a")
  f:close()
  return text
end

-- Makes a file that must stay as it is.
function checks.keep(path)
  local f = assert(io.open(path, "wb"))
  f:write("precious")
  f:close()
end

return checks
