/*
** See instruction.h. x86-64, as compilers make it for user programs; what is not
** in the tables (EVEX, 3DNow, privileged instructions) has size 0.
*/
#include "profilers/unwind/instruction.h"

#include <string.h>

#include "profilers/unwind/unwind.h"

struct reading {
  const uint8_t *code;
  uint32_t at;
  uint32_t rex;
  bool small; /* operands of two bytes */
  bool modrm;
  uint32_t mod, reg, rm;       /* with rex; rm 16: no register alone */
  int64_t disp;                /* what is added to rm, or to rip */
  bool from_rsp;               /* memory at rsp + disp */
  bool from_rip;               /* memory behind the instruction + disp */
  uint32_t base, index, scale; /* of memory; 16: no register */
  uint32_t map;                /* of opcodes, behind a VEX prefix */
};

/* Sets of registers, by the processor's numbers. */
enum { SET_RAX = 1, SET_RCX = 2, SET_RDX = 4, SET_RBP = 32, SET_RSI = 64 };
enum { SET_RDI = 128, SET_R11 = 2048 };
enum { SET_ALL = 0xffff };

/* What follows an opcode: '.' nothing, 'm' mod r/m, 'b' and 'z' a byte or a
** whole operand, 'M' and 'Z' these behind mod r/m, 'v' an operand of up to eight
** bytes, 'a' an address of eight bytes, 'w' two bytes, 'j' and 'J' a distance of
** one or four bytes, 'f' as M, 'g' as Z for some extensions, '-' not known. */
static const char insn_one[257] = "mmmmbz--mmmmbz--mmmmbz--mmmmbz--"
                                  "mmmmbz--mmmmbz--mmmmbz--mmmmbz--"
                                  "----------------................"
                                  "---m----zZbM....jjjjjjjjjjjjjjjj"
                                  "MZ-Mmmmmmmmmmmm-..........-....."
                                  "aaaa....bz......bbbbbbbbvvvvvvvv"
                                  "MMw.--MZ-.--.---mmmm---.mmmmmmmm"
                                  "jjjj----JJ-j--------..fg......mm";
static const char insn_two[257] = "-m---.-----.-m--mmmmmmmmmmmmmmmm"
                                  "----m---mmmmmmmm-.-.-.----------"
                                  "mmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmm"
                                  "mmmmmmmmmmmmmmmmMMMMmmm.mmmmmmmm"
                                  "JJJJJJJJJJJJJJJJmmmmmmmmmmmmmmmm"
                                  "--.mMm-----mMmmmmmmmmmmmmmMmmmmm"
                                  "mmMmMMMm........mmmmmmmmmmmmmmmm"
                                  "mmmmmmmmmmmmmmmmmmmmmmmmmmmmmmm-";

/* DWARF numbers the first eight registers in another order. */
static uint32_t insn_register(uint32_t number)
{
  static const uint8_t dwarf[8] = {LJP_RAX, LJP_RCX, LJP_RDX, LJP_RBX,
                                   LJP_RSP, LJP_RBP, LJP_RSI, LJP_RDI};
  return number < 8 ? dwarf[number] : number;
}

static int64_t insn_signed(struct reading *r, uint32_t bytes)
{
  int8_t one;
  int16_t two;
  int32_t four;
  int64_t value = 0;
  const uint8_t *from = r->code + r->at;
  r->at += bytes;
  if (r->at > LJP_INSN_BYTES)
    return 0;
  switch (bytes) {
  case 1:
    memcpy(&one, from, 1);
    return one;
  case 2:
    memcpy(&two, from, 2);
    return two;
  case 4:
    memcpy(&four, from, 4);
    return four;
  case 8:
    memcpy(&value, from, 8);
    break;
  }
  return value;
}

