/*
** The pass over a file of Tarantool's profilers: its events become rows of the
** profile, without a detour over a stream of ours.
**
** Equal samples have equal bytes. So a sample that was seen before costs a
** search for its bytes, not a walk over its stack: `seen` leads from them to the
** row. If symbols have changed since, the definitions of its frames are looked
** at first. Memory events go to tarantool_heap.c. One thread a profile.
*/
#include <stdio.h>
#include <string.h>

#include "parsers/base/array.h"
#include "parsers/profile/intern.h"
#include "parsers/profile/pass.h"
#include "parsers/profile/points.h"
#include "parsers/profile/tarantool_heap.h"
#include "parsers/profile/tarantool_stack.h"
#include "src/base/assert.h"

#ifdef LJP_DEBUG
#define SAMPLES_KEPT_BYTES (1u << 12)
#else
#define SAMPLES_KEPT_BYTES (64u << 20)
#endif

/* A sample that was seen. */
struct seen_sample {
  uint64_t generation; /* Of the symbols that row and cut are of. */
  uint32_t bytes;      /* Where its bytes are kept. */
  uint32_t size, row;
  uint8_t cut;
};

struct seen_samples {
  struct seen_sample *list;
  uint32_t count, room;
  struct ljp_index index;
  uint8_t *bytes;
  uint32_t bytes_used, bytes_room;
};

struct tarantool_pass {
  struct ljp_profile *p;
  struct ljp_tarantool_symbols symbols;
  struct ljp_tarantool_stacks stacks;
  struct seen_samples seen;
  struct ljp_tarantool_heap heap;
};

/* -- Samples --------------------------------------------------------------- */

static uint8_t tarantool_state(unsigned state)
{
  if (state == LJP_LJP_LFUNC)
    return LJP_STATE_LUA;
  switch (state) {
#define LJP_X(name, number, text, ours)                                        \
  case number:                                                                 \
    return LJP_VMSTATE_##ours;
    LJP_LJP_STATE_LIST(LJP_X)
#undef LJP_X
  }
  return LJP_VMSTATE_UNKNOWN;
}

/* The hash of a sample's bytes. */
static uint32_t tarantool_hash(const struct ljp_profile *p,
                               const uint8_t *bytes, uint32_t size)
{
  uint64_t h = ljp_hash_mix(p->strings.seed, size), word;
  for (; size >= sizeof word; bytes += sizeof word, size -= sizeof word) {
    memcpy(&word, bytes, sizeof word);
    h = ljp_hash_mix(h, word);
  }
  if (size) {
    word = 0;
    memcpy(&word, bytes, size);
    h = ljp_hash_mix(h, word);
  }
  return ljp_hash_finish(h);
}

/* Keeps a sample, if there is room for it. */
static enum ljp_status tarantool_keep(struct seen_samples *s,
                                      struct ljp_index_slot *slot,
                                      uint32_t hash,
                                      const struct ljp_tarantool_sample *sample,
                                      const struct seen_sample *seen)
{
  if (sample->size > SAMPLES_KEPT_BYTES - s->bytes_used)
    return LJP_OK;
  while (s->bytes_room - s->bytes_used < sample->size)
    if (!ljp_array_reserve(&s->bytes, s->bytes_room, &s->bytes_room, 1))
      return LJP_ERR_MEM;
  if (!ljp_array_reserve(&s->list, s->count, &s->room, sizeof *s->list))
    return LJP_ERR_MEM;
  memcpy(s->bytes + s->bytes_used, sample->bytes, sample->size);
  ljp_index_put(&s->index, slot, hash, s->count);
  s->list[s->count] = *seen;
  s->list[s->count].bytes = s->bytes_used;
  s->list[s->count++].size = sample->size;
  s->bytes_used += sample->size;
  return LJP_OK;
}

/* Finds the row of a sample by its stack. */
static enum ljp_status tarantool_walk(struct tarantool_pass *t,
                                      const struct ljp_tarantool_sample *sample,
                                      struct seen_sample *seen)
{
  struct ljp_profile_context context = {
      .kind = LJP_PRODUCER_CPU, .state = tarantool_state(sample->state)};
  struct ljp_profile *p = t->p;
  uint32_t node, id;
  seen->generation = t->symbols.generation;
  enum ljp_status status = ljp_tarantool_stack(&t->stacks, &t->symbols, p,
                                               sample, &node, &seen->cut);
  if (status)
    return status;
  context.cut = seen->cut;
  status = ljp_profile_intern_context(p, &context, &id);
  return status ? status : ljp_profile_intern_row(p, node, id, &seen->row);
}

static enum ljp_status
tarantool_take_sample(struct tarantool_pass *t,
                      const struct ljp_tarantool_sample *sample)
{
  struct seen_samples *s = &t->seen;
  struct seen_sample fresh = {0}, *seen = &fresh;
  struct ljp_profile *p = t->p;
  enum ljp_status status;
  if (!ljp_index_reserve(&s->index))
    return LJP_ERR_MEM;
  uint32_t hash = tarantool_hash(p, sample->bytes, sample->size);
  struct ljp_index_slot *slot = ljp_index_at(&s->index, hash);
  for (; slot->item; slot = ljp_index_next(&s->index, slot)) {
    struct seen_sample *old = &s->list[slot->item - 1];
    if (LJP_LIKELY(slot->hash == hash && old->size == sample->size &&
                   memcmp(s->bytes + old->bytes, sample->bytes, sample->size) ==
                       0)) {
      seen = old;
      break;
    }
  }
  if (seen == &fresh) {
    if ((status = tarantool_walk(t, sample, seen)) ||
        (status = tarantool_keep(s, slot, hash, sample, seen)))
      return status;
  } else if (LJP_UNLIKELY(seen->generation != t->symbols.generation)) {
    if (ljp_tarantool_symbols_hold(&t->symbols, p, sample, seen->generation))
      seen->generation = t->symbols.generation;
    else if ((status = tarantool_walk(t, sample, seen)))
      return status;
  }
  struct ljp_profile_row *row = &p->rows[seen->row];
  row->count++;
  row->weight++;
  p->totals.cut[seen->cut]++;
  p->totals.too_many += row->node == LJP_NODE_TOO_MANY;
  p->totals.no_stack += row->node == LJP_NODE_NO_STACK;
  return LJP_OK;
}

