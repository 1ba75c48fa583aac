/*
** Prototypes: each gets an entry when LuaJIT has finished it (compiled it from
** source or loaded it from bytecode). So a function keeps the name under which
** it was defined even when the chunk that defined it is long gone, and an
** address that is used again is never taken for the old function.
**
** The prototype's spare 32 bits hold the reference of its entry. References are
** used again after the prototype was freed, ids never. While a session holds
** entries, those of freed prototypes wait in the order of their deaths, until
** each writer has said that nothing can refer to them any more
** (ljp_guest_protos_gone). No walk finds a prototype after it was freed,
** because a remembered walk is valid only until ljp_protos_gone changes. RFC 3
** has the whole argument.
**
** Loading code must cost almost nothing while no session runs. So entries are
** filled late: when the first hold is taken, for all prototypes that exist
** then, and from then on immediately. Only names cannot wait so long: the name
** is in the prototype around the function, which may be gone by then. So
** surrounding prototypes wait in a list of their VM. The collector's next cycle
** empties the list: before the cycle frees anything, their functions get their
** names.
**
** Invariant: what an entry's owner refers to may be read under the lock, unless
** the owner is dead (a collector is about to free it, strings first) or its VM
** is being closed (no VM has its number any more).
**
** The hooks run on VM threads; writer threads ask about entries and deaths.
** Everything is under one lock.
*/
#define LUA_CORE

#include <stdlib.h>

#include "lj_obj.h"
#include "lj_gc.h"

#include "src/base/assert.h"
#include "src/luajit/frames.h"
#include "src/luajit/functions/defined_name.h"
#include "src/luajit/functions/entries.h"
#include "src/luajit/functions/prototypes.h"
#include "src/luajit/vm/lock.h"
#include "src/luajit/vm/vm_of.h"

struct ljp_proto_entry *ljp_proto_entry_chunks[LJP_PROTO_ENTRY_CHUNKS];
uint32_t ljp_proto_entries_used = 1;
static uint32_t proto_free_first;
static _Atomic uint64_t proto_last_id; /* changed under the lock */
static uint64_t proto_unnamed;         /* prototypes that have no entry */

/* -- Entries --------------------------------------------------------------- */

/* The reference of a fresh entry, 0 if there is no memory. */
__attribute__((noinline)) static uint32_t proto_make_entry(void)
{
  uint32_t chunk = ljp_proto_entries_used / LJP_PROTO_CHUNK_ENTRIES;
  if (chunk >= LJP_PROTO_ENTRY_CHUNKS)
    return 0;
  if (!ljp_proto_entry_chunks[chunk]) {
    ljp_proto_entry_chunks[chunk] =
        calloc(LJP_PROTO_CHUNK_ENTRIES, sizeof **ljp_proto_entry_chunks);
    if (!ljp_proto_entry_chunks[chunk])
      return 0;
  }
  return ljp_proto_entries_used++;
}

__attribute__((noinline)) static void
proto_drop_text(struct ljp_proto_entry *entry)
{
  struct ljp_proto_text *text = entry->text;
  entry->text = NULL;
  ljp_chunk_name_put(text->chunk);
  free(text->name);
  free(text);
}

void ljp_proto_entry_free(struct ljp_proto_entry *entry, uint32_t ref)
{
  if (LJP_UNLIKELY(entry->text))
    proto_drop_text(entry);
  entry->death = 0;
  entry->next = proto_free_first;
  proto_free_first = ref;
}

static void proto_die(struct ljp_proto_entry *entry, uint32_t ref)
{
  entry->owner = NULL;
  if (entry->text)
    ljp_chunk_name_dies(entry->text->chunk);
  if (LJP_LIKELY(!ljp_proto_holds))
    ljp_proto_entry_free(entry, ref);
  else
    ljp_proto_entry_wait(entry, ref);
}

static struct ljp_proto_text *proto_text_of(struct ljp_proto_entry *entry)
{
  if (!entry->text)
    entry->text = calloc(1, sizeof *entry->text);
  return entry->text;
}

static void proto_set_name(struct ljp_proto_entry *entry, const char *name,
                           size_t length)
{
  struct ljp_proto_text *text = proto_text_of(entry);
  if (!text || text->name)
    return; /* the first definition gives the name */
  text->name = malloc(length + 1);
  if (text->name) {
    memcpy(text->name, name, length);
    text->name[length] = '\0';
  }
}

/* May we read the entry's prototype and what it refers to? */
static bool proto_readable(const struct ljp_proto_entry *entry)
{
  const struct ljp_vm *vm =
      entry->owner ? ljp_vm_numbered(entry->vm, entry->number) : NULL;
  if (!vm)
    return false;
  const global_State *g = (const global_State *)(uintptr_t)atomic_load_explicit(
      &vm->g, memory_order_relaxed);
  return !isdead(g, obj2gco(entry->owner));
}

