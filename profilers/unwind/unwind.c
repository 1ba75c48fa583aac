/*
** The writer's side of host unwinding: follows the loaded objects, publishes
** views of them, has tables compiled, and frees what nobody uses.
**
** A view never changes once published. When the loader's counters have moved, a
** new one is made that shares the objects that stayed, put into a slot that is
** free, and made current. A slot is free when it is not current and its count
** of users is zero: no handler can come to use it any more (the argument stands
** at ljp_unwind_acquire). If none is free the change waits for the next round.
** Safety: one thread at a time; not from a signal handler.
*/
#include "profilers/unwind/priv.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

#include "src/base/saferead.h"

struct ljp_unwind_writer {
  unsigned long long adds, subs; /* the loader's, as of the current view */
  struct ljp_unwind_job *job;
  ljp_unwind_finder *finder;
  struct ljp_unwind_stats stats;
};

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

/* -- What is loaded ------------------------------------------------------ */

struct module {
  uint64_t lo, hi, header;
};

struct listing {
  struct module *modules;
  struct ljp_unwind_range *ranges; /* object: index of the module, for now */
  uint32_t modules_count, modules_room, ranges_count, ranges_room;
  unsigned long long adds, subs;
  bool out_of_memory;
};

static bool make_room(void **array, uint32_t count, uint32_t *room,
                      size_t element)
{
  if (count < *room)
    return true;
  uint32_t more = *room ? 2 * *room : 64;
  void *bigger = realloc(*array, more * element);
  if (!bigger)
    return false;
  *array = bigger;
  *room = more;
  return true;
}

static bool add_range(struct listing *listing, uint64_t lo, uint64_t hi)
{
  if (!make_room((void **)&listing->ranges, listing->ranges_count,
                 &listing->ranges_room, sizeof *listing->ranges))
    return false;
  listing->ranges[listing->ranges_count++] = (struct ljp_unwind_range){
      lo, hi, (struct ljp_unwind_object *)(uintptr_t)listing->modules_count};
  return true;
}

/* Called under the loader's lock: notes numbers, reads no object. */
static int list_one(struct dl_phdr_info *info, size_t size, void *data)
{
  struct listing *listing = data;
  struct module module = {UINT64_MAX, 0, 0};
  bool ok = make_room((void **)&listing->modules, listing->modules_count,
                      &listing->modules_room, sizeof *listing->modules);
  (void)size;
  listing->adds = info->dlpi_adds;
  listing->subs = info->dlpi_subs;
  for (int i = 0; ok && i < info->dlpi_phnum; i++) {
    const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
    uint64_t lo = info->dlpi_addr + segment->p_vaddr;
    if (segment->p_type == PT_LOAD && segment->p_memsz) {
      uint64_t hi = lo + segment->p_memsz;
      module.lo = lo < module.lo ? lo : module.lo;
      module.hi = hi > module.hi ? hi : module.hi;
      if (segment->p_flags & PF_X)
        ok = add_range(listing, lo, hi);
    } else if (segment->p_type == PT_GNU_EH_FRAME)
      module.header = lo;
  }
  if (ok)
    listing->modules[listing->modules_count++] = module;
  listing->out_of_memory = !ok;
  return !ok;
}

static int look_at_counters(struct dl_phdr_info *info, size_t size, void *data)
{
  struct listing *listing = data;
  (void)size;
  listing->adds = info->dlpi_adds;
  listing->subs = info->dlpi_subs;
  return 1;
}

/* -- Views --------------------------------------------------------------- */

static void free_view(struct ljp_unwind *unwind, struct ljp_unwind_view *view)
{
  struct ljp_unwind_writer *writer = unwind->writer;
  if (!view)
    return;
  for (uint32_t i = 0; i < view->objects_count; i++) {
    struct ljp_unwind_object *object = view->objects[i];
    if (--object->refs)
      continue;
    if (writer->job && ljp_unwind_job_object(writer->job) == object) {
      ljp_unwind_job_free(writer->job);
      writer->job = NULL;
    }
    ljp_unwind_object_free(object);
  }
  free(view->objects);
  free(view->ranges);
  free(view);
}

