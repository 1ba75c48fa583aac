/*
** Prototypes: each gets a slot (slots.h) when LuaJIT has finished it (compiled
** it from source or loaded it from bytecode), and, while there is a session, a
** function entry. So an address that is used again is never taken for the old
** function, and a function keeps its name even when it is long gone.
**
** The prototype's spare 32 bits hold its reference, the number of its slot.
** References are used again after the prototype was freed, ids never. While a
** session holds entries, those of freed prototypes wait in the order of their
** deaths, until each writer has said that nothing can refer to them any more
** (ljp_guest_protos_gone). No walk finds a prototype after it was freed,
** because a remembered walk is valid only until ljp_protos_gone changes. RFC 3
** has the whole argument.
**
** Loading code must cost almost nothing while no session runs, neither time nor
** memory. So entries are made when the first hold is taken, in steps, for all
** prototypes that exist then, and from then on immediately; they go when the
** last hold ends. Only names cannot wait so long (unnamed.h).
**
** Invariant: what a slot's owner refers to may be read under the lock, unless
** the owner is dead (a collector is about to free it, strings first) or its VM
** is being closed (g is 0). A VM keeps its index until its last prototype is
** freed.
**
** The hooks run on VM threads; writer threads ask about entries and deaths.
** Everything is under one lock.
*/
#define LUA_CORE

#include <stdlib.h>
#include <string.h>

#include "lj_obj.h"
#include "lj_gc.h"

#include "src/base/assert.h"
#include "src/luajit/frames.h"
#include "src/luajit/functions/entries.h"
#include "src/luajit/functions/proto_names.h"
#include "src/luajit/functions/prototypes.h"
#include "src/luajit/functions/unnamed.h"
#include "src/luajit/vm/lock.h"
#include "src/luajit/vm/vm_of.h"

_Static_assert(sizeof(GCproto) == 104 &&
                   offsetof(GCproto, ljp_name) == offsetof(GCproto, gclist) - 4,
               "ljp_name lies in padding");

struct ljp_proto_entry *ljp_proto_entry_chunks[LJP_SLOT_CHUNKS];
/* The largest id. Each finished prototype counts, even without an entry. */
static _Atomic uint64_t proto_last_id; /* changed under the lock */
static uint64_t proto_last_reuse;      /* its value when a slot was reused */
static uint64_t proto_unnamed;         /* prototypes that have no entry */

/* -- Entries --------------------------------------------------------------- */

static uint64_t proto_next_id(void)
{
  uint64_t id = atomic_load_explicit(&proto_last_id, memory_order_relaxed) + 1;
  atomic_store_explicit(&proto_last_id, id, memory_order_relaxed);
  return id;
}

/* The new entry of a prototype; NULL: there is no memory. */
static struct ljp_proto_entry *proto_enter(uint32_t ref, uint64_t id)
{
  struct ljp_proto_entry **chunk =
      &ljp_proto_entry_chunks[ref / LJP_SLOT_CHUNK];
  if (LJP_UNLIKELY(!*chunk))
    *chunk = calloc(LJP_SLOT_CHUNK, sizeof **chunk);
  if (LJP_UNLIKELY(!*chunk))
    return NULL;
  struct ljp_proto_entry *entry = &(*chunk)[ref % LJP_SLOT_CHUNK];
  ljp_assert(!entry->id && ljp_slot_owner(ref));
  *entry = (struct ljp_proto_entry){.id = id, .flags = LJP_PROTO_UNKNOWN};
  return entry;
}

static void proto_drop_entry(struct ljp_proto_entry *entry)
{
  ljp_chunk_name_put(entry->chunk);
  ljp_proto_name_put(entry->name);
  entry->id = 0;
}

void ljp_proto_entry_free(struct ljp_proto_entry *entry, uint32_t ref)
{
  proto_drop_entry(entry);
  ljp_slot_free(ref, ljp_slot_vm(ref));
}

bool ljp_protos_forget(uint32_t chunk)
{
  struct ljp_proto_entry *entry = ljp_proto_entry_chunks[chunk];
  if (entry)
    for (int i = 0; i < LJP_SLOT_CHUNK; i++) {
      ljp_assert(!entry[i].death || !entry[i].id);
      if (entry[i].id) {
        ljp_chunk_name_dies(entry[i].chunk);
        proto_drop_entry(&entry[i]);
      }
    }
  free(entry);
  ljp_proto_entry_chunks[chunk] = NULL;
  ljp_slots_unlock();
  return (chunk + 1) * LJP_SLOT_CHUNK < ljp_slots_used;
}

