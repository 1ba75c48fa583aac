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
** The hooks run on VM threads, ljp_guest_proto() on a writer thread: one lock.
*/
#define LUA_CORE

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "lj_obj.h"
#include "lj_bc.h"

#include "src/describe.h"
#include "src/luajit/guest_priv.h"
#include "src/luajit/proto_name.h"

/* A chunk is so large that calloc() maps fresh pages, which cost nothing until
** they are used: most hosts have few prototypes. */
enum { CHUNK_RECORDS = 2048, CHUNKS = 8192, INLINE_NAME = 24 };

struct file {
  struct file *next; /* in its hash chain */
  uint32_t users;
  uint32_t hash;
  uint32_t length;
  char name[];
};

struct record {
  uint64_t id; /* 0: free */
  const void *owner;
  struct file *file;
  char *long_name; /* when it does not fit below */
  uint32_t first_line, last_line;
  uint32_t flags;
  uint32_t next; /* in the list of free or of waiting records */
  char name[INLINE_NAME];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
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

static struct record *record_at(uint32_t ref)
{
  if (ref == 0 || ref >= used)
    return NULL;
  return &chunks[ref / CHUNK_RECORDS][ref % CHUNK_RECORDS];
}

static uint32_t record_take(void)
{
  if (free_first) {
    uint32_t ref = free_first;
    free_first = record_at(ref)->next;
    return ref;
  }
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

static void record_free(uint32_t ref)
{
  struct record *record = record_at(ref);
  file_put(record->file);
  free(record->long_name);
  memset(record, 0, sizeof *record);
  record->next = free_first;
  free_first = ref;
}

static void record_name(struct record *record, const char *name, size_t length)
{
  if (record->name[0] || record->long_name)
    return; /* the first definition gives the name */
  if (length < INLINE_NAME) {
    memcpy(record->name, name, length);
    return;
  }
  record->long_name = malloc(length + 1);
  if (record->long_name) {
    memcpy(record->long_name, name, length);
    record->long_name[length] = '\0';
  }
}

static void name_child(void *arg, GCproto *child, const char *name,
                       size_t length)
{
  (void)arg;
  struct record *record = record_at(child->unused_gc64);
  if (record && record->owner == child)
    record_name(record, name, length);
}

void ljp_hook_proto(GCproto *pt)
{
  pthread_mutex_lock(&lock);
  uint32_t ref = record_take();
  pt->unused_gc64 = ref;
  if (ref) {
    struct record *record = record_at(ref);
    record->id = ++last_id;
    record->owner = pt;
    record->file = file_get(proto_chunkname(pt));
    record->first_line = (uint32_t)pt->firstline;
    record->last_line = (uint32_t)(pt->firstline + pt->numline);
    if (pt->flags & PROTO_VARARG)
      record->flags |= LJP_PROTO_VARARG;
    if (pt->firstline == 0) {
      record->flags |= LJP_PROTO_MAIN;
      record_name(record, "main chunk", 10);
    }
  }
  ljp_proto_name_children(pt, name_child, NULL);
  pthread_mutex_unlock(&lock);
}

void ljp_hook_proto_gone(GCproto *pt)
{
  pthread_mutex_lock(&lock);
  /* Before its memory is anybody else's: a walk may be remembered. */
  atomic_fetch_add_explicit(&ljp_protos_gone, 1, memory_order_release);
  uint32_t ref = pt->unused_gc64;
  struct record *record = record_at(ref);
  /* A prototype that an error left half made has any number there. */
  if (record && record->owner == pt) {
    record->owner = NULL;
    if (holds) {
      record->next = waiting_first;
      waiting_first = ref;
    } else {
      record_free(ref);
    }
  }
  pthread_mutex_unlock(&lock);
}

bool ljp_guest_protos_held(void)
{
  return atomic_load_explicit(&holds, memory_order_relaxed) != 0;
}

void ljp_guest_protos_hold(void)
{
  pthread_mutex_lock(&lock);
  holds++;
  pthread_mutex_unlock(&lock);
}

void ljp_guest_protos_release(void)
{
  pthread_mutex_lock(&lock);
  if (--holds == 0) {
    while (waiting_first) {
      uint32_t ref = waiting_first;
      waiting_first = record_at(ref)->next;
      record_free(ref);
    }
  }
  pthread_mutex_unlock(&lock);
}

bool ljp_guest_proto(uint32_t ref, struct ljp_guest_proto *out)
{
  pthread_mutex_lock(&lock);
  const struct record *record = record_at(ref);
  bool found = record && record->id;
  if (found) {
    out->id = record->id;
    out->chunk = record->file ? record->file->name : "";
    out->name = record->long_name ? record->long_name : record->name;
    out->first_line = record->first_line;
    out->last_line = record->last_line;
    out->flags = record->flags;
  }
  pthread_mutex_unlock(&lock);
  return found;
}
