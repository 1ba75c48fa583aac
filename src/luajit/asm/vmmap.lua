-- Build-time map of LuaJIT's assembler VM (x64, GC64).
--
-- Reads the disassembly of lj_vm.o and follows, instruction by instruction,
-- where the interpreter keeps BASE and in which state the frame at BASE is.
-- The result is one 16-bit word per code byte (see vmmap.h for its fields):
-- at the first byte of an instruction the state before it is executed, at
-- the other bytes of a call the state that holds while the callee runs.
-- Whatever the script does not understand stops the build: a guess would
-- become a wrong frame in somebody's profile.
--
-- Usage: minilua vmmap.lua DISASSEMBLY MAP NAMES [verbose]

local infile, outfile, namesfile, verbose = ...

-- Where BASE can be found (bits of a set).
local RDX, RBP, LB = 1, 2, 4

-- Modes: number, name, meaning. Kept in step with vmmap.h by the generated
-- enum.
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
  { "CALLBACK", "entry of an FFI callback: guest frame once the C frame is linked" },
}
local M = {}
for i, m in ipairs(modes) do M[m[1]] = i - 1 end

-- Structure offsets that the disassembly shows; frames/interpreter.c asserts them.
local L_BASE, L_CFRAME, FN_PC = "0x20", "0x50", "0x20"

local function die(fmt, ...)
  io.stderr:write("vmmap: ", string.format(fmt, ...), "\n")
  os.exit(1)
end

-- Read the disassembly -------------------------------------------------------