/* May we read a prototype of this VM and what it refers to? */
static bool proto_readable(const struct ljp_vm *vm, GCproto *pt)
{
  const global_State *g = (const global_State *)(uintptr_t)atomic_load_explicit(
      &vm->g, memory_order_relaxed);
  return g && !isdead(g, obj2gco(pt));
}

/* The name of a chunk without a file is its whole source: keep only as much as
** a description holds. */
static size_t proto_chunk_length(const GCstr *chunk)
{
  return chunk->len < LJP_NAME_BYTES ? chunk->len : LJP_NAME_BYTES - 1;
}

static uint32_t proto_flags(const GCproto *pt)
{
  return (pt->flags & PROTO_VARARG ? LJP_PROTO_VARARG : 0) |
         (pt->firstline == 0 ? LJP_PROTO_MAIN : 0);
}

static void proto_describe(struct ljp_proto_entry *entry, uint32_t ref)
{
  GCproto *pt = ljp_slot_owner(ref);
  if (!(entry->flags & LJP_PROTO_UNKNOWN) || !pt ||
      !proto_readable(ljp_slot_vm(ref), pt))
    return;
  const GCstr *chunk = proto_chunkname(pt); /* the VM has hashed it already */
  entry->chunk = ljp_chunk_name_get(strdata(chunk), proto_chunk_length(chunk),
                                    chunk->hash);
  entry->first_line = (uint32_t)pt->firstline;
  entry->last_line = (uint32_t)(pt->firstline + pt->numline);
  entry->flags = proto_flags(pt);
}

/* LuaJIT also marks what it skips because of jit.off(). */
static bool proto_blacklisted(struct ljp_vm *vm, GCproto *pt)
{
  return pt && proto_readable(vm, pt) &&
         (pt->flags & (PROTO_ILOOP | PROTO_NOJIT)) == PROTO_ILOOP;
}

/* -- Hooks ----------------------------------------------------------------- */

/* Makes the slot and, while a session runs, the entry of a prototype, its
** description and the names of its functions. Under the lock, which it
** frees. */
__attribute__((noinline)) static void proto_add(lua_State *L, GCproto *pt,
                                                struct ljp_vm *vm)
{
  uint64_t id = proto_next_id();
  uint32_t ref = 0;
  /* If the writers do not run, the bound is more important than a name. */
  if (!ljp_proto_holds ||
      ljp_proto_waiting_bytes() <= LJP_PROTOS_WAITING_BYTES) {
    ref = ljp_slot_reuse(pt, vm);
    if (ref)
      proto_last_reuse = id;
    else if ((ref = ljp_slot_make()) != 0)
      ljp_slot_fill(ref, pt, vm);
  }
  struct ljp_proto_entry *entry =
      ref && ljp_proto_holds ? proto_enter(ref, id) : NULL;
  if (entry) {
    proto_describe(entry, ref);
    ljp_unnamed_name(G(L), pt);
  } else if (ref && ljp_proto_holds) {
    ljp_slot_clear(ref, vm);
    ljp_slot_free(ref, vm);
    ref = 0;
  } else if (ref && pt->flags & PROTO_CHILD) {
    ljp_unnamed_add(vm, pt, ref);
  }
  if (!ref)
    proto_unnamed++;
  pt->unused_gc64 = ref;
  ljp_unlock(LJP_LOCK_PROTOS);
}

__attribute__((noinline)) static void
proto_wait_and_add(lua_State *L, GCproto *pt, struct ljp_vm *vm)
{
  ljp_lock_wait(LJP_LOCK_PROTOS);
  proto_add(L, pt, vm);
}

/* On their common paths, this hook and the next one make only tail calls, so
** they need no frames: loading and freeing code runs them for each function. */
void ljp_hook_proto(lua_State *L, GCproto *pt)
{
  struct ljp_vm *vm = ljp_vm_of_thread(L);
  pt->unused_gc64 = 0;
  pt->ljp_name = 0;
  if (LJP_UNLIKELY(!vm))
    return;
  if (LJP_UNLIKELY(!ljp_lock_try(LJP_LOCK_PROTOS))) {
    proto_wait_and_add(L, pt, vm);
    return;
  }
  uint32_t ref = ljp_proto_holds ? 0 : ljp_slot_reuse(pt, vm);
  if (LJP_UNLIKELY(!ref)) {
    proto_add(L, pt, vm);
    return;
  }
  proto_last_reuse = proto_next_id();
  pt->unused_gc64 = ref;
  if (pt->flags & PROTO_CHILD)
    ljp_unnamed_add(vm, pt, ref);
  ljp_unlock(LJP_LOCK_PROTOS);
}