static struct ljp_unwind_view *current_view(struct ljp_unwind *unwind)
{
  return unwind->slots[atomic_load(&unwind->current)].view;
}

static bool still_there(const struct ljp_unwind_object *object,
                        const struct module *module)
{
  uint64_t word;
  if (object->lo != module->lo || object->hi != module->hi)
    return false;
  if (!object->header)
    return !module->header;
  if (!atomic_load_explicit(&object->ready, memory_order_relaxed))
    return object->header == module->header;
  return object->header == module->header &&
         ljp_safe_load(
             (const void *)(uintptr_t)ljp_unwind_witness_at(object->header),
             &word) &&
         word == object->witness;
}

static struct ljp_unwind_object *
share_or_make(const struct ljp_unwind_view *old, const struct module *module)
{
  for (uint32_t i = 0; old && i < old->objects_count; i++)
    if (still_there(old->objects[i], module))
      return old->objects[i];
  return ljp_unwind_object_new(module->lo, module->hi, module->header);
}

static int by_address(const void *a, const void *b)
{
  uint64_t x = ((const struct ljp_unwind_range *)a)->lo;
  uint64_t y = ((const struct ljp_unwind_range *)b)->lo;
  return (x > y) - (x < y);
}

/* Sorts the ranges; drops what overlaps (never seen, but a step relies on
** their being disjoint). */
static uint32_t tidy(struct ljp_unwind_range *ranges, uint32_t count)
{
  uint32_t kept = 0;
  if (count)
    qsort(ranges, count, sizeof *ranges, by_address);
  for (uint32_t i = 0; i < count; i++)
    if (ranges[i].lo < ranges[i].hi &&
        (!kept || ranges[i].lo >= ranges[kept - 1].hi))
      ranges[kept++] = ranges[i];
  return kept;
}

/* Read at once are the headers of those that surely matter, and were touched
** before: the program, libc, our own. Those of the others may have to come from the
** disk: the writer reads them in its rounds. */
static bool read_at_once(const struct ljp_unwind *unwind,
                         const struct ljp_unwind_object *object)
{
  const uint64_t known[] = {getauxval(AT_ENTRY), (uintptr_t)&read_at_once,
                            (uintptr_t)&memcpy};
  bool matters = !unwind->writer->finder;
  for (unsigned i = 0; i < sizeof known / sizeof *known; i++)
    matters = matters || (known[i] >= object->lo && known[i] < object->hi);
  return matters;
}

/* Takes over the listing's ranges. */
static struct ljp_unwind_view *make_view(struct ljp_unwind *unwind,
                                         struct listing *listing)
{
  struct ljp_unwind_view *view = calloc(1, sizeof *view);
  if (!view)
    return NULL;
  view->wants_poll = &unwind->wants_poll;
  view->finder = unwind->writer->finder;
  view->objects = calloc(listing->modules_count + 1, sizeof *view->objects);
  if (!view->objects)
    goto fail;
  for (uint32_t i = 0; i < listing->modules_count; i++) {
    struct ljp_unwind_object *object =
        share_or_make(current_view(unwind), &listing->modules[i]);
    if (!object)
      goto fail;
    object->refs++;
    view->objects[view->objects_count++] = object;
    if (read_at_once(unwind, object) && !ljp_unwind_object_read(object))
      goto fail;
  }
  view->ranges = listing->ranges;
  listing->ranges = NULL;
  for (uint32_t i = 0; i < listing->ranges_count; i++)
    view->ranges[i].object = view->objects[(uintptr_t)view->ranges[i].object];
  view->ranges_count = tidy(view->ranges, listing->ranges_count);
  return view;
fail:
  free_view(unwind, view);
  return NULL;
}

/* Frees retired views that no handler uses; returns a free slot or -1. */
static int sweep(struct ljp_unwind *unwind)
{
  unsigned current = atomic_load(&unwind->current);
  int free_slot = -1;
  for (unsigned i = 0; i < LJP_UNWIND_SLOTS; i++) {
    struct ljp_unwind_slot *slot = &unwind->slots[i];
    if (i == current)
      continue;
    /* seq_cst: see ljp_unwind_acquire. */
    if (atomic_load_explicit(&slot->users, memory_order_seq_cst)) {
      unwind->writer->stats.retired_busy++;
      continue;
    }
    free_view(unwind, slot->view);
    slot->view = NULL;
    free_slot = (int)i;
  }
  return free_slot;
}

