/*
** The life cycle of an unwinder, and its part of the writer's rounds: follow
** the loaded objects, read the headers of new ones, compile tables for those
** that steps have met.
** Safety: writer's side, except where unwind.h says otherwise.
*/
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "profilers/unwind/table.h"
#include "profilers/unwind/writer.h"
#include "src/base/assert.h"
#include "src/base/clock.h"

const char *ljp_unwind_result_text(enum ljp_unwind_result result)
{
  switch (result) {
#define TEXT(name, number, text)                                               \
  case LJP_UNWIND_##name:                                                      \
    return text;
    LJP_UNWIND_LIST(TEXT)
#undef TEXT
  }
  return "unknown result";
}

/* -- A round --------------------------------------------------------------- */

static bool poll_has_object(const struct ljp_unwind_map *map,
                            const struct ljp_unwind_object *object)
{
  for (uint32_t i = 0; i < map->objects_count; i++)
    if (map->objects[i] == object)
      return true;
  return false;
}

static struct ljp_unwind_object *
poll_next_object(const struct ljp_unwind_map *map)
{
  for (uint32_t i = 0; i < map->objects_count; i++) {
    struct ljp_unwind_object *object = map->objects[i];
    if (atomic_load_explicit(&object->wanted, memory_order_relaxed) &&
        !atomic_load(&object->table) && !atomic_load(&object->failed))
      return object;
  }
  return NULL;
}

static void poll_give_up(struct ljp_unwind *unwind,
                         struct ljp_unwind_object *object)
{
  atomic_store(&object->failed, true);
  unwind->writer->stats.failed++;
}

static bool poll_time_is_up(const struct ljp_unwind *unwind, uint64_t until_ns)
{
  return atomic_load_explicit(&unwind->hurried, memory_order_relaxed) ||
         ljp_clock_ns() >= until_ns;
}

/* Works on the table of one object. True if there may be more to do. */
static bool poll_compile(struct ljp_unwind *unwind, uint64_t until_ns)
{
  struct ljp_unwind_writer *writer = unwind->writer;
  struct ljp_unwind_object *object;
  struct ljp_unwind_table *table;
  if (!writer->job) {
    object = poll_next_object(ljp_unwind_current_map(unwind));
    if (!object)
      return false;
    if (!ljp_unwind_object_read(object)) {
      poll_give_up(unwind, object);
      return true;
    }
    writer->job = ljp_unwind_job_new(object);
    if (!writer->job) {
      poll_give_up(unwind, object);
      return true;
    }
  }
  object = ljp_unwind_job_object(writer->job);
  ljp_assert(object->refs > 0);
  if (!ljp_unwind_job_run(writer->job, until_ns, &unwind->hurried, &table))
    return true;
  writer->job = NULL;
  /* Another object may have taken this one's place while its CFI was copied, so
  ** look again before publishing the table. refs keeps the object alive. */
  object->refs++;
  ljp_unwind_update_map(unwind);
  if (!table)
    poll_give_up(unwind, object);
  else if (poll_has_object(ljp_unwind_current_map(unwind), object))
    atomic_store_explicit(&object->table, table, memory_order_release);
  else
    ljp_unwind_table_free(table);
  if (--object->refs == 0)
    ljp_unwind_object_free(object);
  return true;
}

/* Reads the headers that have not been read yet. True if time is up. */
static bool poll_read_headers(struct ljp_unwind *unwind, uint64_t until_ns)
{
  struct ljp_unwind_map *map = ljp_unwind_current_map(unwind);
  for (uint32_t i = 0; i < map->objects_count; i++) {
    struct ljp_unwind_object *object = map->objects[i];
    if (atomic_load_explicit(&object->ready, memory_order_relaxed))
      continue;
    if (!ljp_unwind_object_read(object))
      return false;
    if (poll_time_is_up(unwind, until_ns))
      return true;
  }
  return false;
}

/* Objects may vanish while they are read, and the fault must reach our handler:
** see src/base/saferead.h. */
static void poll_allow_faults(sigset_t *before)
{
  sigset_t faults;
  sigemptyset(&faults);
  sigaddset(&faults, SIGSEGV);
  sigaddset(&faults, SIGBUS);
  pthread_sigmask(SIG_UNBLOCK, &faults, before);
}

