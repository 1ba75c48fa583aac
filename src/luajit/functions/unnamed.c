/*
** Giving names to the functions of prototypes; see unnamed.h.
*/
#define LUA_CORE

#include "lj_obj.h"
#include "lj_gc.h"

#include "src/luajit/functions/defined_name.h"
#include "src/luajit/functions/unnamed.h"

static bool unnamed_is_wanted(void *arg, const GCproto *child)
{
  global_State *g = arg;
  return child->ljp_name == 0 && ljp_slot_owner(child->unused_gc64) == child &&
         !isdead(g, obj2gco((GCproto *)child));
}

static void unnamed_set(void *arg, const GCproto *child, const char *name,
                        size_t length)
{
  (void)arg;
  ((GCproto *)child)->ljp_name = ljp_proto_name_get(name, length);
}

void ljp_unnamed_name(global_State *g, const GCproto *pt)
{
  if (pt->flags & PROTO_CHILD)
    ljp_proto_name_children(pt, UINT32_MAX, unnamed_is_wanted, unnamed_set, g);
}

/* How many functions that are defined in pt may outlive it? */
static uint32_t unnamed_heirs(const global_State *g, const GCproto *pt)
{
  uint32_t heirs = 0;
  for (ptrdiff_t i = -(ptrdiff_t)pt->sizekgc; i < 0; i++) {
    const GCobj *object = proto_kgc(pt, i);
    if (object->gch.gct == (uint8_t)~LJ_TPROTO && !isdead(g, object))
      heirs++;
  }
  return heirs;
}

void ljp_unnamed_name_some(struct ljp_vm *vm, uint32_t most)
{
  global_State *g = (global_State *)(uintptr_t)atomic_load_explicit(
      &vm->g, memory_order_relaxed);
  uint32_t ref = g ? vm->unnamed : 0;
  for (; ref && most; most--) {
    GCproto *pt = ljp_slot_holder(ref);
    ref = pt->ljp_name & ~LJP_UNNAMED_LINK;
    pt->ljp_name = 0;
    uint32_t heirs = unnamed_heirs(g, pt);
    if (heirs)
      ljp_proto_name_children(pt, heirs, unnamed_is_wanted, unnamed_set, g);
  }
  vm->unnamed = ref;
}