static void insn_modrm(struct reading *r)
{
  uint32_t byte = r->code[r->at++], base = byte & 7;
  uint32_t index = 4;
  r->modrm = true;
  r->mod = byte >> 6;
  r->reg = (byte >> 3 & 7) | (r->rex & 4) << 1;
  r->rm = r->mod == 3 ? base | (r->rex & 1) << 3 : 16;
  if (r->mod == 3)
    return;
  bool rip = r->mod == 0 && base == 5;
  if (base == 4 && r->at < LJP_INSN_BYTES) {
    uint32_t sib = r->code[r->at++];
    index = (sib >> 3 & 7) | (r->rex & 2) << 2;
    base = sib & 7;
    r->scale = 1u << (sib >> 6);
    r->index = index == 4 ? 16 : index;
  }
  bool none = r->mod == 0 && base == 5;
  r->disp = insn_signed(r, r->mod == 1 ? 1 : r->mod == 2 || none ? 4 : 0);
  r->from_rip = rip;
  base |= (r->rex & 1) << 3;
  r->base = none ? 16 : base;
  r->from_rsp = !rip && !none && base == 4 && index == 4;
  if (!rip && !none && index == 4 && !r->from_rsp)
    r->rm = 32 + base; /* memory at this register + disp */
}

/* Skips an instruction with a VEX prefix, whose first byte has been read. */
static char insn_vex(struct reading *r, uint8_t first, uint8_t *opcode)
{
  uint32_t map = 1;
  if (first == 0xc4)
    map = r->code[r->at++] & 31;
  r->at++;
  uint8_t op = r->code[r->at++];
  *opcode = op;
  r->map = map;
  if (map == 1)
    return op == 0x77 ? '.' : insn_two[op] == 'M' ? 'M' : 'm';
  return map == 2 ? 'm' : map == 3 ? 'M' : '-';
}

/* Reads what follows the opcode. */
static int64_t insn_operands(struct reading *r, char form)
{
  uint32_t whole = r->small ? 2 : 4;
  if (form == 'm' || form == 'M' || form == 'Z' || form == 'f' || form == 'g') {
    insn_modrm(r);
    if ((form == 'f' || form == 'g') && (r->reg & 7) > 1)
      return 0;
  }
  switch (form) {
  case 'b':
  case 'M':
  case 'f':
  case 'j':
    return insn_signed(r, 1);
  case 'z':
  case 'Z':
  case 'g':
    return insn_signed(r, whole);
  case 'v':
    return insn_signed(r, r->rex & 8 ? 8 : whole);
  case 'a':
    return insn_signed(r, 8);
  case 'w':
    return insn_signed(r, 2);
  case 'J':
    return insn_signed(r, 4);
  }
  return 0;
}

static void insn_set(struct ljp_insn *insn, enum ljp_insn_kind kind,
                     uint32_t reg, int64_t value)
{
  insn->kind = kind;
  insn->reg = reg < 16 ? insn_register(reg) : 0;
  insn->value = value;
}

/* The bits of a register of one byte; without REX, 4 to 7 are in the first
** four. */
static uint32_t insn_byte_bits(const struct reading *r, uint32_t reg)
{
  return reg >= 16 ? 0 : 1u << reg | (r->rex ? 0 : 1u << (reg & 3));
}

/* The general registers that an instruction of two bytes, behind 0f, may
** change. */
static uint32_t insn_writes_two(const struct reading *r, uint8_t op)
{
  uint32_t rm = r->rm < 16 ? 1u << r->rm : 0, reg = 1u << r->reg;
  switch (op & 0xf0) {
  case 0x10:
  case 0x60:
  case 0x80:
  case 0xe0:
  case 0xf0:
    return op == 0xff ? SET_ALL : 0;
  case 0x20:
    return op == 0x2c || op == 0x2d ? reg : op >= 0x28 ? 0 : SET_ALL;
  case 0x40:
    return reg;
  case 0x50:
    return op == 0x50 ? reg : 0;
  case 0x70:
    return op == 0x7e ? rm : 0;
  case 0x90:
    return insn_byte_bits(r, r->rm);
  case 0xd0:
    return op == 0xd7 ? reg : 0;
  }
  switch (op) {
  case 0x05:
    return SET_RAX | SET_RCX | SET_R11;
  case 0x0b:
  case 0xa3:
  case 0xc2:
  case 0xc3:
  case 0xc4:
  case 0xc6:
    return 0;
  case 0xab:
  case 0xb3:
  case 0xba:
  case 0xbb:
    return rm;
  case 0xaf:
  case 0xb6:
  case 0xb7:
  case 0xb8:
  case 0xbc:
  case 0xbd:
  case 0xbe:
  case 0xbf:
  case 0xc5:
    return reg;
  }
  return SET_ALL;
}

