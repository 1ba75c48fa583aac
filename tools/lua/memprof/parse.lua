-- The events of a memory profile, summed up by their sites:
--
--   events.alloc[id], .realloc[id], .free[id] =
--     {loc = text of the site, num = number of events, alloc = bytes,
--      free = bytes, primary = {[id] = {loc, allocated, freed, count}}}
--   events.heap[address] = {size, id, loc}     what was not freed
--
-- primary has the sites whose memory the event freed or moved, if that memory
-- was allocated in the profile.
local symtab = require "utils.symtab"

local MAGIC, VERSION, FINAL = "ljm", 3, 0x80
local SYMBOL, ALLOC, FREE, REALLOC = 0, 1, 2, 3
local INTERNAL, LFUNC, CFUNC, TRACE = 1, 2, 3, 4

local M = {}

-- The site of an event: {id, loc}. Sites are kept by their numbers until a
-- symbol changes.
local function read_site(reader, source, symbols, sites)
  local first, line = 0, 0
  if source ~= INTERNAL then
    first = reader:read_uleb128()
  end
  if source == LFUNC then
    line = reader:read_uleb128()
  end
  local by_line = sites[source][first]
  if not by_line then
    by_line = {}
    sites[source][first] = by_line
  end
  local site = by_line[line]
  if not site then
    local loc = symtab.loc{
      addr = source ~= TRACE and first or nil,
      line = line,
      traceno = source == TRACE and first or nil,
    }
    site = {id = symtab.id(loc), loc = symtab.demangle(symbols, loc)}
    by_line[line] = site
  end
  return site
end

local function event_at(list, site)
  local event = list[site.id]
  if not event then
    event = {loc = site.loc, num = 0, free = 0, alloc = 0, primary = {}}
    list[site.id] = event
  end
  event.num = event.num + 1
  return event
end

-- Takes a block away that the event frees or moves.
local function take_block(events, event, address, size, new_size)
  local block = events.heap[address]
  event.free = event.free + size
  if not block then
    return
  end
  events.heap[address] = nil
  local from = event.primary[block.id]
  if not from then
    from = {loc = block.loc, allocated = 0, freed = 0, count = 0}
    event.primary[block.id] = from
  end
  from.allocated = from.allocated + new_size
  from.freed = from.freed + block.size
  from.count = from.count + 1
end

local function give_block(events, event, site, address, size)
  event.alloc = event.alloc + size
  events.heap[address] = {size = size, id = site.id, loc = site.loc}
end

-- An event counts once all of it has been read.
local read_event = {
  [ALLOC] = function(reader, events, site)
    local address, size = reader:read_uleb128(), reader:read_uleb128()
    give_block(events, event_at(events.alloc, site), site, address, size)
  end,
  [FREE] = function(reader, events, site)
    local address, size = reader:read_uleb128(), reader:read_uleb128()
    take_block(events, event_at(events.free, site), address, size, 0)
  end,
  [REALLOC] = function(reader, events, site)
    local old_address, old_size = reader:read_uleb128(), reader:read_uleb128()
    local address, size = reader:read_uleb128(), reader:read_uleb128()
    local event = event_at(events.realloc, site)
    take_block(events, event, old_address, old_size, size)
    give_block(events, event, site, address, size)
  end,
}

local read_symbol = {
  [LFUNC] = symtab.parse_sym_lfunc,
  [CFUNC] = symtab.parse_sym_cfunc,
  [TRACE] = symtab.parse_sym_trace,
}

local function no_sites()
  return {[INTERNAL] = {}, [LFUNC] = {}, [CFUNC] = {}, [TRACE] = {}}
end

-- progress: an optional table. If parsing fails, its .events are those before
-- the failure, and its .begins is where the event that failed begins.
function M.parse(reader, symbols, progress)
  local events = {alloc = {}, realloc = {}, free = {}, heap = {}}
  local sites = no_sites()
  if reader.want and reader:want("ljm") then
    for key, value in pairs(symtab.parse(reader)) do
      symbols[key] = value
    end
  end
  symtab.parse_head(reader, "memprof event", MAGIC, VERSION)
  if progress then
    progress.events = events
  end
  while true do
    if progress then
      progress.begins = reader:offset()
    end
    local header = reader:read_octet()
    if not header then
      error("fread, errno: 0: the file ends before the end of its events", 0)
    end
    if header == FINAL then
      return events
    end
    local kind, source = header % 4, (header - header % 4) / 4
    if not sites[source] then
      error(("Bad ev_header %d"):format(header), 0)
    end
    if kind ~= SYMBOL then
      local site = read_site(reader, source, symbols, sites)
      read_event[kind](reader, events, site)
    elseif read_symbol[source] then
      read_symbol[source](reader, symbols)
      sites = no_sites()
    end
  end
end

return M
