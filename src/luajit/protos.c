/*
** Prototypes: a record for each, made when LuaJIT finishes one (compiled from
** source or loaded from bytecode), so that a function is described by the
** name that it was defined under even when the chunk that defined it is long
** gone, and an address that is used again is never taken for the old one.
**
** The record's reference is kept in the prototype's spare 32 bits. References
** are used again after the prototype was freed, ids never. While a hold is
** taken (a session runs), freed records wait, so that a writer can describe
** what a handler saw.
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
** The hooks run on VM threads, ljp_guest_proto() on a writer thread: one lock.
*/
#define LUA_CORE

#include <stdlib.h>

#include "lj_obj.h"
#include "lj_gc.h"
#include "lj_jit.h"
#include "lj_dispatch.h"

#include "src/describe.h"
#include "src/luajit/guest_priv.h"
#include "src/luajit/lock.h"
#include "src/luajit/proto_name.h"

/* A chunk is so large that calloc() maps fresh pages, which cost nothing until
** they are used: most hosts have few prototypes. */
enum { CHUNK_RECORDS = 4096, CHUNKS = 4096 };

struct file {
  struct file *next; /* in its hash chain */
  uint32_t users;
  uint32_t hash;
  uint32_t length;
  char name[];
};

/* What is told of a prototype. */
struct told {
  bool described; /* or else only named, so far */
  uint32_t first_line, last_line;
  uint32_t flags;
  struct file *file;
  char *name; /* NULL: none */
};

struct record {
  uint64_t id;       /* of the last prototype that it was for */
  GCproto *owner;    /* NULL: freed */
  struct told *told; /* NULL: nothing yet */
  uint32_t vm;       /* index and number of its VM */
  uint32_t number;
  uint32_t next; /* in the list of free, waiting or unnamed records */
};

static struct record *chunks[CHUNKS];
static uint32_t used = 1; /* records ever taken; 0 is no reference */
static uint32_t free_first, waiting_first;
static uint64_t last_id;
static _Atomic uint32_t holds;

static struct file **files;
static uint32_t file_count, file_slots;
static struct file *last_file; /* the one asked for last: usually again */

/* -- File names, one copy each --------------------------------------------- */

static void files_grow(void)
{
  uint32_t slots = file_slots ? file_slots * 2 : 64;
  struct file **fresh = calloc(slots, sizeof *fresh);
  if (!fresh)
    return; /* longer chains, nothing worse */
  for (uint32_t i = 0; i < file_slots; i++) {
    for (struct file *f = files[i], *next; f; f = next) {
      next = f->next;
      f->next = fresh[f->hash & (slots - 1)];
      fresh[f->hash & (slots - 1)] = f;
    }
  }
  free(files);
  files = fresh;
  file_slots = slots;
}

static bool file_is(const struct file *f, const char *name, size_t length)
{
  return f->length == length && memcmp(f->name, name, length) == 0;
}

/* The name of a chunk, as much of it as a description holds: without a file it
** is the whole source. The VM has hashed it already; another VM has another
** seed, and so a copy of its own. */
static struct file *file_get(const GCstr *chunk)
{
  const char *name = strdata(chunk);
  size_t length = chunk->len < LJP_NAME_BYTES ? chunk->len : LJP_NAME_BYTES - 1;
  uint32_t hash = chunk->hash;
  if (last_file && file_is(last_file, name, length)) {
    last_file->users++;
    return last_file;
  }
  if (file_count >= file_slots)
    files_grow();
  if (!file_slots)
    return NULL;
  struct file **slot = &files[hash & (file_slots - 1)];
  for (struct file *f = *slot; f; f = f->next) {
    if (f->hash == hash && file_is(f, name, length)) {
      f->users++;
      return last_file = f;
    }
  }
  struct file *f = malloc(sizeof *f + length + 1);
  if (!f)
    return NULL;
  f->users = 1;
  f->hash = hash;
  f->length = (uint32_t)length;
  memcpy(f->name, name, length);
  f->name[length] = '\0';
  f->next = *slot;
  *slot = f;
  file_count++;
  return last_file = f;
}

static void file_put(struct file *file)
{
  if (!file || --file->users)
    return;
  struct file **at = &files[file->hash & (file_slots - 1)];
  while (*at != file)
    at = &(*at)->next;
  *at = file->next;
  if (last_file == file)
    last_file = NULL;
  file_count--;
  free(file);
}

/* -- Records ------------------------------------------------------------------
 */

static inline struct record *record_at(uint32_t ref)
{
  if (LJP_UNLIKELY(ref == 0 || ref >= used))
    return NULL;
  return &chunks[ref / CHUNK_RECORDS][ref % CHUNK_RECORDS];
}

/* A fresh one, 0 if there is no memory. */
__attribute__((noinline)) static uint32_t record_make(void)
{
  uint32_t chunk = used / CHUNK_RECORDS;
  if (chunk >= CHUNKS)
    return 0;
  if (!chunks[chunk]) {
    chunks[chunk] = calloc(CHUNK_RECORDS, sizeof **chunks);
    if (!chunks[chunk])
      return 0;
  }
  return used++;
}