static enum ljp_status refresh(struct ljp_unwind *unwind)
{
  struct ljp_unwind_writer *writer = unwind->writer;
  struct listing listing = {0};
  enum ljp_status status = LJP_OK;

  int slot = sweep(unwind);
  dl_iterate_phdr(look_at_counters, &listing);
  if (current_view(unwind) && listing.adds == writer->adds &&
      listing.subs == writer->subs)
    return LJP_OK;
  if (slot < 0)
    return LJP_OK;
  dl_iterate_phdr(list_one, &listing);
  struct ljp_unwind_view *view =
      listing.out_of_memory ? NULL : make_view(unwind, &listing);
  if (view) {
    /* Of all unwinders there ever were: a walk may be remembered. */
    static _Atomic uint64_t serial;
    view->slot = (unsigned)slot;
    view->serial = atomic_fetch_add(&serial, 1) + 1;
    unwind->slots[slot].view = view;
    atomic_store_explicit(&unwind->current, (unsigned)slot,
                          memory_order_seq_cst);
    atomic_store_explicit(&unwind->serial, view->serial, memory_order_release);
    writer->adds = listing.adds;
    writer->subs = listing.subs;
    writer->stats.views++;
  } else
    status = LJP_ERR_MEM;
  free(listing.modules);
  free(listing.ranges);
  return status;
}

/* -- Tables -------------------------------------------------------------- */

static bool in_view(const struct ljp_unwind_view *view,
                    const struct ljp_unwind_object *object)
{
  for (uint32_t i = 0; i < view->objects_count; i++)
    if (view->objects[i] == object)
      return true;
  return false;
}

static struct ljp_unwind_object *
wanted_object(const struct ljp_unwind_view *view)
{
  for (uint32_t i = 0; i < view->objects_count; i++) {
    struct ljp_unwind_object *object = view->objects[i];
    if (atomic_load_explicit(&object->wanted, memory_order_relaxed) &&
        !atomic_load(&object->table) && !atomic_load(&object->failed))
      return object;
  }
  return NULL;
}

static void give_up(struct ljp_unwind *unwind, struct ljp_unwind_object *object)
{
  atomic_store(&object->failed, true);
  unwind->writer->stats.failed++;
}

static bool time_is_up(const struct ljp_unwind *unwind, uint64_t until_ns)
{
  return atomic_load_explicit(&unwind->hurried, memory_order_relaxed) ||
         ljp_unwind_now_ns() >= until_ns;
}

/* True if there may be more to do. */
static bool compile_some(struct ljp_unwind *unwind, uint64_t until_ns)
{
  struct ljp_unwind_writer *writer = unwind->writer;
  struct ljp_unwind_object *object;
  struct ljp_unwind_table *table;
  if (!writer->job) {
    object = wanted_object(current_view(unwind));
    if (!object)
      return false;
    if (!ljp_unwind_object_read(object)) {
      give_up(unwind, object);
      return true;
    }
    writer->job = ljp_unwind_job_new(object);
    if (!writer->job) {
      give_up(unwind, object);
      return true;
    }
  }
  object = ljp_unwind_job_object(writer->job);
  if (!ljp_unwind_job_run(writer->job, until_ns, &unwind->hurried, &table))
    return true;
  writer->job = NULL;
  /* What was read may have been another object by the end: look again. The
  ** object itself lives on as long as a view has it. */
  object->refs++;
  refresh(unwind);
  if (!table)
    give_up(unwind, object);
  else if (in_view(current_view(unwind), object))
    atomic_store_explicit(&object->table, table, memory_order_release);
  else
    ljp_unwind_table_free(table);
  if (--object->refs == 0)
    ljp_unwind_object_free(object);
  return true;
}