enum ljp_status ljp_unwind_refresh(struct ljp_unwind *unwind)
{
  sigset_t before;
  poll_allow_faults(&before);
  enum ljp_status status = ljp_unwind_update_map(unwind);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  return status;
}

enum ljp_status ljp_unwind_poll(struct ljp_unwind *unwind, uint32_t budget_us)
{
  sigset_t before;
  poll_allow_faults(&before);
  atomic_store_explicit(&unwind->wants_poll, false, memory_order_relaxed);
  uint64_t start = ljp_clock_ns();
  enum ljp_status status = ljp_unwind_update_map(unwind);
  uint64_t compile_start = ljp_clock_ns();
  uint64_t until = budget_us ? start + budget_us * UINT64_C(1000) : UINT64_MAX;
  bool late = status == LJP_OK && poll_read_headers(unwind, until), more = true;
  while (status == LJP_OK && !late && more &&
         (more = poll_compile(unwind, until)) &&
         !poll_time_is_up(unwind, until))
    ;
  /* Come again soon if there is more to do. */
  if (more)
    atomic_store_explicit(&unwind->wants_poll, true, memory_order_relaxed);
  unwind->writer->stats.compile_ns += ljp_clock_ns() - compile_start;
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  return status;
}

bool ljp_unwind_finds_new(const struct ljp_unwind *unwind)
{
  return unwind->writer->finder != NULL;
}

void ljp_unwind_hurry(struct ljp_unwind *unwind, bool begin)
{
  uint32_t before = atomic_fetch_add(&unwind->hurried, begin ? 1u : -1u);
  ljp_assert(begin || before > 0);
  (void)before;
}

enum ljp_status ljp_unwind_new(struct ljp_unwind **out)
{
  /* Not aligned_alloc(): a program that has its own malloc() and free() may not
  ** have that. Then musl's fails, and libc's block would go to another free(). */
  enum { LINE = _Alignof(struct ljp_unwind) };
  char *block = calloc(1, sizeof(struct ljp_unwind) + LINE);
  enum ljp_status status = LJP_ERR_MEM;
  if (!block)
    return status;
  struct ljp_unwind *unwind = (void *)(block + LINE - (uintptr_t)block % LINE);
  unwind->block = block;
  unwind->writer = calloc(1, sizeof *unwind->writer);
  if (unwind->writer) {
    void *symbol = dlsym(RTLD_DEFAULT, "_dl_find_object");
    memcpy(&unwind->writer->finder, &symbol, sizeof symbol);
  }
  if (!unwind->writer || (status = ljp_unwind_refresh(unwind)) != LJP_OK) {
    free(unwind->writer);
    free(block);
    return status;
  }
  *out = unwind;
  return LJP_OK;
}

void ljp_unwind_free(struct ljp_unwind *unwind)
{
  if (!unwind)
    return;
  ljp_unwind_job_free(unwind->writer->job);
  unwind->writer->job = NULL;
  for (unsigned i = 0; i < LJP_UNWIND_SLOTS; i++) {
    ljp_assert(atomic_load(&unwind->slots[i].users) == 0);
    ljp_unwind_map_free(unwind, unwind->slots[i].map);
  }
  free(unwind->writer);
  free(unwind->block);
}

void ljp_unwind_after_fork(struct ljp_unwind *unwind)
{
  atomic_store(&unwind->hurried, 0);
  for (unsigned i = 0; i < LJP_UNWIND_SLOTS; i++)
    atomic_store(&unwind->slots[i].users, 0);
}

void ljp_unwind_stats(struct ljp_unwind *unwind, struct ljp_unwind_stats *out)
{
  const struct ljp_unwind_map *map = ljp_unwind_current_map(unwind);
  *out = unwind->writer->stats;
  out->objects = map->objects_count;
  for (uint32_t i = 0; i < map->objects_count; i++) {
    const struct ljp_unwind_table *table = atomic_load(&map->objects[i]->table);
    if (!table)
      continue;
    out->tables++;
    out->rows += table->rows;
    out->table_bytes += ljp_unwind_table_bytes(table);
  }
}