__attribute__((noinline)) static void untell(struct record *record)
{
  struct told *told = record->told;
  record->told = NULL;
  file_put(told->file);
  free(told->name);
  free(told);
}

static inline void record_free(struct record *record, uint32_t ref)
{
  if (LJP_UNLIKELY(record->told))
    untell(record);
  record->next = free_first;
  free_first = ref;
}

static struct told *told_of(struct record *record)
{
  if (!record->told)
    record->told = calloc(1, sizeof *record->told);
  return record->told;
}

static void record_name(struct record *record, const char *name, size_t length)
{
  struct told *told = told_of(record);
  if (!told || told->name)
    return; /* the first definition gives the name */
  told->name = malloc(length + 1);
  if (told->name) {
    memcpy(told->name, name, length);
    told->name[length] = '\0';
  }
}

/* Whether what belongs to the record's prototype is there to be read. */
static bool readable(const struct record *record)
{
  const struct ljp_vm *vm = ljp_vm_at(record->vm);
  if (!record->owner || !vm || vm->number != record->number)
    return false;
  const global_State *g = (const global_State *)(uintptr_t)atomic_load_explicit(
      &vm->g, memory_order_relaxed);
  return g && !isdead(g, obj2gco(record->owner));
}

static void describe(struct record *record)
{
  const GCproto *pt = record->owner;
  struct told *told;
  if ((record->told && record->told->described) || !readable(record))
    return;
  told = told_of(record);
  if (!told)
    return;
  told->described = true;
  told->file = file_get(proto_chunkname(pt));
  told->first_line = (uint32_t)pt->firstline;
  told->last_line = (uint32_t)(pt->firstline + pt->numline);
  if (pt->flags & PROTO_VARARG)
    told->flags |= LJP_PROTO_VARARG;
  if (pt->firstline == 0) {
    told->flags |= LJP_PROTO_MAIN;
    record_name(record, "main chunk", 10);
  }
}

static struct record *child_record(const GCproto *child)
{
  struct record *record = record_at(child->unused_gc64);
  return record && record->owner == child ? record : NULL;
}

static bool wants_name(void *arg, const GCproto *child)
{
  global_State *g = arg;
  const struct record *record = child_record(child);
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
  const struct record *record = g ? record_at(vm->unnamed) : NULL;
  for (; record; record = record_at(record->next))
    if (has_heirs(g, record->owner))
      name_children(g, record->owner);
  vm->unnamed = 0;
}

/* In a session nothing waits. */
__attribute__((noinline)) static void tell_at_once(global_State *g,
                                                   struct record *record)
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
  struct record *record = record_at(free_first);
  if (LJP_LIKELY(record)) {
    uint32_t ref = free_first;
    pt->unused_gc64 = ref;
    free_first = record->next;
    record->id = ++last_id;
    record->owner = pt;
    record->vm = vm->index;
    record->number = vm->number;
    if (LJP_UNLIKELY(holds)) {
      tell_at_once(G(L), record);
    } else if (pt->flags & PROTO_CHILD) {
      record->next = vm->unnamed;
      vm->unnamed = ref;
    }
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
  struct record *record = record_at(ref);
  /* A prototype that an error left half made has any number there. */
  if (record && record->owner == pt) {
    record->owner = NULL;
    if (LJP_UNLIKELY(holds)) {
      record->next = waiting_first;
      waiting_first = ref;
    } else {
      record_free(record, ref);
    }
  }
  ljp_unlock(LJP_LOCK_PROTOS);
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

bool ljp_guest_protos_held(void)
{
  return atomic_load_explicit(&holds, memory_order_relaxed) != 0;
}

void ljp_guest_protos_hold(void)
{
  ljp_locks_mind_fork();
  ljp_lock(LJP_LOCK_PROTOS);
  if (holds++ == 0) {
    for (uint32_t i = 1; i < ljp_vm_count; i++)
      name_all(ljp_vm_at(i));
    for (uint32_t ref = 1; ref < used; ref++)
      describe(record_at(ref));
  }
  ljp_unlock(LJP_LOCK_PROTOS);
}

void ljp_guest_protos_release(void)
{
  ljp_lock(LJP_LOCK_PROTOS);
  if (--holds == 0) {
    while (waiting_first) {
      uint32_t ref = waiting_first;
      struct record *record = record_at(ref);
      waiting_first = record->next;
      record_free(record, ref);
    }
  }
  ljp_unlock(LJP_LOCK_PROTOS);
}

bool ljp_guest_proto(uint32_t ref, struct ljp_guest_proto *out)
{
  ljp_lock(LJP_LOCK_PROTOS);
  struct record *record = record_at(ref);
  if (record && readable(record)) { /* without a hold: only now */
    name_all(ljp_vm_at(record->vm));
    describe(record);
  }
  const struct told *told = record ? record->told : NULL;
  bool found = told && told->described;
  if (found) {
    out->id = record->id;
    out->chunk = told->file ? told->file->name : "";
    out->name = told->name ? told->name : "";
    out->first_line = told->first_line;
    out->last_line = told->last_line;
    out->flags = told->flags;
  }
  ljp_unlock(LJP_LOCK_PROTOS);
  return found;
}