/* The same behind a VEX prefix, whose bits for registers are not read. */
static uint32_t insn_writes_vex(const struct reading *r, uint8_t op)
{
  switch (r->map) {
  case 1:
    return insn_writes_two(r, op) ? SET_ALL : 0;
  case 2:
    return op >= 0xf0 ? SET_ALL : 0;
  case 3:
    return op >= 0xf0 || (op & 0xfc) == 0x14 ? SET_ALL : 0;
  }
  return SET_ALL;
}

/* The same for an instruction of one byte. */
static uint32_t insn_writes(const struct reading *r, uint8_t op)
{
  enum { BOTH = SET_RSI | SET_RDI | SET_RCX, TO = SET_RDI | SET_RCX };
  static const uint16_t strings[8] = {
      SET_ALL, SET_ALL, BOTH, BOTH, 0, TO, SET_RSI | SET_RAX | SET_RCX, TO};
  uint32_t rm = r->rm < 16 ? 1u << r->rm : 0, reg = 1u << r->reg;
  uint32_t in_op = 1u << ((op & 7) | (r->rex & 1) << 3), what = r->reg & 7;
  if (!(op & 1) && (op < 0x40 || op == 0x80 || op == 0x86 || op == 0x88 ||
                    op == 0x8a || op == 0xc0 || op == 0xc6 || op == 0xd0 ||
                    op == 0xd2 || op == 0xf6 || op == 0xfe)) {
    rm = insn_byte_bits(r, r->rm);
    reg = insn_byte_bits(r, r->reg);
  }
  if (op < 0x40) /* 38 to 3d compare */
    return op >= 0x38 && op < 0x3e ? 0
           : (op & 7) < 2          ? rm
           : (op & 7) < 4          ? reg
                                   : SET_RAX;
  switch (op & 0xf0) {
  case 0x50:
    return op & 8 ? in_op : 0;
  case 0x70:
    return 0;
  case 0xa0: /* those of strings; a8 and a9 only test */
    return strings[op >> 1 & 7];
  case 0xb0:
    return op & 8 ? in_op : insn_byte_bits(r, (op & 7) | (r->rex & 1) << 3);
  case 0xd0: /* shifts; xlat and what the x87 stores */
    return (op & 8) || op == 0xd7 ? SET_RAX : rm;
  }
  switch (op) {
  case 0x63:
  case 0x69:
  case 0x6b:
  case 0x8a:
  case 0x8b:
  case 0x8d:
    return reg;
  case 0x80:
  case 0x81:
  case 0x83:
    return what == 7 ? 0 : rm;
  case 0x86:
  case 0x87:
    return rm | reg;
  case 0x88:
  case 0x89:
  case 0xc0:
  case 0xc1:
  case 0xc6:
  case 0xc7:
    return rm;
  case 0x68:
  case 0x6a:
  case 0x84:
  case 0x85:
  case 0xe9:
  case 0xeb:
    return 0;
  case 0x90:
    return r->rex & 1 ? SET_ALL : 0;
  case 0x98:
    return SET_RAX;
  case 0x99:
    return SET_RDX;
  case 0xc9:
    return SET_RBP;
  case 0xf6:
  case 0xf7: /* test, not, neg, mul ... */
    return what < 2 ? 0 : what < 4 ? rm : SET_RAX | SET_RDX;
  case 0xfe:
  case 0xff:
    return what < 2 ? rm : what == 4 || what == 6 ? 0 : SET_ALL;
  }
  return SET_ALL;
}

/* By DWARF's numbers. */
static uint32_t insn_set_of(uint32_t registers)
{
  uint32_t set = 0;
  for (uint32_t i = 0; i < 16; i++)
    if (registers >> i & 1)
      set |= 1u << insn_register(i);
  return set;
}