/* The slot's prototype has been freed while there are entries. Returns how many
** writers are to be called, as many entries wait. */
__attribute__((noinline)) static int proto_die(uint32_t ref, struct ljp_vm *vm,
                                               uint32_t name,
                                               void (*crowded[LJP_HOLDS])(void))
{
  struct ljp_proto_entry *entry = ljp_proto_entry_at(ref);
  ljp_slot_clear(ref, vm);
  /* Without memory for an entry, the slot is kept until the last session ends,
  ** because a writer may ask about it. */
  if (!entry) {
    ljp_proto_name_put(name);
    ljp_slot_lock(ref);
    return 0;
  }
  ljp_chunk_name_dies(entry->chunk);
  entry->name = name;
  if (!ljp_proto_holds) { /* the last one has just ended */
    ljp_proto_entry_free(entry, ref);
    return 0;
  }
  size_t waited = ljp_proto_waiting_bytes();
  int n = 0;
  ljp_proto_entry_wait(entry, ref);
  if (ljp_proto_waiting_bytes() / LJP_PROTOS_CROWD_BYTES >
      waited / LJP_PROTOS_CROWD_BYTES)
    for (const struct ljp_guest_hold *h = ljp_proto_holds; h && n < LJP_HOLDS;
         h = h->next)
      if (h->crowded)
        crowded[n++] = h->crowded;
  return n;
}

/* The rest of proto_go() if the prototype has an entry or a name, or its VM is
** being closed. */
__attribute__((noinline)) static void proto_go_slowly(uint32_t ref,
                                                      uint32_t name)
{
  struct ljp_vm *vm = ljp_slot_vm(ref), *closed = NULL;
  void (*crowded[LJP_HOLDS])(void);
  int n = 0;
  if (ljp_proto_entry_chunks[ref / LJP_SLOT_CHUNK] || ljp_proto_holds) {
    n = proto_die(ref, vm, name, crowded);
  } else {
    if (name)
      ljp_proto_name_put(name);
    ljp_slot_clear(ref, vm);
    ljp_slot_free(ref, vm);
  }
  if (!vm->protos && !atomic_load_explicit(&vm->g, memory_order_relaxed))
    closed = vm;
  ljp_unlock(LJP_LOCK_PROTOS);
  if (closed)
    ljp_vm_remove(closed);
  while (n)
    crowded[--n]();
}

/* Under the lock, which it frees. */
__attribute__((always_inline)) static inline void proto_go(GCproto *pt)
{
  /* A remembered walk may refer to the prototype, so the counter must change
  ** before the memory is used again. Only written under the lock. */
  atomic_store_explicit(
      &ljp_protos_gone,
      atomic_load_explicit(&ljp_protos_gone, memory_order_relaxed) + 1,
      memory_order_release);
  uint32_t ref = pt->unused_gc64;
  /* An error may leave a prototype half made, with any values in our fields. */
  if (LJP_LIKELY(ljp_slot_owner(ref) == pt)) {
    struct ljp_vm *vm = ljp_slot_vm(ref);
    uint32_t name = pt->ljp_name & LJP_UNNAMED_LINK ? 0 : pt->ljp_name;
    if (LJP_UNLIKELY(name || ljp_proto_holds ||
                     ljp_proto_entry_chunks[ref / LJP_SLOT_CHUNK] ||
                     !atomic_load_explicit(&vm->g, memory_order_relaxed))) {
      proto_go_slowly(ref, name);
      return;
    }
    ljp_slot_clear(ref, vm);
    ljp_slot_push(&vm->resting, ref);
  }
  ljp_unlock(LJP_LOCK_PROTOS);
}

__attribute__((noinline)) static void proto_wait_and_go(GCproto *pt)
{
  ljp_lock_wait(LJP_LOCK_PROTOS);
  proto_go(pt);
}

void ljp_hook_proto_gone(GCproto *pt)
{
  if (LJP_UNLIKELY(!ljp_lock_try(LJP_LOCK_PROTOS)))
    proto_wait_and_go(pt);
  else
    proto_go(pt);
}

void ljp_protos_sweep(struct ljp_vm *vm)
{
  ljp_lock(LJP_LOCK_PROTOS);
  ljp_unnamed_name_some(vm, UINT32_MAX);
  ljp_unlock(LJP_LOCK_PROTOS);
}

void ljp_protos_swept(struct ljp_vm *vm)
{
  ljp_lock(LJP_LOCK_PROTOS);
  ljp_slots_swept(vm);
  ljp_unlock(LJP_LOCK_PROTOS);
}

