-- Reads a whole profile for a command: evread(parse, path) returns the events
-- and the symbols. If that fails, it says why on stderr and ends the process.
local bufread = require "utils.bufread"
local symtab = require "utils.symtab"

local function try(what, path, f, ...)
  local ok, result = pcall(f, ...)
  if not ok then
    io.stderr:write(("%s %s.\n\t%s\n"):format(what, path, tostring(result)))
    os.exit(1, true)
  end
  return result
end

return function(parse, path)
  local reader = try("Failed to open", path, bufread.new, path)
  local symbols = try("Failed to parse symtab from", path, symtab.parse, reader)
  local events = try("Failed to parse profile data from", path, parse, reader,
    symbols)
  return events, symbols
end
