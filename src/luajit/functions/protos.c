/*
** Prototypes: a record for each, made when LuaJIT finishes one (compiled from
** source or loaded from bytecode), so that a function is described by the
** name that it was defined under even when the chunk that defined it is long
** gone, and an address that is used again is never taken for the old one.
**
** The record's reference is kept in the prototype's spare 32 bits. References
** are used again after the prototype was freed, ids never. While a hold is
** taken (a session runs), freed records wait in the order of their deaths, so
** that a writer can describe what a handler saw, until each writer has said that
** nothing is left that could mean them (ljp_guest_protos_gone). Once a prototype
** is freed no walk finds it: what is remembered of one is good for as long as none
** was freed (ljp_protos_gone). RFC 3 has the whole argument.
**
** Loading code is to cost next to nothing while no session runs. So a record is
** filled in late: when the first hold is taken, for all prototypes that there
** are, and from then on at once. Only names cannot wait for that: they stand in
** the prototype around a function, which may be gone by then. It waits in a
** list of its VM, which the collector's next cycle empties: before that frees
** anything, functions that outlive it get their names, and so do those of
** prototypes that stay, lest the list be looked at in every cycle.
**
** Invariant: what a record's owner refers to may be read under the lock, unless
** it is dead (marked so by a collector that is about to free it, strings
** first) or its VM is being closed (its number is no VM's any more).
**
** The hooks run on VM threads, what is asked about records, and about deaths, on
** writer threads: one lock.
*/
#define LUA_CORE

#include <stdlib.h>

#include "lj_obj.h"
#include "lj_gc.h"
#include "lj_jit.h"
#include "lj_dispatch.h"

#include "src/luajit/frames.h"
#include "src/luajit/vm/lock.h"
#include "src/luajit/functions/name.h"
#include "src/luajit/functions/records.h"

struct ljp_proto_record *ljp_record_chunks[LJP_RECORD_CHUNKS];
uint32_t ljp_records_used = 1;
static uint32_t free_first;
static _Atomic uint64_t last_id; /* changed under the lock */
static uint64_t unnamed;         /* prototypes that have no record */

/* -- Records ------------------------------------------------------------------
 */

/* A fresh one, 0 if there is no memory. */
__attribute__((noinline)) static uint32_t record_make(void)
{
  uint32_t chunk = ljp_records_used / LJP_CHUNK_RECORDS;
  if (chunk >= LJP_RECORD_CHUNKS)
    return 0;
  if (!ljp_record_chunks[chunk]) {
    ljp_record_chunks[chunk] =
        calloc(LJP_CHUNK_RECORDS, sizeof **ljp_record_chunks);
    if (!ljp_record_chunks[chunk])
      return 0;
  }
  return ljp_records_used++;
}

__attribute__((noinline)) static void untell(struct ljp_proto_record *record)
{
  struct ljp_proto_told *told = record->told;
  record->told = NULL;
  ljp_chunk_name_put(told->chunk);
  free(told->name);
  free(told);
}

void ljp_record_free(struct ljp_proto_record *record, uint32_t ref)
{
  if (LJP_UNLIKELY(record->told))
    untell(record);
  record->death = 0;
  record->next = free_first;
  free_first = ref;
}

static void die(struct ljp_proto_record *record, uint32_t ref)
{
  record->owner = NULL;
  if (record->told)
    ljp_chunk_name_dies(record->told->chunk);
  if (LJP_LIKELY(!ljp_proto_holds))
    ljp_record_free(record, ref);
  else
    ljp_record_wait(record, ref);
}

static struct ljp_proto_told *told_of(struct ljp_proto_record *record)
{
  if (!record->told)
    record->told = calloc(1, sizeof *record->told);
  return record->told;
}

static void record_name(struct ljp_proto_record *record, const char *name,
                        size_t length)
{
  struct ljp_proto_told *told = told_of(record);
  if (!told || told->name)
    return; /* the first definition gives the name */
  told->name = malloc(length + 1);
  if (told->name) {
    memcpy(told->name, name, length);
    told->name[length] = '\0';
  }
}

