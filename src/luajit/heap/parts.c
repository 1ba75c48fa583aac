/*
** The parts of a VM that are no objects of its collector, but are counted in
** gc.total; see snapshot.c.
*/
#define LUA_CORE

#include "lj_obj.h"
#include "lj_buf.h"
#include "lj_gc.h"
#include "lj_jit.h"
#include "lj_dispatch.h"
#if LJ_HASFFI
#include "lj_ctype.h"
#endif

#include "src/luajit/heap/refs.h"

static bool parts_one(struct ljp_heap_walk *w, enum ljp_mem_type type,
                      const void *address, uint64_t bytes)
{
  const struct ljp_heap_object object = {.address = ljp_heap_address(address),
                                         .bytes = bytes,
                                         .type = (uint8_t)type};
  return !address || !bytes ||
         (w->out->object(w->out, &object) && w->out->object_end(w->out));
}

#if LJ_HASJIT
static bool parts_compiler(struct ljp_heap_walk *w)
{
  const jit_State *J = G2J(w->g);
  const enum ljp_mem_type type = LJP_MEM_TYPE_COMPILER;
  uint64_t ir = J->irtoplim - J->irbotlim;
  return parts_one(w, type, J->snapmapbuf,
                   J->sizesnapmap * sizeof(SnapEntry)) &&
         parts_one(w, type, J->snapbuf, J->sizesnap * sizeof(SnapShot)) &&
         parts_one(w, type, ir ? J->irbuf + J->irbotlim : NULL,
                   ir * sizeof(IRIns)) &&
         parts_one(w, type, J->trace, J->sizetrace * sizeof(GCRef)) &&
         (!J->curfinal ||
          parts_one(w, type, J->curfinal, ljp_heap_trace_bytes(J->curfinal)));
}
#endif

#if LJ_HASFFI
/* LJP_HEAP_CTYPE_*; 0: a field, a constant or the like. */
static unsigned parts_ctype_kind(CTypeID id, CTInfo info)
{
  switch (ctype_type(info)) {
  case CT_NUM:
    return info & CTF_BOOL       ? LJP_HEAP_CTYPE_BOOL
           : info & CTF_FP       ? LJP_HEAP_CTYPE_FLOAT
           : info & CTF_UNSIGNED ? LJP_HEAP_CTYPE_UINT
                                 : LJP_HEAP_CTYPE_INT;
  case CT_STRUCT:
    return info & CTF_UNION ? LJP_HEAP_CTYPE_UNION : LJP_HEAP_CTYPE_STRUCT;
  case CT_PTR:
    return info & CTF_REF ? LJP_HEAP_CTYPE_REFERENCE : LJP_HEAP_CTYPE_POINTER;
  case CT_ARRAY:
    return info & CTF_COMPLEX  ? LJP_HEAP_CTYPE_COMPLEX
           : info & CTF_VECTOR ? LJP_HEAP_CTYPE_VECTOR
           : info & CTF_VLA    ? LJP_HEAP_CTYPE_ANY_ARRAY
                               : LJP_HEAP_CTYPE_ARRAY;
  case CT_VOID:
    return LJP_HEAP_CTYPE_VOID;
  case CT_ENUM:
    return id == CTID_CTYPEID ? LJP_HEAP_CTYPE_CTYPE : LJP_HEAP_CTYPE_ENUM;
  case CT_FUNC:
    return LJP_HEAP_CTYPE_FUNCTION;
  case CT_TYPEDEF:
    return LJP_HEAP_CTYPE_TYPEDEF;
  case CT_ATTRIB:
    return LJP_HEAP_CTYPE_SAME;
  }
  return 0;
}

static bool parts_ctype(struct ljp_heap_walk *w, CTypeID id, const CType *ct)
{
  const struct ljp_heap_ctype type = {
      .number = id,
      .kind = (uint8_t)parts_ctype_kind(id, ct->info),
      .bytes =
          ctype_hassize(ct->info) && ct->size != CTSIZE_INVALID ? ct->size : 0,
      .of = ctype_isstruct(ct->info) ? 0 : ctype_cid(ct->info)};
  return !type.kind || w->out->ctype(w->out, &type);
}

/* The names of C types are pinned strings. The table of callbacks is held by
** functions of the FFI library. */
static bool parts_ctypes(struct ljp_heap_walk *w)
{
  const CTState *cts = ctype_ctsG(w->g);
  const struct ljp_heap_object object = {.address = ljp_heap_address(cts),
                                         .bytes = sizeof(CTState),
                                         .type = LJP_MEM_TYPE_CTYPE};
  if (!cts)
    return true;
  bool ok =
      w->out->object(w->out, &object) &&
      (!cts->miscmap || ljp_heap_ref(w, LJP_HEAP_HOW_ROOT, LJP_HEAP_ROOT_FFI,
                                     obj2gco(cts->miscmap)));
  for (CTypeID id = 0; ok && id < cts->top; id++)
    ok = ljp_heap_ref(w, LJP_HEAP_HOW_TYPE_NAME, id, gcref(cts->tab[id].name));
  ok = ok && w->out->object_end(w->out);
  for (CTypeID id = 1; ok && id < cts->top; id++)
    ok = parts_ctype(w, id, &cts->tab[id]);
  return ok &&
         parts_one(w, LJP_MEM_TYPE_CTYPE, cts->tab,
                   cts->sizetab * sizeof(CType)) &&
         parts_one(w, LJP_MEM_TYPE_CTYPE, cts->cb.cbid,
                   cts->cb.sizeid * sizeof(CTypeID1));
}
#endif

bool ljp_heap_parts(struct ljp_heap_walk *w)
{
  const global_State *g = w->g;
  uint32_t pointers = g->gc.lightudnum ? 2u << lj_fls(g->gc.lightudnum) : 2;
  bool ok =
      parts_one(w, LJP_MEM_TYPE_STRING_INDEX, g->str.tab,
                ((uint64_t)g->str.mask + 1) * sizeof(GCRef)) &&
      parts_one(w, LJP_MEM_TYPE_BUFFER, g->tmpbuf.b, sbufsz(&g->tmpbuf)) &&
      parts_one(w, LJP_MEM_TYPE_GC, mref(g->gc.lightudseg, uint32_t),
                pointers * sizeof(uint32_t));
#if LJ_HASJIT
  ok = ok && parts_compiler(w);
#endif
#if LJ_HASFFI
  ok = ok && parts_ctypes(w);
#endif
  return ok;
}
