-- The samples of a profile of sysprof, counted by their stacks. A stack is a
-- text, from the outermost function on: "main:0x1;@file.lua:3;".
--
-- The file has host frames and guest frames in two lists. They are joined here:
-- the guest frames that one call of the VM runs follow the host frame of that
-- call, up to a C function, whose own host frames come next.
local symtab = require "utils.symtab"
local builtins = require "sysprof.builtins"

local MAGIC, VERSION, FINAL = "ljp", 2, 0x80
-- States with more than host frames.
local LFUNC, FFUNC, CFUNC, TRACE = 1, 2, 3, 9
local FRAME_LUA, FRAME_C, FRAME_BUILTIN = 1, 2, 3
local SYMBOL = 10

local M = {}

-- The next byte of a sample, where the file may not end.
local function octet(reader)
  local value = reader:read_octet()
  if not value then
    error("fread, errno: 0: the file ends inside a sample", 0)
  end
  return value
end

local function name(reader, symbols, with_line)
  local addr = reader:read_uleb128()
  local line = with_line and reader:read_uleb128() or 0
  return symtab.demangle(symbols, symtab.loc{addr = addr, line = line})
end

-- Both lists: outermost first.
local function read_guest(reader, symbols)
  local frames = {}
  while true do
    local kind = octet(reader)
    if kind == FINAL then
      break
    elseif kind == FRAME_BUILTIN then
      local number = reader:read_uleb128()
      frames[#frames + 1] = {name = builtins[number] or
        ("builtin %d"):format(number)}
    elseif kind == FRAME_LUA or kind == FRAME_C then
      frames[#frames + 1] = {
        name = name(reader, symbols, kind == FRAME_LUA),
        c = kind == FRAME_C,
      }
    else
      error(("Bad frame header %d"):format(kind), 0)
    end
  end
  for i = 1, math.floor(#frames / 2) do
    frames[i], frames[#frames - i + 1] = frames[#frames - i + 1], frames[i]
  end
  return frames
end

local function read_host(reader, symbols)
  local names = {}
  while true do
    local addr = reader:read_uleb128()
    if addr == 0 then
      return names
    end
    table.insert(names, 1, symtab.demangle(symbols, symtab.loc{addr = addr}))
  end
end

local function starts_vm(host)
  return host:find("^lua_p?call:") or host:find("^lua_cpcall:") or
    host:find("^lua_resume:")
end

local function join(guest, host)
  local stack, next_guest, is_host = {}, 1, {}
  for _, text in ipairs(host) do
    is_host[text] = true
  end
  -- Adds guest frames up to a C function, which the host stack has, too.
  local function run_guest()
    while guest[next_guest] do
      local frame = guest[next_guest]
      next_guest = next_guest + 1
      if not frame.c or not is_host[frame.name] then
        stack[#stack + 1] = frame.name
      end
      if frame.c then
        return
      end
    end
  end
  for _, text in ipairs(host) do
    stack[#stack + 1] = text
    if starts_vm(text) then
      run_guest()
    end
  end
  while guest[next_guest] do -- The host stack is not whole.
    run_guest()
  end
  return table.concat(stack, ";") .. ";"
end

local function read_sample(reader, symbols, state)
  if state == TRACE then
    local number = reader:read_uleb128()
    local addr, line = reader:read_uleb128(), reader:read_uleb128()
    return symtab.demangle(symbols,
      {traceno = number, addr = addr, line = line}) .. ";"
  end
  local guest = {}
  if state == LFUNC or state == FFUNC or state == CFUNC then
    guest = read_guest(reader, symbols)
  end
  return join(guest, read_host(reader, symbols))
end

local read_symbol = {
  [SYMBOL] = symtab.parse_sym_lfunc,
  [SYMBOL + 1] = symtab.parse_sym_cfunc,
  [SYMBOL + 2] = symtab.parse_sym_trace,
}

-- Returns a table from stacks to numbers of samples. progress: see
-- memprof.parse.
function M.parse(reader, symbols, progress)
  local events = {}
  if reader.want and reader:want("ljp") then
    for key, value in pairs(symtab.parse(reader)) do
      symbols[key] = value
    end
  end
  symtab.parse_head(reader, "sysprof event", MAGIC, VERSION)
  if progress then
    progress.events = events
  end
  while true do
    if progress then
      progress.begins = reader:offset()
    end
    local state = octet(reader)
    if state == FINAL then
      return events
    elseif read_symbol[state] then
      read_symbol[state](reader, symbols)
    elseif state <= TRACE then
      local stack = read_sample(reader, symbols, state)
      events[stack] = (events[stack] or 0) + 1
    else
      error(("Vmstate %d is not valid"):format(state), 0)
    end
  end
end

return M
