-- The table of symbols at the beginning of a profile of memprof or sysprof.
--
-- The table that parse() returns:
--   lfunc[address]  = {source = chunk name, linedefined = line}
--   trace[number]   = {start = location}
--   cfunc           = tree (utils.avl) from addresses to {name = name}
--   alias[source]   = a short name for a chunk name of several lines; the
--                     sources are also alias[1], alias[2] ...
-- A location is {addr, line, traceno}; each is 0 if it does not apply.
local avl = require "utils.avl"

local MAGIC, VERSION = "ljs", 3
local LFUNC, CFUNC, TRACE, FINAL = 0, 1, 2, 0x80

local M = {}

function M.loc(args)
  return {
    addr = args.addr or 0,
    line = args.line or 0,
    traceno = args.traceno or 0,
  }
end

-- A string that names a location.
function M.id(loc)
  return ("f%#xl%dt%dg"):format(loc.addr, loc.line, loc.traceno)
end

-- A string of the file; an error if the file has less of it than it says.
local function read_text(reader)
  local length = reader:read_uleb128()
  local text = reader:read_octets(length)
  if not text then
    error(("a string of %d bytes is longer than the rest of the file"):
      format(length), 0)
  end
  return text
end

function M.add_cfunc(symtab, addr, name)
  symtab.cfunc = avl.insert(symtab.cfunc, addr, {name = name})
end

-- These read one symbol each; its header has been read.
function M.parse_sym_lfunc(reader, symtab)
  local addr = reader:read_uleb128()
  local source = read_text(reader)
  local line = reader:read_uleb128()
  local alias = symtab.alias
  if source:find("\n", 1, true) and not alias[source] then
    alias[#alias + 1] = source
    alias[source] = "function_alias_" .. #alias
  end
  symtab.lfunc[addr] = {source = source, linedefined = line}
end

function M.parse_sym_cfunc(reader, symtab)
  local addr = reader:read_uleb128()
  M.add_cfunc(symtab, addr, read_text(reader))
end

function M.parse_sym_trace(reader, symtab)
  local number = reader:read_uleb128()
  local addr = reader:read_uleb128()
  local line = reader:read_uleb128()
  symtab.trace[number] = {start = M.loc{addr = addr, line = line}}
end

local readers = {
  [LFUNC] = M.parse_sym_lfunc,
  [CFUNC] = M.parse_sym_cfunc,
  [TRACE] = M.parse_sym_trace,
}

-- What to do with the part of a file that is of the other kind.
local instead = {
  ljm = " (memory events: use luajit -tm)",
  ljp = " (samples: use luajit -ts)",
}

-- Reads magic, version and reserved bytes of a part of the file.
function M.parse_head(reader, what, magic, expected)
  local found = reader:read_octets(#magic)
  if found ~= magic then
    error(("Bad %s format prologue: %s%s"):format(what, tostring(found),
      instead[found] or ""), 0)
  end
  local version = reader:read_octet()
  if version ~= expected then
    error(("%s format version mismatch: the tool expects %d, but your data" ..
      " is %s"):format(what, expected, tostring(version)), 0)
  end
  reader:read_octets(3)
end

function M.parse(reader)
  local symtab = {lfunc = {}, trace = {}, alias = {}}
  M.parse_head(reader, "LuaJIT symbol table", MAGIC, VERSION)
  while true do
    local header = reader:read_octet()
    if not header or header >= FINAL then
      return symtab
    end
    local read = readers[header % 4]
    if read then
      read(reader, symtab)
    end
  end
end

-- The text of a location.
function M.demangle(symtab, loc)
  local number = loc.traceno
  if number and number ~= 0 then
    local trace = symtab.trace[number]
    local text = ("TRACE [%d]"):format(number)
    return trace and text .. " started at " .. M.demangle(symtab, trace.start)
      or text
  end
  local addr = loc.addr
  if addr == 0 then
    return "INTERNAL"
  end
  local lfunc = symtab.lfunc[addr]
  if lfunc then
    local source = lfunc.source
    -- Library functions that LuaJIT has as bytecode have no line: 2^64 - 1.
    local line = loc.line < 2^63 and loc.line or 0
    return ("%s:%d"):format(symtab.alias[source] or source, line)
  end
  local start, cfunc = avl.floor(symtab.cfunc, addr)
  if start then
    return ("%s:%#x"):format(cfunc.name, start)
  end
  return ("CFUNC %#x"):format(addr)
end

return M
