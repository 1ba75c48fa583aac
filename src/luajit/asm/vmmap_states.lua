-- The states that vmmap.lua follows through LuaJIT's assembler VM: where BASE
-- is, in which mode the frame at BASE is, and how far rsp is from the C frame.
--
-- Loaded by vmmap.lua with the function that stops the build; returns a table.

local die = ...

-- Where BASE can be found (bits of a set).
local RDX, RBP, LB = 1, 2, 4

-- Modes: name and meaning. Their numbers go into the generated vmmap.inc.
local modes = {
  { "UNKNOWN", "not reached, or the stack pointer is not the C frame" },
  { "HOST", "no guest frame of this entry exists; registers saved as pushed" },
  { "RUN", "frame at BASE is whole, PC is its bytecode position" },
  { "ENTER", "frame at BASE is whole, PC does not belong to it" },
  { "LINK", "frame at BASE is half made or half gone, its link is in PC" },
  { "LINKX", "as LINK, with the frame type in PC flipped by FRAME_C" },
  { "DELTA", "frame at BASE is left, PC holds the bytes down to the pcall" },
  { "CONTDELTA", "as DELTA, down to what called the metamethod" },
  { "EITHER", "ENTER if the link slot still equals PC, else LINK" },
  { "CALLING", "frame at BASE is calling; PC is its position or the new link" },
  { "SAVEDPC", "as ENTER, the link is in the C frame's saved PC" },
  { "CONT", "frame at BASE resumes after a metamethod; RB is the old base" },
  { "RET_SUB", "return to C: frame below is at BASE - PC" },
  { "RET_NEG", "return to C: frame below is at -PC" },
  { "RET_PC", "return to C: frame below is at PC" },
  { "RET_BASE", "return to C: frame below is at BASE" },
  { "EXIT", "trace exit: C frame and BASE are those of the running VM state" },
  { "CALLBACK",
    "entry of an FFI callback: guest frame once the C frame is linked" },
}
local M = {}
for i, m in ipairs(modes) do M[m[1]] = i - 1 end

-- States ---------------------------------------------------------------------
-- { mode=, base=set, depth= }: depth is how many bytes rsp lies below the C
-- frame (interpreter), or, in HOST, how many bytes were pushed since entry.

local CFRAME_PUSHED = 0x48 -- four registers and the 40 byte frame

local function state(mode, base, depth)
  if not mode then die("rule names a mode that does not exist") end
  return { mode = mode, base = base or 0, depth = depth or 0 }
end
local function host(pushed) return state(M.HOST, 0, pushed) end
local function copy(s) return state(s.mode, s.base, s.depth) end

local function has(set, bit) return set % (2 * bit) >= bit end
local function with(set, bit) return has(set, bit) and set or set + bit end
local function without(set, bit) return has(set, bit) and set - bit or set end
local function both(a, b)
  local r = 0
  for _, bit in ipairs { RDX, RBP, LB } do
    if has(a, bit) and has(b, bit) then r = r + bit end
  end
  return r
end

-- The state that holds where two paths meet: it is true on both. For each pair
-- of modes below, what one mode says about the frame is right for both.
local joins = {
  [M.RUN] = { [M.CALLING] = M.CALLING, [M.ENTER] = M.ENTER },
  [M.ENTER] = { [M.CALLING] = M.CALLING, [M.LINK] = M.LINK,
                [M.EITHER] = M.EITHER },
  [M.LINK] = { [M.EITHER] = M.LINK },
}
local function join(a, b, where)
  local mode
  if not a or not b then die("%s: no state", where) end
  if a.mode == b.mode then
    mode = a.mode
  else
    mode = (joins[a.mode] or {})[b.mode] or (joins[b.mode] or {})[a.mode]
    if not mode then
      die("%s: states %s and %s meet", where, modes[a.mode + 1][1],
          modes[b.mode + 1][1])
    end
  end
  if a.depth ~= b.depth then
    die("%s: stack depths %d and %d meet", where, a.depth, b.depth)
  end
  return state(mode, both(a.base, b.base), a.depth)
end

local function same(a, b)
  return a.mode == b.mode and a.base == b.base and a.depth == b.depth
end

return { RDX = RDX, RBP = RBP, LB = LB, modes = modes, M = M,
         CFRAME_PUSHED = CFRAME_PUSHED, state = state, host = host,
         copy = copy, has = has, with = with, without = without, both = both,
         join = join, same = same }
