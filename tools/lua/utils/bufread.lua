-- Reads a binary file in pieces: bytes, ULEB128 numbers, strings. A file that
-- our profilers wrote is converted first; ljprof.convert says how.
--
--   reader = bufread.new(path)      an error if the file cannot be opened
--   reader:read_octet()             a number; nil at the end
--   reader:read_octets(n)           a string of n bytes; nil if there are fewer
--   reader:read_uleb128()           a number; an error if the file ends in it
--   reader:read_string()            its length and its bytes; nil as above
--   reader:eof()
--   reader:offset()                 how many bytes were read
local convert = require "ljprof.convert"

local byte, sub = string.byte, string.sub

local PIECE_BYTES = 1024 * 1024

local M = {}

-- Makes n bytes available at reader._pos; false: the file has fewer.
local function fill(reader, n)
  local left = #reader._buf - reader._pos + 1
  if left >= n then
    return true
  end
  local parts = {sub(reader._buf, reader._pos)}
  while left < n do
    local more = reader._file:read(PIECE_BYTES)
    if not more then
      break
    end
    parts[#parts + 1] = more
    left = left + #more
  end
  reader._offset = reader._offset + reader._pos - 1
  reader._buf = table.concat(parts)
  reader._pos = 1
  return left >= n
end

function M.read_octet(reader)
  local octet = byte(reader._buf, reader._pos)
  if not octet then
    if not fill(reader, 1) then
      return nil
    end
    octet = byte(reader._buf, 1)
  end
  reader._pos = reader._pos + 1
  return octet
end

function M.read_octets(reader, n)
  if not fill(reader, n) then
    return nil
  end
  local from = reader._pos
  reader._pos = from + n
  return sub(reader._buf, from, from + n - 1)
end

function M.read_uleb128(reader)
  local value, unit = 0, 1
  while true do
    local octet = M.read_octet(reader)
    if not octet then
      error(("fread, errno: 0: the file ends inside a number, at byte %d"):
        format(M.offset(reader)), 0)
    end
    if octet < 128 then
      return value + octet * unit
    end
    value = value + (octet - 128) * unit
    unit = unit * 128
  end
end

function M.read_string(reader)
  return M.read_octets(reader, M.read_uleb128(reader))
end

function M.eof(reader)
  return not fill(reader, 1)
end

function M.offset(reader)
  return reader._offset + reader._pos - 1
end

-- Starts at the beginning of another file.
local function use(reader, path)
  local file, why, errno = io.open(path, "rb")
  if not file then
    error(("fopen, errno: %d:%s"):format(errno, why:match("[^:]+$")), 0)
  end
  local _
  _, why, errno = file:read(0)
  if why then -- Such as a folder, which can be opened.
    file:close()
    error(("fread, errno: %d: %s"):format(errno, why), 0)
  end
  reader._file, reader._buf, reader._pos, reader._offset = file, "", 1, 0
  return reader
end

-- Converts the file of our profilers that the reader stands for.
local function use_converted(reader, kind)
  local path, why = convert.run(reader._path, kind)
  if not path then
    error(why, 0)
  end
  reader._kind = kind
  local ok, reason = pcall(use, reader, path)
  os.remove(path) -- An open file stays readable.
  if not ok then
    error(reason, 0)
  end
  return reader
end

-- Makes sure that a file of ours is read as what it is needed as: "ljm" or
-- "ljp". Returns true if the file begins again, with its table of symbols.
function M.want(reader, kind)
  if not reader._kind or reader._kind == kind then
    return false
  end
  use_converted(reader, kind)
  return true
end

function M.new(path)
  local reader = setmetatable({_path = path}, {__index = M})
  use(reader, path)
  if not convert.is_ours(M.read_octets(reader, 4)) then
    reader._pos = 1
    return reader
  end
  reader._file:close()
  local ok, why = pcall(use_converted, reader, "ljm")
  if not ok and not pcall(use_converted, reader, "ljp") then
    error(why, 0)
  end
  return reader
end

return M
