/*
** References of all objects but threads; see refs.h.
*/
#define LUA_CORE

#include "lj_obj.h"
#include "lj_buf.h"
#include "lj_gc.h"
#include "lj_tab.h"
#include "lj_jit.h"
#include "lj_ir.h"
#include "lj_dispatch.h"

#include "src/luajit/heap/refs.h"

/* Up to here, doubles hold all whole numbers. */
#define REFS_WHOLE 9007199254740992.0

/* -- Tables ---------------------------------------------------------------- */

/* lj_meta_fastg() would note in the table what it has not found. */
unsigned ljp_heap_weak(const global_State *g, const GCtab *t)
{
  const GCtab *mt = tabref(t->metatable);
  if (!mt || (mt->nomm & 1u << MM_mode))
    return 0;
  cTValue *mode = lj_tab_getstr((GCtab *)mt, mmname_str(g, MM_mode));
  if (!mode || !tvisstr(mode))
    return 0;
  unsigned weak = 0;
  for (const char *s = strVdata(mode); *s; s++)
    weak |= *s == 'k'   ? LJP_HEAP_WEAK_KEYS
            : *s == 'v' ? LJP_HEAP_WEAK_VALUES
                        : 0u;
  return weak;
}

/* The key of an entry is no object, but its value is. */
static bool refs_plain_key(struct ljp_heap_walk *w, cTValue *key,
                           cTValue *value, unsigned flags)
{
  const GCobj *target = gcV(value);
  if (tvisint(key))
    return ljp_heap_ref(w, LJP_HEAP_HOW_INTEGER | flags,
                        (uint64_t)(int64_t)intV(key), target);
  if (tvisnum(key)) {
    lua_Number n = numV(key);
    if (n >= -REFS_WHOLE && n <= REFS_WHOLE && n == (lua_Number)(int64_t)n)
      return ljp_heap_ref(w, LJP_HEAP_HOW_INTEGER | flags, (uint64_t)(int64_t)n,
                          target);
    return ljp_heap_ref(w, LJP_HEAP_HOW_NUMBER | flags, key->u64, target);
  }
  if (tvisbool(key))
    return ljp_heap_ref(w, LJP_HEAP_HOW_BOOLEAN | flags, boolV(key), target);
  return ljp_heap_ref(w, LJP_HEAP_HOW_POINTER | flags, key->u64, target);
}

/* A weak table keeps its strings alive all the same. */
static unsigned refs_weak(unsigned weak, cTValue *value, unsigned flag)
{
  return weak && !tvisstr(value) ? flag : 0;
}

static bool refs_entry(struct ljp_heap_walk *w, const Node *n, unsigned weak)
{
  unsigned flags =
      refs_weak(weak & LJP_HEAP_WEAK_VALUES, &n->val, LJP_HEAP_WEAK);
  if (!tvisgcv(&n->key))
    return !tvisgcv(&n->val) || refs_plain_key(w, &n->key, &n->val, flags);
  unsigned weak_key = weak & LJP_HEAP_WEAK_KEYS;
  if (!tvisgcv(&n->val))
    return ljp_heap_ref(
        w, LJP_HEAP_HOW_KEY | refs_weak(weak_key, &n->key, LJP_HEAP_WEAK), 0,
        gcV(&n->key));
  flags |= refs_weak(weak_key, &n->key, LJP_HEAP_WEAK_KEY);
  return w->out->field(w->out, LJP_HEAP_HOW_FIELD | flags,
                       ljp_heap_address(gcV(&n->key)),
                       ljp_heap_address(gcV(&n->val)));
}

bool ljp_heap_table_refs(struct ljp_heap_walk *w, const GCtab *t, unsigned weak)
{
  bool ok = ljp_heap_ref(w, LJP_HEAP_HOW_METATABLE, 0, gcref(t->metatable));
  cTValue *array = tvref(t->array);
  for (uint32_t i = 0; ok && i < t->asize; i++)
    if (tvisgcv(&array[i]))
      ok = ljp_heap_ref(
          w,
          LJP_HEAP_HOW_ITEM |
              refs_weak(weak & LJP_HEAP_WEAK_VALUES, &array[i], LJP_HEAP_WEAK),
          i, gcV(&array[i]));
  if (!t->hmask)
    return ok;
  const Node *node = noderef(t->node);
  /* The key of an entry without a value may have been freed. */
  for (uint32_t i = 0; ok && i <= t->hmask; i++)
    if (!tvisnil(&node[i].val))
      ok = refs_entry(w, &node[i], weak);
  return ok;
}

/* -- Functions, userdata --------------------------------------------------- */

