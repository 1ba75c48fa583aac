/*
** The walk over a VM's heap: the VM's own parts with the roots, then the lists
** in which the collector has all objects; see snapshot.h.
**
** Everything that LuaJIT counts in gc.total is told once: whatever lj_mem_*()
** gives out is an object, a part of one (in its numbers), or a part of the VM.
** Only what a C function holds while it runs cannot be found: the parser's
** buffers while it calls a reader of the program.
*/
#define LUA_CORE

#include "lj_obj.h"
#include "lj_buf.h"
#include "lj_gc.h"
#include "lj_jit.h"
#include "lj_dispatch.h"
#include "lj_str.h"
#if LJ_HASFFI
#include "lj_ctype.h"
#endif

#include "src/luajit/heap/guard.h"
#include "src/luajit/heap/refs.h"
#include "src/luajit/joined_heap.h"
#include "src/luajit/snapshot.h"

void ljp_guest_snapshot_head(lua_State *L, struct ljp_heap_head *head)
{
  global_State *g = G(L);
  *head = (struct ljp_heap_head){.heap_bytes = g->gc.total,
                                 .slot_bytes = sizeof(TValue),
                                 .node_bytes = sizeof(Node),
                                 .phase = g->gc.state};
}

/* -- Sizes ----------------------------------------------------------------- */

static uint64_t snapshot_table_bytes(const GCtab *t)
{
  return t->colo ? sizetabcolo((uint32_t)t->colo & 0x7f) : sizeof(GCtab);
}

static uint64_t snapshot_function_bytes(const GCfunc *fn)
{
  return isluafunc(fn) ? sizeLfunc((MSize)fn->l.nupvalues)
                       : sizeCfunc((MSize)fn->c.nupvalues);
}

#if LJ_HASFFI
static uint64_t snapshot_cdata_bytes(global_State *g, GCcdata *cd)
{
  if (cdataisv(cd))
    return sizecdatav(cd);
  const CType *ct = ctype_raw(ctype_ctsG(g), cd->ctypeid);
  return sizeof(GCcdata) + (ctype_hassize(ct->info) ? ct->size : CTSIZE_PTR);
}
#endif

uint64_t ljp_heap_trace_bytes(const GCtrace *T)
{
  return ((sizeof(GCtrace) + 7) & ~(size_t)7) +
         (T->nins - T->nk) * sizeof(IRIns) + T->nsnap * sizeof(SnapShot) +
         T->nsnapmap * sizeof(SnapEntry);
}

static uint64_t snapshot_buffer_bytes(const GCudata *ud)
{
#if LJ_HASBUFFER
  const SBufExt *sbx = (const SBufExt *)uddata(ud);
  if (ud->udtype == UDTYPE_BUFFER && !sbufiscoworborrow(sbx))
    return sbufsz(sbx);
#else
  (void)ud;
#endif
  return 0;
}

/* -- Objects --------------------------------------------------------------- */

/* In these phases objects of the other white are garbage that the sweep has not
** reached yet. */
static bool snapshot_is_dead(const global_State *g, const GCobj *o)
{
  uint8_t kept = (uint8_t)((o->gch.marked ^ LJ_GC_WHITES) & otherwhite(g));
  return (g->gc.state == GCSsweepstring || g->gc.state == GCSsweep) && !kept;
}

static unsigned snapshot_flags(const global_State *g, const GCobj *o)
{
  return (snapshot_is_dead(g, o) ? (unsigned)LJP_HEAP_DEAD : 0) |
         (o->gch.marked & LJ_GC_FIXED ? (unsigned)LJP_HEAP_PINNED : 0);
}

static bool snapshot_string(struct ljp_heap_walk *w, const GCstr *s,
                            uint64_t bytes)
{
  const struct ljp_heap_object object = {
      .address = ljp_heap_address(s),
      .bytes = bytes,
      .type = LJP_MEM_TYPE_STRING,
      .flags = (uint8_t)snapshot_flags(w->g, obj2gco((GCstr *)s)),
      .numbers = {s->len},
      .text = strdata(s),
      .text_bytes = s->len < w->out->text_limit ? s->len : w->out->text_limit};
  return w->out->object(w->out, &object) && w->out->object_end(w->out);
}