/* Whether what belongs to the record's prototype is there to be read. */
static bool readable(const struct ljp_proto_record *record)
{
  const struct ljp_vm *vm = ljp_vm_at(record->vm);
  if (!record->owner || !vm || vm->number != record->number)
    return false;
  const global_State *g = (const global_State *)(uintptr_t)atomic_load_explicit(
      &vm->g, memory_order_relaxed);
  return g && !isdead(g, obj2gco(record->owner));
}

static void describe(struct ljp_proto_record *record)
{
  const GCproto *pt = record->owner;
  struct ljp_proto_told *told;
  if ((record->told && record->told->described) || !readable(record))
    return;
  told = told_of(record);
  if (!told)
    return;
  told->described = true;
  /* As much of it as a description holds: without a file it is the whole
  ** source. The VM has hashed it already. */
  const GCstr *chunk = proto_chunkname(pt);
  told->chunk = ljp_chunk_name_get(
      strdata(chunk),
      chunk->len < LJP_NAME_BYTES ? chunk->len : LJP_NAME_BYTES - 1,
      chunk->hash);
  told->first_line = (uint32_t)pt->firstline;
  told->last_line = (uint32_t)(pt->firstline + pt->numline);
  if (pt->flags & PROTO_VARARG)
    told->flags |= LJP_PROTO_VARARG;
  if (pt->firstline == 0) {
    told->flags |= LJP_PROTO_MAIN;
    record_name(record, "main chunk", 10);
  }
}

static struct ljp_proto_record *child_record(const GCproto *child)
{
  struct ljp_proto_record *record = ljp_record_at(child->unused_gc64);
  return record && record->owner == child ? record : NULL;
}

static bool wants_name(void *arg, const GCproto *child)
{
  global_State *g = arg;
  const struct ljp_proto_record *record = child_record(child);
  return record && !(record->told && record->told->name) &&
         !isdead(g, obj2gco((GCproto *)child));
}

static void name_child(void *arg, const GCproto *child, const char *name,
                       size_t length)
{
  (void)arg;
  record_name(child_record(child), name, length);
}

static void name_children(global_State *g, const GCproto *pt)
{
  if (pt->flags & PROTO_CHILD)
    ljp_proto_name_children(pt, wants_name, name_child, g);
}

/* Whether a function that is defined in pt outlives it, or may. */
static bool has_heirs(const global_State *g, const GCproto *pt)
{
  for (ptrdiff_t i = -(ptrdiff_t)pt->sizekgc; i < 0; i++) {
    const GCobj *object = proto_kgc(pt, i);
    if (object->gch.gct == (uint8_t)~LJ_TPROTO && !isdead(g, object))
      return true;
  }
  return false;
}

/* Empties the list of prototypes whose functions have no names yet. */
static void name_all(struct ljp_vm *vm)
{
  global_State *g = (global_State *)(uintptr_t)atomic_load_explicit(
      &vm->g, memory_order_relaxed);
  const struct ljp_proto_record *record = g ? ljp_record_at(vm->unnamed) : NULL;
  for (; record; record = ljp_record_at(record->next))
    if (has_heirs(g, record->owner))
      name_children(g, record->owner);
  vm->unnamed = 0;
}

/* In a session nothing waits. */
__attribute__((noinline)) static void
tell_at_once(global_State *g, struct ljp_proto_record *record)
{
  describe(record);
  name_children(g, record->owner);
}

void ljp_hook_proto(lua_State *L, GCproto *pt)
{
  struct ljp_vm *vm = ljp_vm_at(L2GG(L)->ljp);
  pt->unused_gc64 = 0;
  if (LJP_UNLIKELY(!vm))
    return;
  ljp_lock(LJP_LOCK_PROTOS);
  if (LJP_UNLIKELY(!free_first))
    free_first = record_make();
  /* No writer comes: rather a function without a name than no bound. */
  uint32_t ref = free_first;
  if (LJP_UNLIKELY(ljp_proto_holds &&
                   ljp_records_waiting_bytes() > LJP_PROTOS_WAITING_BYTES))
    ref = 0;
  struct ljp_proto_record *record = ljp_record_at(ref);
  if (LJP_LIKELY(record)) {
    pt->unused_gc64 = ref;
    free_first = record->next;
    record->id = atomic_load_explicit(&last_id, memory_order_relaxed) + 1;
    atomic_store_explicit(&last_id, record->id, memory_order_relaxed);
    record->owner = pt;
    record->vm = vm->index;
    record->number = vm->number;
    if (LJP_UNLIKELY(ljp_proto_holds)) {
      tell_at_once(G(L), record);
    } else if (pt->flags & PROTO_CHILD) {
      record->next = vm->unnamed;
      vm->unnamed = ref;
    }
  } else {
    unnamed++;
  }
  ljp_unlock(LJP_LOCK_PROTOS);
}

