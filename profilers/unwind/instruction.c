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
  uint32_t mod, reg, rm; /* with rex; rm 16: no register alone */
  int64_t disp;          /* what is added to rm, or to rip */
  bool from_rsp;         /* memory at rsp + disp */
};

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
  }
  bool none = r->mod == 0 && base == 5;
  r->disp = insn_signed(r, r->mod == 1 ? 1 : r->mod == 2 || none ? 4 : 0);
  base |= (r->rex & 1) << 3;
  r->from_rsp = !rip && !none && base == 4 && index == 4;
  if (!rip && !none && index == 4 && !r->from_rsp)
    r->rm = 32 + base; /* memory at this register + disp */
}

/* Skips an instruction with a VEX prefix, whose first byte has been read. */
static char insn_vex(struct reading *r, uint8_t first)
{
  uint32_t map = 1;
  if (first == 0xc4)
    map = r->code[r->at++] & 31;
  r->at++;
  uint8_t op = r->code[r->at++];
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
    static const uint8_t kinds[8] = {0,
                                     0,
                                     LJP_INSN_CALL,
                                     LJP_INSN_STOP,
                                     LJP_INSN_JUMP,
                                     LJP_INSN_STOP,
                                     LJP_INSN_PUSH};
    insn->kind = (enum ljp_insn_kind)kinds[r->reg & 7];
  }
}

void ljp_insn_read(struct ljp_insn *insn, const uint8_t *code, uint64_t address)
{
  struct reading r = {.code = code, .rm = 16};
  bool two = false, vex = false;
  *insn = (struct ljp_insn){.target = address};
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
    form = insn_vex(&r, op);
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
  if (two || vex || insn->kind)
    return;
  if ((op & 0xf8) == 0x50 || op == 0x68 || op == 0x6a || op == 0x9c)
    insn->kind = LJP_INSN_PUSH;
  else if ((op & 0xf8) == 0x58)
    insn_set(insn, LJP_INSN_POP, (op & 7) | (r.rex & 1) << 3, 0);
  else if (op == 0x9d)
    insn->kind = LJP_INSN_POPF;
  else if (op == 0xc9)
    insn->kind = LJP_INSN_LEAVE;
  else if (r.modrm)
    insn_moves(insn, &r, op, value);
}
