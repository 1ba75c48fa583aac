-- What vmmap.lua knows about LuaJIT's assembler VM: how each instruction
-- changes the state, where control enters, and where the flow is followed by
-- hand.
--
-- Loaded by vmmap.lua with the states (vmmap_states.lua), the address of each
-- symbol and its inverse, and the function that stops the build. Returns a
-- table.

local S, addr_of, sym_at, die = ...
local RDX, RBP, LB, M, modes = S.RDX, S.RBP, S.LB, S.M, S.modes
local state, host, copy = S.state, S.host, S.copy
local with, without, has = S.with, S.without, S.has
local CFRAME_PUSHED = S.CFRAME_PUSHED

-- Structure offsets that the disassembly shows; interpreter.c asserts them.
local L_BASE, L_CFRAME, FN_PC = "0x20", "0x50", "0x20"

-- objdump gives aliases only one name: the alias of an address is fine, but
-- every name that the rules below use must exist.
local function need(name)
  if not addr_of[name] then die("symbol %s not found", name) end
  return addr_of[name]
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

-- Fast functions move their results down over their own frame.
rule("lj_vm_call_tail", "lea -0x10(%rdx,%rbp,8),%rdx", becomes(M.CALLING, RDX))
rule("lj_vm_call_tail", "sub %rbp,%rdx", becomes(M.CALLING, RDX))
rule("lj_fff_fallback", "call *0x28(%rax)", becomes(M.EITHER))

-- Varargs: the frame is doubled on entry, halved on return.
rule("lj_BC_IFUNCV", "mov %rax,%rdx", becomes(M.RUN, RDX))
for _, bc in ipairs { "lj_BC_RET", "lj_BC_RET0", "lj_BC_RET1" } do
  rule(bc, "sub %rbp,%rdx", becomes(M.ENTER, RDX))
end
rule("lj_BC_CALLT", "sub %rbx,%rdx", becomes(M.ENTER, RDX))

-- From C into the VM: HOST until the call is dispatched; the frame below is
-- still found through L->base. A coroutine that is resumed after a yield
-- returns from the yield.
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

-- The state behind a special instruction; nil if the instruction is not
-- special.
local function step_special(d, s)
  for _, r in ipairs(special[d.sym] or {}) do
    if r.text == d.text then
      r.used = r.used + 1
      local new = r.fn(s)
      if d.op == "call" then new.base = without(new.base, RDX) end
      return new
    end
  end
end

-- How far rsp is from the C frame.
local function step_stack(d, s, n)
  if d.op == "push" then n.depth = s.depth + 8 end
  if d.op == "pop" then n.depth = s.depth - 8 end
  local sub = string.match(d.text, "^sub %$0x(%x+),%%rsp$")
  if sub then n.depth = s.depth + tonumber(sub, 16) end
  local add = string.match(d.text, "^add %$0x(%x+),%%rsp$")
  if add then n.depth = s.depth - tonumber(add, 16) end
end

-- Where BASE is, and calls and returns, which move it.
local function step_base(d, s, n)
  local t, m = d.text, s.mode
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
end

-- What PC and the frame's slots hold.
local function step_frame(d, s, n)
  local t, m = d.text, s.mode
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
end

-- The state behind an instruction, if s is the state before it.
local function step(d, s)
  local special_state = step_special(d, s)
  if special_state then return special_state end
  local n = copy(s)
  local m = s.mode
  step_stack(d, s, n)
  if m == M.EXIT then n.depth = 0 end -- the C frame is found without rsp
  if m ~= M.HOST and m ~= M.UNKNOWN and m ~= M.EXIT and m ~= M.CALLBACK then
    step_base(d, s, n)
    step_frame(d, s, n)
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
                        "lj_vm_cpcall", "lj_vm_cpuid" } do
  start(name, host(0))
end
start("lj_vm_unwind_c", state(M.UNKNOWN))
start("lj_vm_unwind_c_eh", host(CFRAME_PUSHED))
start("lj_vm_unwind_rethrow", host(CFRAME_PUSHED))
start("lj_vm_unwind_ff", state(M.UNKNOWN))
start("lj_vm_unwind_ff_eh", state(M.ENTER, LB))
start("lj_vm_ffi_callback", host(8))
start("lj_assert_bad_for_arg_type", run)

-- Points where the flow is followed by hand: the state at a symbol, regardless
-- of how control got there.
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

return { need = need, leaf = leaf, special = special, entry = entry,
         forced = forced, step = step, during_call = during_call,
         landings = { "lj_vm_unwind_c_eh", "lj_vm_unwind_ff_eh",
                      "lj_vm_unwind_rethrow" },
         L_BASE = L_BASE, L_CFRAME = L_CFRAME, FN_PC = FN_PC }