/* The names follow each other, each with a NUL. */
static size_t snapshot_names_bytes(const GCproto *pt)
{
  const uint8_t *names = proto_uvinfo(pt), *at = names;
  for (unsigned i = 0; names && i < pt->sizeuv; i++)
    while (*at++)
      ;
  return (size_t)(at - names);
}

static void snapshot_describe_table(struct ljp_heap_walk *w, const GCtab *t,
                                    struct ljp_heap_object *out)
{
  out->type = LJP_MEM_TYPE_TABLE;
  out->bytes = snapshot_table_bytes(t);
  out->numbers[0] = t->asize;
  out->numbers[1] = t->hmask ? (uint64_t)t->hmask + 1 : 0;
  if (t->colo > 0)
    out->flags |= LJP_HEAP_INSIDE;
  if (!(out->flags & LJP_HEAP_DEAD))
    out->flags |= (uint8_t)ljp_heap_weak(w->g, t);
}

static void snapshot_describe_thread(struct ljp_heap_walk *w,
                                     const lua_State *th,
                                     struct ljp_heap_object *out)
{
  out->type = LJP_MEM_TYPE_THREAD;
  /* The main thread lies in the VM's own memory block. */
  out->bytes = th == mainthread(w->g) ? 0 : sizeof(lua_State);
  out->numbers[0] = tvref(th->stack) ? th->stacksize : 0;
  out->numbers[1] = th->status;
  if (th == w->current)
    out->flags |= LJP_HEAP_RUNNING;
}

static void snapshot_describe_proto(const GCproto *pt,
                                    struct ljp_heap_object *out)
{
  out->type = LJP_MEM_TYPE_PROTO;
  out->bytes = pt->sizept;
  out->numbers[0] = (uint64_t)(uint32_t)pt->firstline;
  out->numbers[1] = (uint64_t)(uint32_t)(pt->firstline + pt->numline);
  out->text = (const char *)proto_uvinfo(pt);
  out->text_bytes = snapshot_names_bytes(pt);
}

static void snapshot_describe(struct ljp_heap_walk *w, GCobj *o,
                              struct ljp_heap_object *out)
{
  switch (o->gch.gct) {
  case ~LJ_TTAB:
    snapshot_describe_table(w, gco2tab(o), out);
    break;
  case ~LJ_TFUNC:
    out->type = LJP_MEM_TYPE_FUNCTION;
    out->bytes = snapshot_function_bytes(gco2func(o));
    out->numbers[0] = gco2func(o)->c.ffid;
    if (iscfunc(gco2func(o)))
      out->numbers[1] = (uint64_t)(uintptr_t)gco2func(o)->c.f;
    break;
  case ~LJ_TUPVAL:
    out->type = LJP_MEM_TYPE_UPVALUE;
    out->bytes = sizeof(GCupval);
    if (gco2uv(o)->closed)
      out->flags |= LJP_HEAP_CLOSED;
    break;
  case ~LJ_TUDATA:
    out->type = LJP_MEM_TYPE_USERDATA;
    out->bytes = sizeudata(gco2ud(o));
    out->numbers[0] = gco2ud(o)->udtype;
    out->numbers[1] = snapshot_buffer_bytes(gco2ud(o));
    break;
#if LJ_HASFFI
  case ~LJ_TCDATA:
    out->type = LJP_MEM_TYPE_CDATA;
    out->bytes = snapshot_cdata_bytes(w->g, gco2cd(o));
    out->numbers[0] = gco2cd(o)->ctypeid;
    break;
#endif
  case ~LJ_TTHREAD:
    snapshot_describe_thread(w, gco2th(o), out);
    break;
  case ~LJ_TPROTO:
    snapshot_describe_proto(gco2pt(o), out);
    break;
  case ~LJ_TTRACE:
    out->type = LJP_MEM_TYPE_TRACE;
    out->bytes = ljp_heap_trace_bytes(gco2trace(o));
    out->numbers[0] = gco2trace(o)->traceno;
    out->numbers[1] = (uint64_t)(uintptr_t)gco2trace(o)->mcode;
    out->numbers[2] = gco2trace(o)->szmcode;
    break;
  default:
    out->type = LJP_MEM_TYPE_OTHER;
  }
}

