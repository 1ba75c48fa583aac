-- Build-time map of LuaJIT's assembler VM (x64, GC64).
--
-- Reads the disassembly of lj_vm.o and follows, instruction by instruction,
-- where the interpreter keeps BASE and in which state the frame at BASE is.
-- The result is one 16-bit word per code byte (see vmmap.h for its fields). The
-- first byte of an instruction has the state before the instruction. The other
-- bytes of a call have the state while the callee runs. An unwinder may plant
-- the place where it lands as a return address, which is looked up one byte
-- earlier: the byte before the place has the state there. Code that the script
-- does not understand stops the build: a guess would become a wrong frame in a
-- user's profile.
--
-- Usage: minilua vmmap.lua DISASSEMBLY MAP NAMES [verbose]

local infile, outfile, namesfile, verbose = ...

local function die(fmt, ...)
  io.stderr:write("vmmap: ", string.format(fmt, ...), "\n")
  os.exit(1)
end

-- minilua has no require(): the parts lie beside this file.
local function part(name, ...)
  local file = string.match(arg[0], "^(.-)[^/]*$") .. name
  local chunk, why = loadfile(file)
  if not chunk then die("%s", why) end
  return chunk(...)
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

local S = part("vmmap_states.lua", die)
local rules = part("vmmap_rules.lua", S, addr_of, sym_at, die)
local RDX, RBP, LB, M, modes = S.RDX, S.RBP, S.LB, S.M, S.modes
local state, host, copy = S.state, S.host, S.copy
local both, join, same = S.both, S.join, S.same
local CFRAME_PUSHED = S.CFRAME_PUSHED
local need, entry, forced, leaf = rules.need, rules.entry, rules.forced,
                                  rules.leaf
local step, during_call = rules.step, rules.during_call

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
local function follow(d)
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
local function follow_all()
  while #work > 0 do follow(table.remove(work)) end
end
follow_all()

-- A routine that nothing in the VM leads to is called by C and compiled code:
-- lj_vm_floor and the like. It has no guest frame, and changes neither the stack
-- nor a register that its caller keeps; otherwise it needs a rule.
local function check_leaf(first)
  local d = first
  while d and d.addr < ffi_call and (d == first or not sym_at[d.addr]) do
    local inside = d.target and ins[d.target] and ins[d.target].sym == d.sym
    local kept = string.match(d.text, "%%[re]?[bs]p[l]?$") or
      string.match(d.text, "%%[re]?bx$") or string.match(d.text, "%%r1[2-5]")
    if d.op == "call" or d.op == "push" or d.op == "pop" or d.ext or kept
       or (string.match(d.op, "^j") and not inside) then
      die("nothing leads to %s, and it is no leaf routine: %s", first.sym,
          d.text)
    end
    d = d.next
  end
end
for _, d in ipairs(order) do
  if sym_at[d.addr] and d.addr < ffi_call and not before[d.addr] then
    check_leaf(d)
    flow(d.addr, host(0), "C")
    follow_all()
  end
end

for sym, list in pairs(rules.special) do
  for _, r in ipairs(list) do
    if r.used == 0 then die("rule %s: %s matches nothing", sym, r.text) end
  end
end

-- Every state that has a guest frame must say where BASE is.
local needs_base = { [M.RUN] = true, [M.ENTER] = true, [M.LINK] = true,
  [M.LINKX] = true, [M.DELTA] = true, [M.CONTDELTA] = true,
  [M.EITHER] = true, [M.CALLING] = true,
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

-- lj_vm_ffi_call has a frame of its own: mode HOST, found by rbp or rsp. Three
-- instructions at either end define its shape.
do
  local d = ins[ffi_call]
  local names = { "push %rbp", "mov %rsp,%rbp", "push %rbx" }
  for _, n in ipairs(names) do
    if d.text ~= n then die("lj_vm_ffi_call begins with %s", d.text) end
    d = d.next
  end
end

-- Output ---------------------------------------------------------------------

-- Is this a builtin's own code? lj_fff_res_ ends in the caller of the builtin.
local function in_builtin(sym, s)
  return string.match(sym, "^lj_fff?_") and
         not (sym == "lj_fff_res_" and s.mode == M.RUN)
end

local function word(s, sym)
  if not s then return 0 end
  local depth = s.depth / 8
  if depth < 0 or depth > 31 then die("stack depth %d", s.depth) end
  return s.mode + s.base * 32 + depth * 256 +
         (in_builtin(sym, s) and 32768 or 0)
end
need("lj_fff_res_")

-- The instruction before the place is longer than that byte, or the byte would
-- be its first.
local planted = {}
for _, name in ipairs(rules.landings) do
  local addr = need(name)
  if ins[addr - 1] or not before[addr] then
    die("%s cannot be planted as a return address", name)
  end
  planted[addr - 1] = before[addr]
end

local out = io.open(outfile, "w")
if not out then die("cannot write %s", outfile) end
out:write("/* Generated by vmmap.lua from lj_vm.o. Do not edit. */\n")
out:write(string.format("#define LJP_VMMAP_CODE_SIZE %d\n", code_size))
out:write(string.format("#define LJP_VMMAP_FFI_CALL %d\n", ffi_call))
out:write(string.format("#define LJP_VMMAP_L_BASE %s\n", rules.L_BASE))
out:write(string.format("#define LJP_VMMAP_L_CFRAME %s\n", rules.L_CFRAME))
out:write(string.format("#define LJP_VMMAP_FN_PC %s\n", rules.FN_PC))
for i, m in ipairs(modes) do
  out:write(string.format("#define LJP_VM_%s %d /* %s */\n", m[1], i - 1,
                          m[2]))
end
out:write("#ifdef LJP_VMMAP_TABLE\n")
out:write("static const uint16_t vmmap[LJP_VMMAP_FFI_CALL] = {\n")
local col = 0
for i, d in ipairs(order) do
  if d.addr >= ffi_call then break end
  local stop = d.next and d.next.addr or d.addr + 1
  for a = d.addr, stop - 1 do
    local s = a == d.addr and before[d.addr] or planted[a] or during[d.addr]
    out:write(word(s, planted[a] and d.next.sym or d.sym), ",")
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
out:write(string.format("static const struct { uint32_t offset; " ..
          "char name[%d]; } vmmap_names[] = {\n", longest + 1))
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
    io.stdout:write(string.format("%6x %-26s %-24s %-20s %s", d.addr, d.sym,
      show(s), during[d.addr] and show(during[d.addr]) or "", d.text), "\n")
  end
end