/* The headers that have not been read yet. */
static bool read_headers(struct ljp_unwind *unwind, uint64_t until_ns)
{
  struct ljp_unwind_view *view = current_view(unwind);
  for (uint32_t i = 0; i < view->objects_count; i++) {
    struct ljp_unwind_object *object = view->objects[i];
    if (atomic_load_explicit(&object->ready, memory_order_relaxed))
      continue;
    if (!ljp_unwind_object_read(object))
      return false;
    if (time_is_up(unwind, until_ns))
      return true;
  }
  return false;
}

/* Objects may vanish while they are read: see src/base/saferead.h. */
static void allow_faults(sigset_t *before)
{
  sigset_t faults;
  sigemptyset(&faults);
  sigaddset(&faults, SIGSEGV);
  sigaddset(&faults, SIGBUS);
  pthread_sigmask(SIG_UNBLOCK, &faults, before);
}

enum ljp_status ljp_unwind_look(struct ljp_unwind *unwind)
{
  sigset_t before;
  allow_faults(&before);
  enum ljp_status status = refresh(unwind);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  return status;
}

enum ljp_status ljp_unwind_poll(struct ljp_unwind *unwind, uint32_t budget_us)
{
  sigset_t before;
  allow_faults(&before);
  atomic_store_explicit(&unwind->wants_poll, false, memory_order_relaxed);
  uint64_t start = ljp_unwind_now_ns();
  enum ljp_status status = refresh(unwind);
  uint64_t compile_start = ljp_unwind_now_ns();
  uint64_t until = budget_us ? start + budget_us * UINT64_C(1000) : UINT64_MAX;
  bool late = status == LJP_OK && read_headers(unwind, until), more = true;
  while (status == LJP_OK && !late && more &&
         (more = compile_some(unwind, until)) && !time_is_up(unwind, until))
    ;
  /* An unfinished job is a reason to come again soon. */
  if (more)
    atomic_store_explicit(&unwind->wants_poll, true, memory_order_relaxed);
  unwind->writer->stats.compile_ns += ljp_unwind_now_ns() - compile_start;
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  return status;
}

void ljp_unwind_hurry(struct ljp_unwind *unwind, bool begin)
{
  atomic_fetch_add(&unwind->hurried, begin ? 1u : -1u);
}

enum ljp_status ljp_unwind_new(struct ljp_unwind **out)
{
  struct ljp_unwind *unwind = aligned_alloc(64, sizeof *unwind);
  enum ljp_status status = LJP_ERR_MEM;
  if (!unwind)
    return status;
  memset(unwind, 0, sizeof *unwind);
  unwind->writer = calloc(1, sizeof *unwind->writer);
  if (unwind->writer) {
    void *symbol = dlsym(RTLD_DEFAULT, "_dl_find_object");
    memcpy(&unwind->writer->finder, &symbol, sizeof symbol);
  }
  if (!unwind->writer || (status = ljp_unwind_look(unwind)) != LJP_OK) {
    free(unwind->writer);
    free(unwind);
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
  for (unsigned i = 0; i < LJP_UNWIND_SLOTS; i++)
    free_view(unwind, unwind->slots[i].view);
  free(unwind->writer);
  free(unwind);
}

void ljp_unwind_after_fork(struct ljp_unwind *unwind)
{
  atomic_store(&unwind->hurried, 0);
  for (unsigned i = 0; i < LJP_UNWIND_SLOTS; i++)
    atomic_store(&unwind->slots[i].users, 0);
}

void ljp_unwind_stats(struct ljp_unwind *unwind, struct ljp_unwind_stats *out)
{
  const struct ljp_unwind_view *view = current_view(unwind);
  *out = unwind->writer->stats;
  out->objects = view->objects_count;
  for (uint32_t i = 0; i < view->objects_count; i++) {
    const struct ljp_unwind_table *table =
        atomic_load(&view->objects[i]->table);
    if (!table)
      continue;
    out->tables++;
    out->rows += table->rows;
    out->table_bytes +=
        sizeof *table +
        (uint64_t)table->rows * (sizeof *table->pc + sizeof *table->rule) +
        ((uint64_t)table->buckets + 1) * sizeof *table->start +
        (uint64_t)table->rules_used * sizeof *table->rules;
  }
}