/* What compilers make of a switch in front of the jump: the table's address, an
** entry, and their sum. */
static void insn_table(struct ljp_insn *insn, const struct reading *r,
                       uint8_t op, uint64_t behind)
{
  bool wide = r->rex & 8, alone = r->rm < 16;
  uint32_t from = 16;
  if (op == 0x8d && r->from_rip && wide) {
    insn_set(insn, LJP_INSN_ADDRESS, r->reg, 0);
    insn->target = behind + (uint64_t)r->disp;
  } else if (op == 0x63 && wide && r->scale == 4 && r->base < 16 &&
             r->index < 16 && !r->disp) {
    insn_set(insn, LJP_INSN_ENTRY, r->reg, 0);
    from = r->base;
  } else if ((op == 0x01 || op == 0x89) && wide && alone) {
    insn_set(insn, op == 0x01 ? LJP_INSN_SUM : LJP_INSN_COPY, r->rm, 0);
    from = r->reg;
  } else if ((op == 0x03 || op == 0x8b) && wide && alone) {
    insn_set(insn, op == 0x03 ? LJP_INSN_SUM : LJP_INSN_COPY, r->reg, 0);
    from = r->rm;
  } else if (op == 0x8b && wide && r->index == 16) {
    insn_set(insn, LJP_INSN_LOAD, r->reg, r->disp);
    from = r->from_rip ? 16 : r->base;
  }
  insn->from = from < 16 ? insn_register(from) : 16;
}

/* A jump to an address in a register, in an absolute table, or elsewhere. */
static void insn_jump(struct ljp_insn *insn, const struct reading *r)
{
  if (r->rm < 16) {
    insn_set(insn, LJP_INSN_JUMP_REG, r->rm, 0);
  } else if (r->scale == 8 && r->base == 16 && r->index < 16) {
    insn->kind = LJP_INSN_JUMP_TABLE;
    insn->target = (uint64_t)r->disp;
  } else {
    insn->kind = r->scale > 1 ? LJP_INSN_STOP : LJP_INSN_JUMP_WORD;
  }
}

/* The arithmetic instructions, moves and lea that set rsp or a frame pointer. */
static void insn_moves(struct ljp_insn *insn, const struct reading *r,
                       uint8_t op, int64_t value)
{
  enum { RSP = 4 };
  bool to_rm = op == 0x01 || op == 0x29 || op == 0x21 || op == 0x31 ||
               op == 0x87 || op == 0xc7;
  if (op == 0x81 || op == 0x83) {
    uint32_t what = r->reg & 7; /* 0 add, 4 and, 5 sub, 7 cmp */
    if (r->rm == RSP && what != 7)
      insn_set(insn, what == 0 || what == 5 ? LJP_INSN_ADJUST : LJP_INSN_LOST,
               RSP, what == 5 ? -value : value);
  } else if (op == 0x89 && r->rm < 16) {
    if (r->rm == RSP)
      insn_set(insn, LJP_INSN_FROM, r->reg, 0);
    else if (r->reg == RSP)
      insn_set(insn, LJP_INSN_POINTER, r->rm, 0);
  } else if (op == 0x8b) {
    if (r->reg == RSP)
      insn_set(insn, r->rm < 16 ? LJP_INSN_FROM : LJP_INSN_LOST, r->rm, 0);
    else if (r->rm == RSP)
      insn_set(insn, LJP_INSN_POINTER, r->reg, 0);
  } else if (op == 0x8d) {
    if (r->reg == RSP && r->from_rsp)
      insn_set(insn, LJP_INSN_ADJUST, RSP, r->disp);
    else if (r->reg == RSP)
      insn_set(insn, r->rm >= 32 ? LJP_INSN_FROM : LJP_INSN_LOST,
               r->rm >= 32 ? r->rm - 32 : 0, r->disp);
    else if (r->from_rsp)
      insn_set(insn, LJP_INSN_POINTER, r->reg, r->disp);
  } else if ((to_rm && r->rm == RSP) ||
             ((op == 0x03 || op == 0x2b || op == 0x23 || op == 0x33 ||
               op == 0x87 || op == 0x63 || op == 0x69 || op == 0x6b) &&
              r->reg == RSP)) {
    insn->kind = LJP_INSN_LOST;
  }
}

