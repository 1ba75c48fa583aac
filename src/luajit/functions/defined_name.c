/*
** Names of functions, from the bytecode that defines them. Shortly after the
** instruction that makes a closure, another one stores the closure where it
** gets its name: in a table field, a global, an upvalue, or a register that is
** a local variable from there on. A closure that goes elsewhere (an argument, a
** result) has no name.
** Runs outside any handler, while the prototype and its constants exist.
*/
#define LUA_CORE

#include <string.h>

#include "lj_obj.h"
#include "lj_bc.h"
#include "lj_debug.h"

#include "src/base/sigsafe.h"
#include "src/luajit/functions/defined_name.h"

/* How many instructions to look past the one that makes the closure. Parallel
** assignments and constructors put a few constants and closures in between. */
enum { REACH = 16 };

static uint32_t name_uleb(const uint8_t **at)
{
  uint32_t value = *(*at)++;
  if (LJP_LIKELY(value < 0x80))
    return value;
  value &= 0x7f;
  for (int shift = 7; shift < 35; shift += 7) {
    uint8_t byte = *(*at)++;
    value |= (uint32_t)(byte & 0x7f) << shift;
    if (!(byte & 0x80))
      break;
  }
  return value;
}

/* The name of the local variable in a slot at position pc, NULL if there is
** none; *born: the position where its life begins; *next: no variable begins
** between pc and this position. LuaJIT keeps variables in the order in which
** they begin. Each has its name (or a small number for LuaJIT's own), the
** distance from the previous beginning, and the length of its life. */
static const char *name_local_at(const GCproto *pt, BCPos pc, BCReg slot,
                                 BCPos *born, BCPos *next)
{
  const uint8_t *at = proto_varinfo(pt);
  *next = UINT32_MAX;
  if (!at)
    return NULL;
  BCPos start = 0;
  for (;;) {
    const char *name = (const char *)at;
    if (*at < VARNAME__MAX) {
      if (*at == VARNAME_END)
        return NULL;
      at++;
      name = NULL;
    } else {
      at += strlen(name) + 1;
    }
    start += name_uleb(&at);
    BCPos end = start + name_uleb(&at);
    if (start > pc) {
      *next = start;
      return NULL;
    }
    if (end <= pc)
      continue; /* its life has ended: the slot is free again */
    if (slot-- == 0) {
      *born = start;
      *next = pc + 1;
      return name;
    }
  }
}

static const char *name_string_constant(const GCproto *pt, ptrdiff_t index,
                                        size_t *length)
{
  const GCobj *object = proto_kgc(pt, ~index);
  if (object->gch.gct != (uint8_t)~LJ_TSTR)
    return NULL;
  *length = gco2str((GCobj *)object)->len;
  return strdata(gco2str((GCobj *)object));
}

/* The name of the closure that the instruction at `at` makes. */
static const char *name_of_closure(const GCproto *pt, BCPos at, size_t *length)
{
  const BCIns *code = proto_bc(pt);
  BCReg reg = bc_a(code[at]);
  BCPos last = at + REACH < pt->sizebc ? at + REACH : pt->sizebc;
  BCPos born, next = at;
  for (BCPos pc = at; pc < last; pc++) {
    /* A local variable that begins here, or (at the closure itself) one that
    ** exists already. */
    const char *name =
        pc < next ? NULL : name_local_at(pt, pc, reg, &born, &next);
    if (name && (pc == at || born == pc)) {
      *length = strlen(name);
      return name;
    }
    if (pc == at)
      continue;
    BCIns ins = code[pc];
    switch (bc_op(ins)) {
    case BC_TSETS:
      if (bc_a(ins) == reg)
        return name_string_constant(pt, (ptrdiff_t)bc_c(ins), length);
      break;
    case BC_GSET:
      if (bc_a(ins) == reg)
        return name_string_constant(pt, (ptrdiff_t)bc_d(ins), length);
      break;
    case BC_USETV:
      if (bc_d(ins) == reg) {
        name = lj_debug_uvname((GCproto *)pt, bc_a(ins));
        *length = strlen(name);
        return *length ? name : NULL;
      }
      break;
    case BC_MOV:
      if (bc_d(ins) == reg) {
        name = name_local_at(pt, pc, bc_a(ins), &born, &next);
        *length = name ? strlen(name) : 0;
        return name;
      }
      if (bc_a(ins) == reg)
        return NULL;
      break;
    case BC_FNEW:
    case BC_KSTR:
    case BC_KSHORT:
    case BC_KNUM:
    case BC_KPRI:
    case BC_TNEW:
    case BC_TDUP:
    case BC_GGET:
    case BC_UGET:
    case BC_TGETS:
    case BC_TSETB:
    case BC_TSETV:
    case BC_UCLO:
      if (bcmode_a(bc_op(ins)) == BCMdst && bc_a(ins) == reg)
        return NULL; /* overwritten */
      break;
    default:
      return NULL; /* a call, a jump, a return: the closure goes elsewhere */
    }
  }
  return NULL;
}

void ljp_proto_name_children(const GCproto *pt, uint32_t most,
                             bool (*wanted)(void *arg, const GCproto *child),
                             void (*name)(void *arg, const GCproto *child,
                                          const char *text, size_t length),
                             void *arg)
{
  const BCIns *code = proto_bc(pt);
  for (BCPos pc = 1; most && pc < pt->sizebc; pc++) {
    if (bc_op(code[pc]) != BC_FNEW)
      continue;
    const GCproto *child = gco2pt(proto_kgc(pt, ~(ptrdiff_t)bc_d(code[pc])));
    if (!wanted(arg, child))
      continue;
    most--;
    size_t length = 0;
    const char *text = name_of_closure(pt, pc, &length);
    if (text)
      name(arg, child, text, length);
  }
}