static bool snapshot_refs(struct ljp_heap_walk *w, GCobj *o, unsigned flags)
{
  switch (o->gch.gct) {
  case ~LJ_TTAB:
    return ljp_heap_table_refs(w, gco2tab(o), flags);
  case ~LJ_TFUNC:
    return ljp_heap_function_refs(w, gco2func(o));
  case ~LJ_TUPVAL:
    return ljp_heap_value(w, LJP_HEAP_HOW_VALUE, 0, uvval(gco2uv(o)));
  case ~LJ_TUDATA:
    return ljp_heap_userdata_refs(w, gco2ud(o));
  case ~LJ_TTHREAD:
    return ljp_heap_thread_refs(w, gco2th(o));
  case ~LJ_TPROTO:
    return ljp_heap_proto_refs(w, gco2pt(o));
  case ~LJ_TTRACE:
    return ljp_heap_trace_refs(w, gco2trace(o));
  }
  return true;
}

struct snapshot_item {
  GCobj *o;
  unsigned flags;
};

static bool snapshot_item(struct ljp_heap_walk *w, void *arg);

/* One object of a list; not a string. */
static bool snapshot_object(struct ljp_heap_walk *w, GCobj *o, unsigned flags)
{
  struct snapshot_item item = {o, flags};
  if (!ljp_heap_guard_try(w, snapshot_item, &item))
    return true;
  struct ljp_heap_object object = {.address = ljp_heap_address(o)};
  object.flags = (uint8_t)(snapshot_flags(w->g, o) | flags);
  snapshot_describe(w, o, &object);
  return w->out->object(w->out, &object) &&
         (object.flags & LJP_HEAP_DEAD || snapshot_refs(w, o, object.flags)) &&
         w->out->object_end(w->out);
}

static bool snapshot_item(struct ljp_heap_walk *w, void *arg)
{
  const struct snapshot_item *item = arg;
  return snapshot_object(w, item->o, item->flags);
}

/* A list, and the open upvalues of the threads in it. */
static bool snapshot_list(struct ljp_heap_walk *w, GCobj *o)
{
  bool ok = true;
  while (ok && o && ljp_heap_guard_read(w, o, LJP_HEAP_HEAD_BYTES)) {
    GCobj *next = gcnext(o);
    __builtin_prefetch(next);
    ok = snapshot_object(w, o, 0);
    if (ok && o->gch.gct == ~LJ_TTHREAD &&
        ljp_heap_guard_read(w, o, sizeof(lua_State)))
      for (GCobj *uv = gcref(gco2th(o)->openupval);
           ok && uv && ljp_heap_guard_read(w, uv, LJP_HEAP_HEAD_BYTES);
           uv = gcnext(uv))
        ok = snapshot_object(w, uv, 0);
    o = next;
  }
  return ok;
}

/* Objects whose finalizers are about to be called: a ring. */
static bool snapshot_finals(struct ljp_heap_walk *w)
{
  GCobj *last = gcref(w->g->gc.mmudata), *o = last;
  bool ok = true;
  while (ok && o && ljp_heap_guard_read(w, o, LJP_HEAP_HEAD_BYTES)) {
    o = gcnext(o);
    if (!ljp_heap_guard_read(w, o, LJP_HEAP_HEAD_BYTES))
      break;
    ok = snapshot_object(w, o, LJP_HEAP_FINAL);
    if (o == last)
      break;
  }
  return ok;
}

static bool snapshot_string_read(struct ljp_heap_walk *w, const GCstr *s)
{
  if (!w->guard)
    return true;
  if (!ljp_heap_guard_read(w, s, sizeof *s))
    return false;
  size_t kept = s->len < w->out->text_limit ? s->len : w->out->text_limit;
  return ljp_heap_guard_read(w, s, sizeof *s + kept);
}