static void proto_describe(struct ljp_proto_entry *entry)
{
  const GCproto *pt = entry->owner;
  struct ljp_proto_text *text;
  if ((entry->text && entry->text->described) || !proto_readable(entry))
    return;
  text = proto_text_of(entry);
  if (!text)
    return;
  text->described = true;
  /* The name of a chunk without a file is its whole source: keep only as much
  ** as a description holds. The VM has already hashed the name. */
  const GCstr *chunk = proto_chunkname(pt);
  text->chunk = ljp_chunk_name_get(
      strdata(chunk),
      chunk->len < LJP_NAME_BYTES ? chunk->len : LJP_NAME_BYTES - 1,
      chunk->hash);
  text->first_line = (uint32_t)pt->firstline;
  text->last_line = (uint32_t)(pt->firstline + pt->numline);
  if (pt->flags & PROTO_VARARG)
    text->flags |= LJP_PROTO_VARARG;
  if (pt->firstline == 0) {
    text->flags |= LJP_PROTO_MAIN;
    proto_set_name(entry, "main chunk", 10);
  }
}

static struct ljp_proto_entry *proto_child_entry(const GCproto *child)
{
  struct ljp_proto_entry *entry = ljp_proto_entry_at(child->unused_gc64);
  return entry && entry->owner == child ? entry : NULL;
}

static bool proto_wants_name(void *arg, const GCproto *child)
{
  global_State *g = arg;
  const struct ljp_proto_entry *entry = proto_child_entry(child);
  return entry && !(entry->text && entry->text->name) &&
         !isdead(g, obj2gco((GCproto *)child));
}

static void proto_name_child(void *arg, const GCproto *child, const char *name,
                             size_t length)
{
  (void)arg;
  proto_set_name(proto_child_entry(child), name, length);
}

static void proto_name_children(global_State *g, const GCproto *pt)
{
  if (pt->flags & PROTO_CHILD)
    ljp_proto_name_children(pt, proto_wants_name, proto_name_child, g);
}

/* May a function that is defined in pt outlive pt? */
static bool proto_has_heirs(const global_State *g, const GCproto *pt)
{
  for (ptrdiff_t i = -(ptrdiff_t)pt->sizekgc; i < 0; i++) {
    const GCobj *object = proto_kgc(pt, i);
    if (object->gch.gct == (uint8_t)~LJ_TPROTO && !isdead(g, object))
      return true;
  }
  return false;
}

/* Names the functions of all prototypes in the VM's list, and empties it. */
static void proto_name_all(struct ljp_vm *vm)
{
  global_State *g = (global_State *)(uintptr_t)atomic_load_explicit(
      &vm->g, memory_order_relaxed);
  const struct ljp_proto_entry *entry =
      g ? ljp_proto_entry_at(vm->unnamed) : NULL;
  for (; entry; entry = ljp_proto_entry_at(entry->next))
    if (proto_has_heirs(g, entry->owner))
      proto_name_children(g, entry->owner);
  vm->unnamed = 0;
}

/* While a session runs, the description and the names are made immediately. */
__attribute__((noinline)) static void
proto_describe_now(global_State *g, struct ljp_proto_entry *entry)
{
  proto_describe(entry);
  proto_name_children(g, entry->owner);
}

void ljp_hook_proto(lua_State *L, GCproto *pt)
{
  struct ljp_vm *vm = ljp_vm_of_thread(L);
  pt->unused_gc64 = 0;
  if (LJP_UNLIKELY(!vm))
    return;
  ljp_lock(LJP_LOCK_PROTOS);
  if (LJP_UNLIKELY(!proto_free_first))
    proto_free_first = proto_make_entry();
  /* The writers do not run: the bound is more important than a name. */
  uint32_t ref = proto_free_first;
  if (LJP_UNLIKELY(ljp_proto_holds &&
                   ljp_proto_waiting_bytes() > LJP_PROTOS_WAITING_BYTES))
    ref = 0;
  struct ljp_proto_entry *entry = ljp_proto_entry_at(ref);
  if (LJP_LIKELY(entry)) {
    pt->unused_gc64 = ref;
    ljp_assert(!entry->owner && !entry->text);
    proto_free_first = entry->next;
    entry->id = atomic_load_explicit(&proto_last_id, memory_order_relaxed) + 1;
    atomic_store_explicit(&proto_last_id, entry->id, memory_order_relaxed);
    entry->owner = pt;
    entry->vm = vm->index;
    entry->number = vm->number;
    if (LJP_UNLIKELY(ljp_proto_holds)) {
      proto_describe_now(G(L), entry);
    } else if (pt->flags & PROTO_CHILD) {
      entry->next = vm->unnamed;
      vm->unnamed = ref;
    }
  } else {
    proto_unnamed++;
  }
  ljp_unlock(LJP_LOCK_PROTOS);
}