local ins, order = {}, {}   -- by address; addresses in order
local sym_at, addr_of = {}, {}
local cur_sym, last
local input = io.open(infile)
if not input then die("cannot read %s", infile) end
for line in input:lines() do
  local a, s = string.match(line, "^(%x+) <([%w_]+)>:")
  if a then
    cur_sym = s
    sym_at[tonumber(a, 16)] = s
    addr_of[s] = tonumber(a, 16)
  elseif string.match(line, "^%x+ g") then
    -- The symbol table has the aliases, which the listing leaves out.
    a, s = string.match(line, "^(%x+) .- ([%w_]+)$")
    if a then addr_of[s] = tonumber(a, 16) end
  else
    local addr, text = string.match(line, "^%s+(%x+):\t(.+)$")
    if addr and not string.match(text, "^R_X86") then
      addr = tonumber(addr, 16)
      local d_raw = text
      text = string.gsub(text, "%s*#.*$", "")
      text = string.gsub(text, "%s*<.*$", "")
      text = string.gsub(text, "%s+$", "")
      local op, rest = string.match(text, "^(%S+)%s*(.*)$")
      while op == "rex.W" or op == "notrack" or op == "data16"
            or op == "repz" do
        op, rest = string.match(rest, "^(%S+)%s*(.*)$")
      end
      if not op then die("cannot read instruction %s", line) end
      local target = string.match(d_raw, "%s(%x+) <")
      if target then target = tonumber(target, 16) end
      last = { addr = addr, op = op, args = rest, sym = cur_sym,
               text = op .. " " .. rest, target = target }
      ins[addr] = last
      order[#order + 1] = last
    elseif last then
      local ext = string.match(line, "R_X86_64_%w+%s+([%w_]+)")
      if ext then last.ext = ext end
    end
  end
end
if #order < 1000 then die("%s is no disassembly of lj_vm.o", infile) end
for i, d in ipairs(order) do d.next = order[i + 1] end
local code_size = order[#order].addr + 1

-- objdump gives aliases only one name: the alias of an address is fine, but
-- every name that the rules below use must exist.
local function need(name)
  if not addr_of[name] then die("symbol %s not found", name) end
  return addr_of[name]
end

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

-- Two ways lead here: the state that is true of both. The pairs below are
-- those in which one mode's reading is right for the other as well.
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

-- Registers: which instruction writes rdx, rbp, rbx ------------------------

local sub_regs = {
  rdx = { "rdx", "edx", "dx", "dl", "dh" },
  rbp = { "rbp", "ebp", "bp", "bpl" },
  rbx = { "rbx", "ebx", "bx", "bl" },
}
local no_write = { cmp = true, test = true, ucomisd = true, push = true,
  call = true, jmp = true, cmpb = true, cmpl = true, cmpq = true,
  testb = true, testl = true, nop = true, ret = true, int3 = true,
  comisd = true, cmpw = true, testq = true }
local function writes(d, reg)
  if no_write[d.op] or string.match(d.op, "^j") then return false end
  local dst = string.match(d.args, "([^,]+)$")
  if not dst or string.match(dst, "%)$") then return false end
  for _, r in ipairs(sub_regs[reg]) do
    if dst == "%" .. r then return true end
  end
  return false
end

-- Leaf routines of the VM that leave rdx, rbx and rbp alone.
local leaf = { lj_vm_floor_sse = true, lj_vm_ceil_sse = true,
  lj_vm_floor = true, lj_vm_ceil = true, lj_vm_mod = true }

-- While an external function runs.
local function during_call(d, s)
  local r = copy(s)
  r.base = without(r.base, RDX)
  -- lj_tab_next() writes its results over the frame's own slots.
  if s.mode == M.ENTER and d.sym == "lj_ff_next" then
    r.mode = M.EITHER
  end
  return r
end

-- Rules for single instructions, looked up by symbol and by text -------------

local special = {}
local function rule(sym, text, fn)
  need(sym)
  special[sym] = special[sym] or {}
  table.insert(special[sym], { text = text, fn = fn, used = 0 })
end
local function becomes(mode, base)
  return function(s) return state(mode, base or s.base, s.depth) end
end

-- Return to C or through a pcall, metamethod or FFI frame.
rule("lj_vm_return", "xor $0x1,%rbx", becomes(M.LINKX))
rule("lj_vm_return", "and $0xfffffffffffffff8,%rbx", becomes(M.RET_SUB))
rule("lj_vm_return", "sub %rdx,%rbx", becomes(M.RET_NEG))
rule("lj_vm_return", "neg %rbx", becomes(M.RET_PC, 0))
rule("lj_vm_return", "mov %rbx," .. L_BASE .. "(%rbp)",
     function() return host(CFRAME_PUSHED) end)
rule("lj_vm_returnp", "and $0xfffffffffffffff8,%rbx", becomes(M.DELTA))
rule("lj_vm_returnp", "sub %rbx,%rdx", becomes(M.ENTER, RDX))
rule("lj_vm_returnp", "mov %r11,(%rdx,%rcx,1)", becomes(M.LINK))
rule("lj_cont_dispatch", "and $0xfffffffffffffff8,%rbx",
     becomes(M.CONTDELTA))
rule("lj_cont_dispatch", "sub %rbx,%rdx", becomes(M.CONT, RDX))
rule("lj_cont_dispatch", "mov -0x18(%rbp),%rbx", becomes(M.CONT, RDX))
rule("lj_cont_dispatch", "sub %rdx,%rbp", becomes(M.LINK))

-- Fast functions take their results down over their own frame.
rule("lj_vm_call_tail", "lea -0x10(%rdx,%rbp,8),%rdx", becomes(M.CALLING, RDX))
rule("lj_vm_call_tail", "sub %rbp,%rdx", becomes(M.CALLING, RDX))
rule("lj_fff_fallback", "call *0x28(%rax)", becomes(M.EITHER))

-- Varargs: the frame is doubled on entry, halved on return.
rule("lj_BC_IFUNCV", "mov %rax,%rdx", becomes(M.RUN, RDX))
for _, bc in ipairs { "lj_BC_RET", "lj_BC_RET0", "lj_BC_RET1" } do
  rule(bc, "sub %rbp,%rdx", becomes(M.ENTER, RDX))
end
rule("lj_BC_CALLT", "sub %rbx,%rdx", becomes(M.ENTER, RDX))

-- From C into the VM. HOST until the call is dispatched; the frame below is
-- still found through L->base.
-- A coroutine that is resumed after a yield returns from the yield.
rule("lj_vm_resume", "mov -0x8(%rdx),%rbx",
     function() return state(M.LINK, RDX, 0) end)

-- Coroutines: results move over the link slot; PC is saved in the C frame.
for _, f in ipairs { "lj_ff_coroutine_resume", "lj_ff_coroutine_wrap_aux" } do
  rule(f, "mov 0x18(%rsp),%rbx", becomes(M.LINK))
end
rule("lj_ff_coroutine_resume", "mov %r11,-0x8(%rdx)", becomes(M.SAVEDPC))
rule("lj_ff_coroutine_resume", "add $0x8,%rdx",
     function(s) return state(s.mode, without(s.base, RDX), s.depth) end)

-- Unwinding lands here with rsp at the C frame.
rule("lj_vm_unwind_c", "mov %rdi,%rsp",
     function() return host(CFRAME_PUSHED) end)
rule("lj_vm_unwind_ff", "mov %rdi,%rsp", becomes(M.ENTER, LB))

-- Trace exits: the C frame comes from the state, until rsp is set to it.
rule("lj_vm_exit_handler", "mov " .. L_BASE .. "(%rbp),%rdx",
     becomes(M.EXIT, RDX))
rule("lj_vm_exit_interp", "mov %rcx,%rsp", becomes(M.RUN, RDX))

-- FFI callbacks.
rule("lj_vm_ffi_callback", "mov 0x20(%rax),%rdx", becomes(M.ENTER, LB + RDX))
rule("lj_cont_ffi_callback", "mov %rdx,0x20(%rcx)",
     function() return host(CFRAME_PUSHED) end)

-- One instruction ------------------------------------------------------------

local function step(d, s)
  local t = d.text
  for _, r in ipairs(special[d.sym] or {}) do
    if r.text == t then
      r.used = r.used + 1
      local new = r.fn(s)
      if d.op == "call" then new.base = without(new.base, RDX) end
      return new
    end
  end
  local n = copy(s)
  local m = s.mode

  -- The C stack.
  if d.op == "push" then n.depth = s.depth + 8 end
  if d.op == "pop" then n.depth = s.depth - 8 end
  local sub = string.match(t, "^sub %$0x(%x+),%%rsp$")
  if sub then n.depth = s.depth + tonumber(sub, 16) end
  local add = string.match(t, "^add %$0x(%x+),%%rsp$")
  if add then n.depth = s.depth - tonumber(add, 16) end
  if m == M.EXIT then n.depth = 0 end -- the C frame is found without rsp
  if m == M.HOST or m == M.UNKNOWN or m == M.EXIT or m == M.CALLBACK then
    return n
  end

  -- Where BASE is.
  if string.match(t, "^mov %%rdx," .. L_BASE .. "%(%%r[bdcs][pix]%)$") then
    if m == M.RET_PC or not has(s.base, RDX) then
      die("%s+%x: L->base is set from a register that is not BASE", d.sym,
          d.addr - addr_of[d.sym])
    end
    n.base = with(n.base, LB)
  elseif t == "mov %rdx,%rbp" then
    n.base = has(s.base, RDX) and with(n.base, RBP) or without(n.base, RBP)
  elseif t == "mov %rbp,%rdx" then
    n.base = has(s.base, RBP) and with(n.base, RDX) or without(n.base, RDX)
  elseif t == "mov " .. L_BASE .. "(%rbp),%rdx"
      or t == "mov " .. L_BASE .. "(%rdi),%rdx" then
    n.base = has(s.base, LB) and with(n.base, RDX) or without(n.base, RDX)
  elseif t == "lea 0x10(%rdx,%rcx,8),%rdx" or t == "mov %rcx,%rdx" then
    -- A call: BASE moves up to the new frame, PC is its link.
    if m ~= M.RUN and m ~= M.CALLING then
      die("%s: call from state %s", d.sym, modes[m + 1][1])
    end
    n.mode, n.base = M.LINK, RDX
  elseif t == "lea -0x10(%rdx,%rcx,8),%rdx" then
    -- A return: BASE moves down to the caller, PC is its position.
    if m ~= M.LINK and m ~= M.ENTER and m ~= M.EITHER then
      die("%s: return from state %s", d.sym, modes[m + 1][1])
    end
    n.mode, n.base = M.RUN, RDX
  elseif writes(d, "rdx") then
    n.base = without(n.base, RDX)
  elseif writes(d, "rbp") then
    n.base = without(n.base, RBP)
  end

  -- What PC and the frame's slots hold.
  if t == "mov -0x8(%rdx),%rbx" then
    n.mode = string.match(d.sym, "^lj_BC_RET") and M.LINK or M.ENTER
  elseif t == "mov %rbx,-0x8(%rdx)" then
    if m ~= M.LINK then die("%s: link stored in state %s", d.sym,
                            modes[m + 1][1]) end
    n.mode = M.ENTER
  elseif t == "mov " .. FN_PC .. "(%rbp),%rbx" then
    n.mode = M.RUN
  elseif m == M.ENTER and string.match(d.args, ",%-0x8%(%%rdx%)$") and
         d.op ~= "cmp" then
    n.mode = M.LINK -- math.modf: C code has written the first result
  elseif string.match(d.args, ",%-0x10%(%%rdx%)$") and d.op ~= "cmp" then
    if m == M.ENTER or m == M.EITHER then
      if d.sym ~= "lj_BC_CALLT" then n.mode = M.LINK end
    elseif m == M.RUN then
      die("%s+%x: function slot overwritten while PC is not the link", d.sym,
          d.addr - addr_of[d.sym])
    end
  elseif writes(d, "rbx") and m == M.RUN then
    -- Arithmetic on PC inside the function keeps it a position.
    if not (string.match(t, "^add %$0x4,%%rbx") or
            string.match(t, "^sub %$0x4,%%rbx") or
            string.match(t, "^lea .*%(%%rbx") or
            string.match(t, "^or %$0x1,%%rbx") or
            string.match(t, "^and %$0xf+e,%%rbx") or
            string.match(t, "^mov 0x18%(%%rcx%),%%rbx")) then
      n.mode = M.ENTER
    end
  end
  return n
end

-- Entry states ---------------------------------------------------------------

local entry = {}
local function start(name, s) entry[need(name)] = s end
local run = state(M.RUN, RDX)

for addr, name in pairs(sym_at) do
  if string.match(name, "^lj_BC_") or string.match(name, "^lj_ff_")
     or string.match(name, "^lj_cont_") then
    entry[addr] = run
  end
end
for _, name in ipairs { "lj_vm_record", "lj_vm_rethook", "lj_vm_inshook",
                        "lj_vm_hotloop", "lj_vm_callhook", "lj_vm_hotcall",
                        "lj_vm_profhook", "lj_vm_exit_interp" } do
  start(name, run)
end
entry[need("lj_cont_dispatch")] = nil
start("lj_vm_exit_interp", state(M.EXIT, RDX))
start("lj_vm_exit_handler", state(M.EXIT))
start("lj_cont_ffi_callback", state(M.RET_BASE, RDX))
for _, name in ipairs { "lj_vm_resume", "lj_vm_pcall", "lj_vm_call",
                        "lj_vm_cpcall" } do
  start(name, host(0))
end
for _, name in ipairs { "lj_vm_floor", "lj_vm_ceil", "lj_vm_trunc",
                        "lj_vm_mod", "lj_vm_next", "lj_vm_cpuid" } do
  start(name, host(0))
end
start("lj_vm_unwind_c", state(M.UNKNOWN))
start("lj_vm_unwind_c_eh", host(CFRAME_PUSHED))
start("lj_vm_unwind_rethrow", host(CFRAME_PUSHED))
start("lj_vm_unwind_ff", state(M.UNKNOWN))
start("lj_vm_unwind_ff_eh", state(M.ENTER, LB))
start("lj_vm_ffi_callback", host(8))
start("lj_assert_bad_for_arg_type", run)

-- Points where the flow is followed by hand: the state that holds at a
-- symbol or behind a call whatever led there.
local forced = {}
forced[need("lj_vm_call_dispatch")] = function(s)
  -- Reached from C (HOST) and from fast functions and metamethods.
  return state(M.CALLING, with(s.base, RDX), 0)
end
-- Fast functions fall back before they have written any result.
for _, f in ipairs { "lj_fff_fallback", "lj_fff_fallback_1",
                     "lj_fff_fallback_2" } do
  forced[need(f)] = function(s) return state(M.ENTER, s.base, s.depth) end
end
local function to_host(s) return host(CFRAME_PUSHED) end
forced[need("lj_vm_leave_cp")] = to_host
forced[need("lj_vm_leave_unw")] = to_host
forced[need("lj_vm_unwind_yield")] = to_host
forced[need("lj_vm_unwind_c_eh")] = to_host
forced[need("lj_vm_call_tail")] = function(s)
  return state(M.LINK, s.base, s.depth)
end
forced[need("lj_vm_returnc")] = function(s)
  return state(M.LINK, s.base, s.depth)
end
forced[need("lj_vm_exit_interp")] = function(s) return state(M.EXIT, RDX) end
forced[need("lj_cont_ffi_callback")] = function(s)
  return state(M.RET_BASE, RDX)
end

-- Dataflow -------------------------------------------------------------------

local before, during = {}, {}
local ffi_call = need("lj_vm_ffi_call")
local work = {}
local function flow(addr, s, from)
  local d = ins[addr]
  if not d then die("no instruction at %x (from %s)", addr, from) end
  if addr >= ffi_call then return end
  if forced[addr] then s = forced[addr](s) end
  local old = before[addr]
  local new = old and join(old, s, d.sym .. "+" ..
    string.format("%x (from %s)", addr - addr_of[d.sym], from)) or copy(s)
  if not old or not same(old, new) then
    before[addr] = new
    work[#work + 1] = d
  end
end

for _, d in ipairs(order) do
  if entry[d.addr] then flow(d.addr, entry[d.addr], "entry") end
end

local gcstep = need("lj_fff_gcstep")
local resume = need("lj_vm_resume")
local calling_host = {} -- addresses from vm_call's frame set-up to dispatch
while #work > 0 do
  local d = table.remove(work)
  local s = before[d.addr]
  local from = d.sym .. string.format("+%x", d.addr - addr_of[d.sym])
  if d.op == "jmp" then
    if d.target and not d.ext then flow(d.target, s, from) end
  elseif d.op == "ret" or d.op == "int3" then
    -- nothing follows
  elseif string.match(d.op, "^j") then
    local taken, fall = s, s
    if d.target then flow(d.target, taken, from) end
    flow(d.next.addr, fall, from)
  elseif d.op == "call" then
    local after
    local callee = d.target and not d.ext and sym_at[d.target]
    if callee and leaf[callee] then
      after = copy(s)
      during[d.addr] = copy(s)
    elseif d.target == gcstep and not d.ext then
      local inside = copy(s)
      inside.depth = s.depth + 8
      inside.base = both(inside.base, RDX)
      flow(d.target, inside, from)
      after = state(s.mode, RDX + LB, s.depth)
      during[d.addr] = state(s.mode, LB, s.depth)
    elseif d.target == resume and not d.ext then
      after = state(M.ENTER, LB, s.depth)
      during[d.addr] = copy(after)
    elseif s.mode == M.EXIT then
      after = copy(s)
      during[d.addr] = copy(s)
    elseif d.ext == "lj_err_trace" then
      -- An error rethrown from a trace exit: L->base was set by the exit.
      during[d.addr] = state(M.EXIT, LB)
    elseif d.sym == "lj_cont_ffi_callback" then
      during[d.addr] = state(M.CALLBACK, LB)
      after = host(CFRAME_PUSHED)
    elseif d.sym == "lj_vm_ffi_callback" then
      during[d.addr] = state(M.CALLBACK, LB)
      after = state(M.ENTER, LB)
    else
      during[d.addr] = during_call(d, step(d, s))
      after = copy(during[d.addr])
    end
    -- A call that never returns is the last of its routine.
    if d.next and not (d.ext == "lj_err_trace" or d.ext == "lj_err_throw"
        or d.ext == "lj_ffh_coroutine_wrap_err") then
      flow(d.next.addr, after, from)
    end
  elseif d.next then
    flow(d.next.addr, step(d, s), from)
  end
end

for sym, rules in pairs(special) do
  for _, r in ipairs(rules) do
    if r.used == 0 then die("rule %s: %s matches nothing", sym, r.text) end
  end
end

-- Every state in which a guest frame is to be found must say where BASE is.
local needs_base = { [M.RUN] = true, [M.ENTER] = true, [M.LINK] = true,
  [M.LINKX] = true, [M.DELTA] = true, [M.CONTDELTA] = true, [M.EITHER] = true, [M.CALLING] = true,
  [M.SAVEDPC] = true, [M.CONT] = true, [M.RET_SUB] = true }
local reached = 0
for _, d in ipairs(order) do
  local function check(s, what)
    if s and needs_base[s.mode] and s.base == 0 then
      die("%s+%x: %s (%s): BASE is nowhere in state %s", d.sym,
          d.addr - addr_of[d.sym], d.text, what, modes[s.mode + 1][1])
    end
  end
  check(before[d.addr], "before")
  check(during[d.addr], "during")
  if before[d.addr] then reached = reached + 1 end
end

-- lj_vm_ffi_call keeps a frame of its own: HOST with rbp or rsp as it goes.
-- Its shape is fixed by three instructions at either end.
do
  local d = ins[ffi_call]
  local names = { "push %rbp", "mov %rsp,%rbp", "push %rbx" }
  for _, n in ipairs(names) do
    if d.text ~= n then die("lj_vm_ffi_call begins with %s", d.text) end
    d = d.next
  end
end

-- Output ---------------------------------------------------------------------

local function word(s)
  if not s then return 0 end
  local depth = s.depth / 8
  if depth < 0 or depth > 31 then die("stack depth %d", s.depth) end
  return s.mode + s.base * 32 + depth * 256
end

local out = io.open(outfile, "w")
if not out then die("cannot write %s", outfile) end
out:write("/* Generated by vmmap.lua from lj_vm.o. Do not edit. */\n")
out:write(string.format("#define LJP_VMMAP_CODE_SIZE %d\n", code_size))
out:write(string.format("#define LJP_VMMAP_FFI_CALL %d\n", ffi_call))
out:write(string.format("#define LJP_VMMAP_L_BASE %s\n", L_BASE))
out:write(string.format("#define LJP_VMMAP_L_CFRAME %s\n", L_CFRAME))
out:write(string.format("#define LJP_VMMAP_FN_PC %s\n", FN_PC))
for i, m in ipairs(modes) do
  out:write(string.format("#define LJP_VM_%s %d /* %s */\n", m[1], i - 1, m[2]))
end
out:write("#ifdef LJP_VMMAP_TABLE\n")
out:write("static const uint16_t vmmap[LJP_VMMAP_FFI_CALL] = {\n")
local col = 0
for i, d in ipairs(order) do
  if d.addr >= ffi_call then break end
  local stop = d.next and d.next.addr or d.addr + 1
  for a = d.addr, stop - 1 do
    local s = a == d.addr and before[d.addr] or during[d.addr]
    out:write(word(s), ",")
    col = col + 1
    if col == 16 then out:write("\n"); col = 0 end
  end
end
out:write("\n};\n#endif\n")
out:close()

out = io.open(namesfile, "w")
if not out then die("cannot write %s", namesfile) end
out:write("/* Generated by vmmap.lua from lj_vm.o. Do not edit. */\n")
local longest = 0
for _, name in pairs(sym_at) do
  if #name > longest then longest = #name end
end
out:write(string.format("static const struct { uint32_t offset; char name[%d]; } " ..
          "vmmap_names[] = {\n", longest + 1))
for _, d in ipairs(order) do
  if sym_at[d.addr] then
    out:write(string.format("  { %d, \"%s\" },\n", d.addr, sym_at[d.addr]))
  end
end
out:write("};\n")
out:close()
if verbose then
  for _, d in ipairs(order) do
    local s = before[d.addr]
    local function show(x)
      if not x then return "-" end
      return string.format("%s/%d/%x", modes[x.mode + 1][1], x.base, x.depth)
    end
    io.stdout:write(string.format("%6x %-26s %-24s %-20s %s", d.addr, d.sym, show(s),
      during[d.addr] and show(during[d.addr]) or "", d.text), "\n")
  end
end