static bool snapshot_strings(struct ljp_heap_walk *w)
{
  enum { AHEAD = 8 };
  const global_State *g = w->g;
  bool ok = snapshot_string(w, &g->strempty, 0);
  if (!g->str.tab)
    return ok;
  for (MSize i = 0; ok && i <= g->str.mask; i++) {
    if (!ljp_heap_guard_read(w, &g->str.tab[i], sizeof(GCRef)))
      break;
    if (i + AHEAD <= g->str.mask)
      __builtin_prefetch(
          (void *)(gcrefu(g->str.tab[i + AHEAD]) & ~(uintptr_t)1));
    /* Bit 0 says how the chain is hashed. */
    GCobj *o = (GCobj *)(gcrefu(g->str.tab[i]) & ~(uintptr_t)1);
    for (; ok && o && snapshot_string_read(w, gco2str(o)); o = gcnext(o))
      ok = snapshot_string(w, gco2str(o), lj_str_size(gco2str(o)->len));
  }
  return ok;
}

/* -- Parts of the VM ------------------------------------------------------- */

static bool snapshot_root(struct ljp_heap_walk *w, enum ljp_heap_root root,
                          const GCobj *target)
{
  return ljp_heap_ref(w, LJP_HEAP_HOW_ROOT, root, target);
}

/* The memory block of the VM itself, with all roots. */
static bool snapshot_vm(struct ljp_heap_walk *w)
{
  global_State *g = w->g;
  const struct ljp_heap_object object = {.address = ljp_heap_address(g),
                                         .bytes = sizeof(GG_State),
                                         .type = LJP_MEM_TYPE_OTHER};
  bool ok =
      w->out->object(w->out, &object) &&
      snapshot_root(w, LJP_HEAP_ROOT_GLOBALS, gcref(mainthread(g)->env)) &&
      ljp_heap_value(w, LJP_HEAP_HOW_ROOT, LJP_HEAP_ROOT_REGISTRY,
                     &g->registrytv) &&
      snapshot_root(w, LJP_HEAP_ROOT_MAIN_THREAD, obj2gco(mainthread(g))) &&
      snapshot_root(w, LJP_HEAP_ROOT_RUNNING, obj2gco(w->current));
  for (int i = 0; ok && i < GCROOT_MAX; i++) {
    enum ljp_heap_root root = i <= GCROOT_MMNAME_LAST  ? LJP_HEAP_ROOT_NAMES
                              : i <= GCROOT_BASEMT_NUM ? LJP_HEAP_ROOT_TYPES
                                                       : LJP_HEAP_ROOT_OTHER;
    ok = snapshot_root(w, root, gcref(g->gcroot[i]));
  }
  return ok && ljp_heap_recorded_refs(w) && w->out->object_end(w->out);
}

static bool snapshot_first(struct ljp_heap_walk *w, void *arg)
{
  (void)arg;
  return snapshot_vm(w) && ljp_heap_parts(w);
}

static bool snapshot_all(struct ljp_heap_walk *w)
{
  return (!ljp_heap_guard_try(w, snapshot_first, NULL) ||
          snapshot_first(w, NULL)) &&
         snapshot_list(w, gcref(w->g->gc.root)) && snapshot_finals(w) &&
         snapshot_strings(w);
}

bool ljp_guest_snapshot(lua_State *L, struct ljp_heap_out *out)
{
  struct ljp_heap_walk w = {.g = G(L), .current = L, .out = out};
  return snapshot_all(&w);
}

bool ljp_guest_snapshot_guarded(lua_State *L, struct ljp_heap_out *out)
{
  struct ljp_heap_guard guard;
  struct ljp_heap_walk w = {
      .g = G(L), .current = L, .out = out, .guard = &guard};
  ljp_heap_guard_begin(&guard, w.g->gc.total);
  bool ok = snapshot_all(&w);
  out->unreadable = guard.unreadable;
  return ok;
}

lua_State *ljp_guest_main(lua_State *L)
{
  return mainthread(G(L));
}

lua_State *ljp_guest_running(lua_State *L)
{
  return gco2th(gcref(G(L)->cur_L));
}

bool ljp_guest_compiled(lua_State *L)
{
  return tvref(G(L)->jit_base) != NULL;
}

bool ljp_guest_settled(lua_State *L)
{
  const global_State *g = G(L);
  return !ljp_guest_compiled(L) &&
         (g->vmstate == ~LJ_VMST_C || g->vmstate == ~LJ_VMST_INTERP);
}