/* -- The pass -------------------------------------------------------------- */

static enum ljp_status tarantool_read(struct tarantool_pass *t,
                                      struct ljp_tarantool_reader *reader)
{
  const struct ljp_tarantool_event *e;
  struct ljp_profile *p = t->p;
  enum ljp_status status;
  uint64_t told = 0;
  for (;;) {
    if ((status = ljp_tarantool_heap_read(&t->heap, reader)) ||
        (status = ljp_tarantool_next(reader, &e)))
      break;
    switch (e->what) {
    case LJP_TARANTOOL_HEAD:
      status = ljp_tarantool_symbols_whole(&t->symbols, p);
      break;
    case LJP_TARANTOOL_MEMORY:
      if (!p->options.no_memory)
        status = ljp_tarantool_heap_take(&t->heap, &e->u.memory);
      break;
    case LJP_TARANTOOL_SAMPLE:
      if (!p->options.no_samples)
        status = tarantool_take_sample(t, &e->u.sample);
      break;
    case LJP_TARANTOOL_SYMBOL:
      status = ljp_tarantool_symbols_add(&t->symbols, p, &e->u.symbol);
      break;
    case LJP_TARANTOOL_FINISH:
      p->source_bytes = e->offset;
      return LJP_OK;
    }
    if (LJP_UNLIKELY(status))
      break;
    if (LJP_UNLIKELY(e->offset - told >= 1u << 20) && p->options.progress) {
      told = e->offset;
      p->options.progress(p->options.progress_ctx, told);
    }
  }
  snprintf(p->error, sizeof p->error, "%s%s",
           status == LJP_ERR_FORMAT || status == LJP_ERR_VERSION
               ? "a file of Tarantool's profilers: "
               : "",
           status == LJP_ERR_MEM ? ljp_status_text(status) : reader->error);
  return status;
}

/* Options that select what such files do not have. */
static enum ljp_status tarantool_check_options(struct ljp_profile *p)
{
  const char *option = p->pass->filters_time ? "times"
                       : p->options.thread   ? "threads"
                                             : NULL;
  if (!option)
    return LJP_OK;
  snprintf(p->error, sizeof p->error,
           "a file of Tarantool's profilers: it has no %s to select by",
           option);
  return LJP_ERR_USE;
}

/* What views that show times get: everything at time 0. */
static enum ljp_status tarantool_add_points(struct ljp_profile *p)
{
  enum ljp_status status = LJP_OK;
  for (uint32_t i = 0; i < p->row_count && !status; i++) {
    const struct ljp_profile_row *row = &p->rows[i];
    if (row->count || row->weight)
      status = ljp_profile_add_point(p, 0, i, row->count, row->weight, false);
  }
  return status;
}

/* The whole file was read, or what can be read of it. */
static enum ljp_status
tarantool_finish(struct tarantool_pass *t,
                 const struct ljp_tarantool_reader *reader)
{
  struct ljp_profile *p = t->p;
  enum ljp_status status;
  if (!reader->whole)
    snprintf(p->pass->ends, sizeof p->pass->ends, "%s", reader->error);
  else if (reader->rest)
    snprintf(p->pass->ends, sizeof p->pass->ends,
             "%llu bytes after the end of the events were not read",
             (unsigned long long)reader->rest);
  if ((status = ljp_tarantool_heap_finish(&t->heap)) ||
      (status = ljp_tarantool_symbols_note(&t->symbols, p)) ||
      (p->options.points && (status = tarantool_add_points(p))))
    snprintf(p->error, sizeof p->error, "%s", ljp_status_text(status));
  return status;
}

enum ljp_status ljp_profile_add_tarantool(struct ljp_profile *p,
                                          struct ljp_tarantool_reader *reader)
{
  enum ljp_status status = tarantool_check_options(p);
  struct tarantool_pass *t = NULL;
  ljp_assert(!p->pass->begun);
  if (status)
    return status;
  if (!(t = calloc(1, sizeof *t)) ||
      ljp_tarantool_heap_init(&t->heap, p, &t->symbols)) {
    snprintf(p->error, sizeof p->error, "%s", ljp_status_text(LJP_ERR_MEM));
    if (t)
      ljp_tarantool_heap_fini(&t->heap);
    free(t);
    return LJP_ERR_MEM;
  }
  t->p = p;
  p->pass->begun = true;
  p->source_count = 1;
  if (!(status = tarantool_read(t, reader)))
    status = tarantool_finish(t, reader);
  p->recorded_by =
      reader->memory ? "Tarantool's memprof" : "Tarantool's sysprof";
  ljp_tarantool_symbols_fini(&t->symbols);
  ljp_tarantool_heap_fini(&t->heap);
  ljp_index_fini(&t->seen.index);
  free(t->seen.list);
  free(t->seen.bytes);
  free(t);
  return status;
}