void ljp_hook_proto_gone(GCproto *pt)
{
  ljp_lock(LJP_LOCK_PROTOS);
  /* Before its memory is anybody else's: a walk may be remembered. Only written
  ** under the lock. */
  atomic_store_explicit(
      &ljp_protos_gone,
      atomic_load_explicit(&ljp_protos_gone, memory_order_relaxed) + 1,
      memory_order_release);
  uint32_t ref = pt->unused_gc64;
  struct ljp_proto_record *record = ljp_record_at(ref);
  size_t waited = ljp_records_waiting_bytes();
  /* A prototype that an error left half made has any number there. */
  if (record && record->owner == pt)
    die(record, ref);
  void (*crowded[LJP_HOLDS])(void);
  int n = 0;
  if (LJP_UNLIKELY(ljp_records_waiting_bytes() / LJP_PROTOS_CROWD_BYTES >
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
  name_all(vm);
  ljp_unlock(LJP_LOCK_PROTOS);
}

void ljp_protos_drop(struct ljp_vm *vm)
{
  ljp_lock(LJP_LOCK_PROTOS);
  vm->unnamed = 0;
  atomic_store_explicit(&vm->g, 0, memory_order_release);
  ljp_unlock(LJP_LOCK_PROTOS);
}

/* -- Questions ----------------------------------------------------------------
 */

/* Does a reference that was good when so many ids had been given still stand for
** the same? */
static bool stands(const struct ljp_proto_record *record, uint64_t newest)
{
  return record && record->id <= newest && (record->owner || record->death);
}

uint64_t ljp_protos_newest(void)
{
  return atomic_load_explicit(&last_id, memory_order_relaxed);
}

bool ljp_protos_stand(uint32_t ref, uint64_t newest)
{
  ljp_lock(LJP_LOCK_PROTOS);
  bool same = stands(ljp_record_at(ref), newest);
  ljp_unlock(LJP_LOCK_PROTOS);
  return same;
}

static void copy_text(char out[LJP_NAME_BYTES], const char *text)
{
  size_t length = strnlen(text, LJP_NAME_BYTES - 1);
  memcpy(out, text, length);
  out[length] = '\0';
}

bool ljp_guest_proto_of(uint32_t ref, uint64_t newest,
                        struct ljp_guest_proto *out)
{
  ljp_lock(LJP_LOCK_PROTOS);
  struct ljp_proto_record *record = ljp_record_at(ref);
  bool found = stands(record, newest);
  if (found && readable(record)) { /* without a hold: only now */
    name_all(ljp_vm_at(record->vm));
    describe(record);
  }
  if (found) {
    const struct ljp_proto_told *told = record->told;
    bool known = told && told->described;
    out->id = record->id;
    out->alive = record->owner != NULL;
    copy_text(out->chunk, known && told->chunk ? told->chunk->name : "");
    copy_text(out->name, known && told->name ? told->name : "");
    out->first_line = known ? told->first_line : 0;
    out->last_line = known ? told->last_line : 0;
    out->flags = known ? told->flags : LJP_PROTO_UNKNOWN;
  }
  ljp_unlock(LJP_LOCK_PROTOS);
  return found;
}

bool ljp_guest_proto(uint32_t ref, struct ljp_guest_proto *out)
{
  return ljp_guest_proto_of(ref, UINT64_MAX, out);
}

/* For holds, under the lock. */
void ljp_protos_describe_all(void)
{
  for (uint32_t i = 1; i < ljp_vm_count; i++)
    name_all(ljp_vm_at(i));
  for (uint32_t ref = 1; ref < ljp_records_used; ref++)
    describe(ljp_record_at(ref));
}

uint64_t ljp_protos_unnamed(void)
{
  return unnamed;
}