bool ljp_protos_drop(struct ljp_vm *vm)
{
  ljp_lock(LJP_LOCK_PROTOS);
  vm->unnamed = 0;
  ljp_slots_swept(vm);
  bool last = vm->protos == 0;
  atomic_store_explicit(&vm->g, 0, memory_order_release);
  ljp_unlock(LJP_LOCK_PROTOS);
  return last;
}

/* -- Questions ------------------------------------------------------------- */

/* Does a reference that was valid when `newest` was the largest id still stand
** for the same prototype? Without an entry its slot's past is not known. */
static bool proto_stands(uint32_t ref, uint64_t newest)
{
  const struct ljp_proto_entry *entry = ljp_proto_entry_at(ref);
  return entry ? entry->id <= newest
               : ljp_slot_owner(ref) && proto_last_reuse <= newest;
}

uint64_t ljp_protos_newest(void)
{
  return atomic_load_explicit(&proto_last_id, memory_order_relaxed);
}

bool ljp_protos_stand(uint32_t ref, uint64_t newest)
{
  ljp_lock(LJP_LOCK_PROTOS);
  bool same = proto_stands(ref, newest);
  ljp_unlock(LJP_LOCK_PROTOS);
  return same;
}

static void proto_copy_text(char out[LJP_NAME_BYTES], const char *text)
{
  size_t length = strnlen(text, LJP_NAME_BYTES - 1);
  memcpy(out, text, length);
  out[length] = '\0';
}

static void proto_tell(const struct ljp_proto_entry *entry, uint32_t name,
                       struct ljp_guest_proto *out)
{
  const char *shown = ljp_proto_name(name);
  if (!*shown && entry->flags & LJP_PROTO_MAIN)
    shown = "main chunk";
  out->id = entry->id;
  out->alive = !entry->death;
  proto_copy_text(out->chunk, entry->chunk ? entry->chunk->name : "");
  proto_copy_text(out->name, shown);
  out->first_line = entry->first_line;
  out->last_line = entry->last_line;
  out->flags = entry->flags;
}

bool ljp_guest_proto_of(uint32_t ref, uint64_t newest,
                        struct ljp_guest_proto *out)
{
  struct ljp_proto_entry none = {.flags = LJP_PROTO_UNKNOWN};
  ljp_lock(LJP_LOCK_PROTOS);
  bool found = proto_stands(ref, newest);
  if (found) {
    GCproto *pt = ljp_slot_owner(ref);
    struct ljp_proto_entry *entry = ljp_proto_entry_at(ref);
    if (pt)
      ljp_unnamed_name_some(ljp_slot_vm(ref), UINT32_MAX);
    if (!entry)
      entry = &none;
    proto_describe(entry, ref);
    proto_tell(entry, pt ? pt->ljp_name : entry->name, out);
    if (proto_blacklisted(ljp_slot_vm(ref), pt))
      out->flags |= LJP_PROTO_BLACKLISTED;
    if (entry == &none && none.chunk) {
      ljp_chunk_name_dies(none.chunk);
      ljp_chunk_name_put(none.chunk);
    }
  }
  ljp_unlock(LJP_LOCK_PROTOS);
  return found;
}

bool ljp_guest_proto(uint32_t ref, struct ljp_guest_proto *out)
{
  return ljp_guest_proto_of(ref, UINT64_MAX, out);
}

/* -- For holds.c, under the lock ------------------------------------------- */

/* The entries of all references below exist. */
static uint32_t proto_described;

void ljp_protos_describe_begin(void)
{
  proto_described = 1;
}

/* Names first: the collector may free the prototypes that tell them. */
static bool proto_name_more(void)
{
  enum { AT_ONCE = 32 };
  for (struct ljp_vm *vm = ljp_vm_next(NULL); vm; vm = ljp_vm_next(vm))
    if (vm->unnamed) {
      ljp_unnamed_name_some(vm, AT_ONCE);
      return true;
    }
  return false;
}

bool ljp_protos_describe_more(void)
{
  enum { AT_ONCE = 512 };
  if (proto_described < ljp_slots_used && proto_name_more())
    return true;
  for (int i = 0; i < AT_ONCE && proto_described < ljp_slots_used; i++) {
    uint32_t ref = proto_described++;
    struct ljp_proto_entry *entry = ljp_proto_entry_at(ref);
    if (!ljp_slot_owner(ref))
      continue;
    if (!entry)
      entry = proto_enter(ref, proto_next_id());
    if (entry)
      proto_describe(entry, ref);
    else
      proto_unnamed++;
  }
  return proto_described < ljp_slots_used;
}

uint64_t ljp_protos_unnamed(void)
{
  return proto_unnamed;
}