void ljp_hook_proto_gone(GCproto *pt)
{
  ljp_lock(LJP_LOCK_PROTOS);
  /* A remembered walk may refer to the prototype, so the counter must change
  ** before the memory is used again. Only written under the lock. */
  atomic_store_explicit(
      &ljp_protos_gone,
      atomic_load_explicit(&ljp_protos_gone, memory_order_relaxed) + 1,
      memory_order_release);
  uint32_t ref = pt->unused_gc64;
  struct ljp_proto_entry *entry = ljp_proto_entry_at(ref);
  size_t waited = ljp_proto_waiting_bytes();
  /* An error may leave a prototype half made, with any value in this field. */
  if (entry && entry->owner == pt)
    proto_die(entry, ref);
  void (*crowded[LJP_HOLDS])(void);
  int n = 0;
  if (LJP_UNLIKELY(ljp_proto_waiting_bytes() / LJP_PROTOS_CROWD_BYTES >
                   waited / LJP_PROTOS_CROWD_BYTES))
    for (const struct ljp_guest_hold *h = ljp_proto_holds; h && n < LJP_HOLDS;
         h = h->next)
      if (h->crowded)
        crowded[n++] = h->crowded;
  ljp_unlock(LJP_LOCK_PROTOS);
  while (n)
    crowded[--n]();
}

void ljp_protos_sweep(struct ljp_vm *vm)
{
  ljp_lock(LJP_LOCK_PROTOS);
  proto_name_all(vm);
  ljp_unlock(LJP_LOCK_PROTOS);
}

void ljp_protos_drop(struct ljp_vm *vm)
{
  ljp_lock(LJP_LOCK_PROTOS);
  vm->unnamed = 0;
  atomic_store_explicit(&vm->g, 0, memory_order_release);
  ljp_unlock(LJP_LOCK_PROTOS);
}

/* -- Questions ------------------------------------------------------------- */

/* Does a reference that was valid when `newest` was the largest id still stand
** for the same prototype? */
static bool proto_stands(const struct ljp_proto_entry *entry, uint64_t newest)
{
  return entry && entry->id <= newest && (entry->owner || entry->death);
}

uint64_t ljp_protos_newest(void)
{
  return atomic_load_explicit(&proto_last_id, memory_order_relaxed);
}

bool ljp_protos_stand(uint32_t ref, uint64_t newest)
{
  ljp_lock(LJP_LOCK_PROTOS);
  bool same = proto_stands(ljp_proto_entry_at(ref), newest);
  ljp_unlock(LJP_LOCK_PROTOS);
  return same;
}

static void proto_copy_text(char out[LJP_NAME_BYTES], const char *text)
{
  size_t length = strnlen(text, LJP_NAME_BYTES - 1);
  memcpy(out, text, length);
  out[length] = '\0';
}

bool ljp_guest_proto_of(uint32_t ref, uint64_t newest,
                        struct ljp_guest_proto *out)
{
  ljp_lock(LJP_LOCK_PROTOS);
  struct ljp_proto_entry *entry = ljp_proto_entry_at(ref);
  bool found = proto_stands(entry, newest);
  if (found &&
      proto_readable(entry)) { /* not described yet, if there is no hold */
    proto_name_all(ljp_vm_at(entry->vm));
    proto_describe(entry);
  }
  if (found) {
    const struct ljp_proto_text *text = entry->text;
    bool known = text && text->described;
    out->id = entry->id;
    out->alive = entry->owner != NULL;
    proto_copy_text(out->chunk, known && text->chunk ? text->chunk->name : "");
    proto_copy_text(out->name, known && text->name ? text->name : "");
    out->first_line = known ? text->first_line : 0;
    out->last_line = known ? text->last_line : 0;
    out->flags = known ? text->flags : LJP_PROTO_UNKNOWN;
  }
  ljp_unlock(LJP_LOCK_PROTOS);
  return found;
}

bool ljp_guest_proto(uint32_t ref, struct ljp_guest_proto *out)
{
  return ljp_guest_proto_of(ref, UINT64_MAX, out);
}

/* For holds.c, under the lock. */
void ljp_protos_describe_all(void)
{
  for (struct ljp_vm *vm = ljp_vm_next(NULL); vm; vm = ljp_vm_next(vm))
    proto_name_all(vm);
  for (uint32_t ref = 1; ref < ljp_proto_entries_used; ref++)
    proto_describe(ljp_proto_entry_at(ref));
}

uint64_t ljp_protos_unnamed(void)
{
  return proto_unnamed;
}