bool ljp_heap_function_refs(struct ljp_heap_walk *w, const GCfunc *fn)
{
  bool ok = ljp_heap_ref(w, LJP_HEAP_HOW_ENVIRONMENT, 0, gcref(fn->c.env));
  if (isluafunc(fn)) {
    ok = ok &&
         ljp_heap_ref(w, LJP_HEAP_HOW_PROTOTYPE, 0, obj2gco(funcproto(fn)));
    for (uint32_t i = 0; ok && i < fn->l.nupvalues; i++)
      ok = ljp_heap_ref(w, LJP_HEAP_HOW_UPVALUE, i, gcref(fn->l.uvptr[i]));
  } else {
    for (uint32_t i = 0; ok && i < fn->c.nupvalues; i++)
      ok = ljp_heap_value(w, LJP_HEAP_HOW_UPVALUE, i, &fn->c.upvalue[i]);
  }
  return ok;
}

bool ljp_heap_proto_refs(struct ljp_heap_walk *w, const GCproto *pt)
{
  bool ok = ljp_heap_ref(w, LJP_HEAP_HOW_CHUNK, 0, gcref(pt->chunkname));
  for (ptrdiff_t i = -(ptrdiff_t)pt->sizekgc; ok && i < 0; i++)
    ok = ljp_heap_ref(w, LJP_HEAP_HOW_CONSTANT, (uint64_t)~i, proto_kgc(pt, i));
  if (ok && pt->trace)
    ok = ljp_heap_ref(w, LJP_HEAP_HOW_TRACE, 0,
                      gcref(G2J(w->g)->trace[pt->trace]));
  return ok;
}

bool ljp_heap_userdata_refs(struct ljp_heap_walk *w, const GCudata *ud)
{
  bool ok = ljp_heap_ref(w, LJP_HEAP_HOW_METATABLE, 0, gcref(ud->metatable)) &&
            ljp_heap_ref(w, LJP_HEAP_HOW_ENVIRONMENT, 0, gcref(ud->env));
#if LJ_HASBUFFER
  if (ok && ud->udtype == UDTYPE_BUFFER) {
    const SBufExt *sbx = (const SBufExt *)uddata(ud);
    ok = (!sbufiscow(sbx) ||
          ljp_heap_ref(w, LJP_HEAP_HOW_PART, 0, gcref(sbx->cowref))) &&
         ljp_heap_ref(w, LJP_HEAP_HOW_PART, 0, gcref(sbx->dict_str)) &&
         ljp_heap_ref(w, LJP_HEAP_HOW_PART, 0, gcref(sbx->dict_mt));
  }
#endif
  return ok;
}

/* -- Traces ---------------------------------------------------------------- */

#if LJ_HASJIT
static bool refs_constants(struct ljp_heap_walk *w, const GCtrace *T,
                           bool recorded)
{
  bool ok = true;
  uint64_t number = 0;
  for (IRRef ref = T->nk; ok && ref < REF_TRUE; ref++) {
    const IRIns *ir = &T->ir[ref];
    if (ir->o == IR_KGC)
      ok = recorded
               ? ljp_heap_ref(w, LJP_HEAP_HOW_ROOT, LJP_HEAP_ROOT_RECORDED,
                              ir_kgc(ir))
               : ljp_heap_ref(w, LJP_HEAP_HOW_CONSTANT, number++, ir_kgc(ir));
    if (irt_is64(ir->t) && ir->o != IR_KNULL)
      ref++;
  }
  return ok;
}

bool ljp_heap_trace_refs(struct ljp_heap_walk *w, const GCtrace *T)
{
  const GCRef *traces = G2J(w->g)->trace;
  if (T->traceno == 0)
    return true; /* It has been flushed: nothing follows its references. */
  const TraceNo others[] = {T->link, T->nextroot, T->nextside};
  bool ok = ljp_heap_ref(w, LJP_HEAP_HOW_PROTOTYPE, 0, gcref(T->startpt)) &&
            refs_constants(w, T, false);
  for (unsigned i = 0; ok && i < 3; i++)
    if (others[i])
      ok = ljp_heap_ref(w, LJP_HEAP_HOW_TRACE, 0, gcref(traces[others[i]]));
  return ok;
}

bool ljp_heap_recorded_refs(struct ljp_heap_walk *w)
{
  const GCtrace *T = &G2J(w->g)->cur;
  return T->traceno == 0 ||
         (refs_constants(w, T, true) &&
          ljp_heap_ref(w, LJP_HEAP_HOW_ROOT, LJP_HEAP_ROOT_RECORDED,
                       gcref(T->startpt)));
}
#else
bool ljp_heap_trace_refs(struct ljp_heap_walk *w, const GCtrace *T)
{
  (void)w;
  (void)T;
  return true;
}

bool ljp_heap_recorded_refs(struct ljp_heap_walk *w)
{
  (void)w;
  return true;
}
#endif