static void insn_flow(struct ljp_insn *insn, const struct reading *r, bool two,
                      uint8_t op, int64_t value)
{
  uint64_t target = insn->target + r->at + (uint64_t)value;
  insn->target = 0;
  if (two ? (op & 0xf0) == 0x80 : (op & 0xf0) == 0x70 || (op & 0xfc) == 0xe0) {
    insn->kind = LJP_INSN_BRANCH;
    insn->target = target;
  } else if (two) {
    if (op == 0x0b)
      insn->kind = LJP_INSN_STOP;
  } else if (op == 0xe8 || op == 0xe9 || op == 0xeb) {
    insn->kind = op == 0xe8 ? LJP_INSN_CALL : LJP_INSN_JUMP;
    insn->target = target;
  } else if (op == 0xc2 || op == 0xc3) {
    insn_set(insn, LJP_INSN_RETURN, 0, op == 0xc2 ? value & 0xffff : 0);
  } else if (op == 0xcc || op == 0xf4) {
    insn->kind = LJP_INSN_STOP;
  } else if (op == 0xff && r->modrm) {
    static const uint8_t kinds[8] = {
        0, 0, LJP_INSN_CALL, LJP_INSN_STOP, 0, LJP_INSN_STOP, LJP_INSN_PUSH};
    insn->kind = (enum ljp_insn_kind)kinds[r->reg & 7];
    if ((r->reg & 7) == 4)
      insn_jump(insn, r);
  }
}

void ljp_insn_read(struct ljp_insn *insn, const uint8_t *code, uint64_t address)
{
  struct reading r = {.code = code, .rm = 16, .base = 16, .index = 16};
  bool two = false, vex = false;
  uint8_t vex_op = 0;
  *insn =
      (struct ljp_insn){.target = address, .from = 16, .writes = UINT32_MAX};
  uint8_t op = code[r.at++];
  while (op == 0x66 || op == 0xf2 || op == 0xf3 || op == 0x64 || op == 0x65 ||
         op == 0x67 || op == 0x2e || op == 0x36 || op == 0x3e || op == 0x26 ||
         op == 0xf0) {
    r.small |= op == 0x66;
    if (r.at >= LJP_INSN_BYTES - 4)
      return;
    op = code[r.at++];
  }
  if ((op & 0xf0) == 0x40) {
    r.rex = op & 15;
    op = code[r.at++];
  }
  char form = insn_one[op];
  if (op == 0xc4 || op == 0xc5) {
    vex = true;
    form = insn_vex(&r, op, &vex_op);
  } else if (op == 0x0f) {
    two = true;
    op = code[r.at++];
    form = insn_two[op];
    if (op == 0x38 || op == 0x3a) {
      form = op == 0x38 ? 'm' : 'M';
      r.at++;
    }
  }
  if (r.small && (form == 'J' || op == 0xe8 || op == 0xe9))
    return; /* two bytes or four: processors differ */
  if (form == '-')
    return;
  int64_t value = insn_operands(&r, form);
  if (r.at > LJP_INSN_BYTES)
    return;
  insn->size = r.at;
  insn_flow(insn, &r, two, vex ? 0x90 : op, value);
  insn->writes = insn_set_of(vex   ? insn_writes_vex(&r, vex_op)
                             : two ? insn_writes_two(&r, op)
                                   : insn_writes(&r, op));
  if (two || vex || insn->kind)
    return;
  if ((op & 0xf8) == 0x50)
    insn_set(insn, LJP_INSN_PUSH, (op & 7) | (r.rex & 1) << 3, 0);
  else if (op == 0x68 || op == 0x6a || op == 0x9c)
    insn->kind = LJP_INSN_PUSH;
  else if ((op & 0xf8) == 0x58)
    insn_set(insn, LJP_INSN_POP, (op & 7) | (r.rex & 1) << 3, 0);
  else if (op == 0x9d)
    insn->kind = LJP_INSN_POPF;
  else if (op == 0xc9)
    insn->kind = LJP_INSN_LEAVE;
  else if (r.modrm)
    insn_moves(insn, &r, op, value);
  if (r.modrm && !insn->kind && !r.small)
    insn_table(insn, &r, op, address + r.at);
}
