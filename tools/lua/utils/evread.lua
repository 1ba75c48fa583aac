-- Reads a whole profile: evread(parse, path) returns the events and the symbols.
-- If that fails, it says why on stderr and ends the process.
--
-- evread(parse, path, true) does the same, but for a file that is cut short or
-- damaged it returns the events before that place, the symbols, and a message
-- about the rest.
local bufread = require "utils.bufread"
local symtab = require "utils.symtab"

local PARSE = "Failed to parse profile data from"

local function text(what, path, why)
  return ("%s %s.\n\t%s\n"):format(what, path, why)
end

local function try(what, path, f, ...)
  local ok, result = pcall(f, ...)
  if not ok then
    io.stderr:write(text(what, path, tostring(result)))
    os.exit(1, true)
  end
  return result
end

-- Where parsing failed, and what was read before.
local function place(reader, why, begins)
  local offset = reader:offset()
  local ends = why:find("^fread") and "the file ends" or "reading ended"
  local event = begins < offset and
    (", within the event that begins at byte %d"):format(begins) or ""
  return ("%s at byte %d%s; what comes before it is shown"):format(ends, offset,
    event)
end

return function(parse, path, partial)
  local reader = try("Failed to open", path, bufread.new, path)
  local symbols = try("Failed to parse symtab from", path, symtab.parse, reader)
  if not partial then
    return try(PARSE, path, parse, reader, symbols), symbols
  end
  local progress = {}
  local ok, result = pcall(parse, reader, symbols, progress)
  if ok then
    return result, symbols
  end
  local why = tostring(result)
  if not progress.events then
    try(PARSE, path, error, why, 0)
  end
  return progress.events, symbols,
    text(PARSE, path, why .. "\n\t" .. place(reader, why, progress.begins))
end
