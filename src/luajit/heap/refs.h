/*
** The references that objects hold, by type (refs.c, stack_refs.c), for the
** walk in snapshot.c. The collector follows the same ones. Dead objects must
** not be asked: what they refer to may have been freed.
*/
#ifndef LJP_HEAP_REFS_H
#define LJP_HEAP_REFS_H

#include "lj_obj.h"

#include "src/base/heap_out.h"

/* A walk. What it calls returns false once `out` has refused a call. */
struct ljp_heap_walk {
  global_State *g;
  lua_State *current; /* The thread that takes the snapshot. */
  struct ljp_heap_out *out;
  struct ljp_heap_guard *guard; /* guard.h; NULL: the heap is whole. */
};

static inline uint64_t ljp_heap_address(const void *object)
{
  return (uint64_t)(uintptr_t)object;
}

/* A reference to an object; to NULL: there is none. */
static inline bool ljp_heap_ref(struct ljp_heap_walk *w, unsigned how,
                                uint64_t number, const GCobj *target)
{
  return !target || w->out->ref(w->out, how, number, ljp_heap_address(target));
}

/* A reference by a value, if that is an object. */
static inline bool ljp_heap_value(struct ljp_heap_walk *w, unsigned how,
                                  uint64_t number, cTValue *value)
{
  return !tvisgcv(value) || ljp_heap_ref(w, how, number, gcV(value));
}

/* LJP_HEAP_WEAK_KEYS and LJP_HEAP_WEAK_VALUES: what the table's entries do not
** keep alive. */
unsigned ljp_heap_weak(const global_State *g, const GCtab *t);

bool ljp_heap_table_refs(struct ljp_heap_walk *w, const GCtab *t,
                         unsigned weak);
bool ljp_heap_function_refs(struct ljp_heap_walk *w, const GCfunc *fn);
bool ljp_heap_proto_refs(struct ljp_heap_walk *w, const GCproto *pt);
bool ljp_heap_userdata_refs(struct ljp_heap_walk *w, const GCudata *ud);
bool ljp_heap_thread_refs(struct ljp_heap_walk *w, lua_State *th);

/* The objects that a complete trace, or the one being recorded, has as
** constants. how: CONSTANT, or ROOT with a number for all of them. */
struct GCtrace;
bool ljp_heap_trace_refs(struct ljp_heap_walk *w, const struct GCtrace *T);
bool ljp_heap_recorded_refs(struct ljp_heap_walk *w);

/* The bytes of a trace without its machine code. (snapshot.c) */
uint64_t ljp_heap_trace_bytes(const struct GCtrace *T);

/* Calls out for the parts of the VM that are no objects. (parts.c) */
bool ljp_heap_parts(struct ljp_heap_walk *w);

#endif
