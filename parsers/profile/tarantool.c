/*
** The pass over a file of Tarantool's profilers: its events become rows of the
** profile, without a detour over a stream of ours.
**
** Equal samples have equal bytes. So a sample that was seen before costs a
** search for its bytes, not a walk: `samples` leads from them to the row. A
** memory event has a place, and `places` leads from that to the row. What both
** remember is void when a symbol changes its meaning (generation). One thread a
** profile.
*/
#include <stdio.h>
#include <string.h>

#include "parsers/base/array.h"
#include "parsers/profile/intern.h"
#include "parsers/profile/pass.h"
#include "parsers/profile/points.h"
#include "parsers/profile/tarantool_stack.h"
#include "src/base/assert.h"

#ifdef LJP_DEBUG
#define SAMPLES_KEPT_BYTES (1u << 12)
#define PLACES 16u
#define PLACES_NEAR 2u
#else
#define SAMPLES_KEPT_BYTES (64u << 20)
#define PLACES (1u << 20)
#define PLACES_NEAR 1024u
#endif

/* A sample that was seen. */
struct seen_sample {
  uint32_t bytes; /* Where its bytes are kept. */
  uint32_t size, row;
  uint8_t cut;
};

/* The samples that were seen since the generation changed. */
struct seen_samples {
  struct seen_sample *list;
  uint32_t count, room;
  struct ljp_index index;
  uint8_t *bytes;
  uint32_t bytes_used, bytes_room;
};

/* The place of a memory event. */
struct seen_place {
  uint64_t place, line;
  uint32_t source;
  uint32_t row, memory;
};

/* The places that were seen since the generation changed, at most PLACES. */
struct seen_places {
  struct seen_place *list;
  uint32_t count, room;
  struct ljp_index index;
  /* Copies, by the low bits of the hash; source 0: none. Most events are at few
  ** places, and these are in the processor's cache. */
  struct seen_place near[PLACES_NEAR];
};

struct tarantool_pass {
  struct ljp_profile *p;
  struct ljp_tarantool_symbols symbols;
  struct ljp_tarantool_stacks stacks;
  struct seen_samples samples;
  struct seen_places places;
  uint32_t generation; /* Of which samples and places are valid. */
};

static void tarantool_forget(struct tarantool_pass *t)
{
  ljp_index_fini(&t->samples.index);
  ljp_index_fini(&t->places.index);
  t->samples.count = t->samples.bytes_used = t->places.count = 0;
  memset(t->places.near, 0, sizeof t->places.near);
  t->generation = t->symbols.generation;
}

static enum ljp_status tarantool_row(struct ljp_profile *p, uint32_t node,
                                     uint8_t kind, uint8_t state, uint8_t cut,
                                     uint32_t *row)
{
  const struct ljp_profile_context context = {
      .kind = kind, .state = state, .cut = cut};
  uint32_t id;
  enum ljp_status status = ljp_profile_intern_context(p, &context, &id);
  return status ? status : ljp_profile_intern_row(p, node, id, row);
}

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

/* Keeps a sample whose row is known, if there is room for it. */
static enum ljp_status tarantool_keep(struct seen_samples *s,
                                      struct ljp_index_slot *slot,
                                      uint32_t hash,
                                      const struct ljp_tarantool_sample *sample,
                                      uint32_t row, uint8_t cut)
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
  s->list[s->count++] = (struct seen_sample){
      .bytes = s->bytes_used, .size = sample->size, .row = row, .cut = cut};
  s->bytes_used += sample->size;
  return LJP_OK;
}

static enum ljp_status
tarantool_take_sample(struct tarantool_pass *t,
                      const struct ljp_tarantool_sample *sample)
{
  struct seen_samples *s = &t->samples;
  struct ljp_profile *p = t->p;
  enum ljp_status status;
  uint32_t row = UINT32_MAX, node;
  uint8_t cut = 0;
  if (LJP_UNLIKELY(t->generation != t->symbols.generation))
    tarantool_forget(t);
  if (!ljp_index_reserve(&s->index))
    return LJP_ERR_MEM;
  uint32_t hash = tarantool_hash(p, sample->bytes, sample->size);
  struct ljp_index_slot *slot = ljp_index_at(&s->index, hash);
  for (; slot->item; slot = ljp_index_next(&s->index, slot)) {
    const struct seen_sample *old = &s->list[slot->item - 1];
    if (LJP_LIKELY(slot->hash == hash && old->size == sample->size &&
                   memcmp(s->bytes + old->bytes, sample->bytes, sample->size) ==
                       0)) {
      row = old->row;
      cut = old->cut;
      break;
    }
  }
  if (LJP_UNLIKELY(row == UINT32_MAX)) {
    if ((status = ljp_tarantool_stack(&t->stacks, &t->symbols, p, sample, &node,
                                      &cut)) ||
        (status = tarantool_row(p, node, LJP_PRODUCER_CPU,
                                tarantool_state(sample->state), cut, &row)))
      return status;
    if ((status = tarantool_keep(s, slot, hash, sample, row, cut)))
      return status;
  }
  p->rows[row].count++;
  p->rows[row].weight++;
  p->totals.cut[cut]++;
  p->totals.too_many += p->rows[row].node == LJP_NODE_TOO_MANY;
  p->totals.no_stack += p->rows[row].node == LJP_NODE_NO_STACK;
  return LJP_OK;
}

/* -- Memory events --------------------------------------------------------- */

static enum ljp_status
tarantool_place_frame(struct tarantool_pass *t,
                      const struct ljp_tarantool_memory *m, uint32_t *frame)
{
  uint64_t start;
  switch (m->source) {
  case LJP_LJM_LFUNC:
    return ljp_tarantool_frame_lua(&t->symbols, t->p, m->place, m->line, frame);
  case LJP_LJM_CFUNC:
    return ljp_tarantool_frame_c(&t->symbols, t->p, LJP_FRAME_CFUNC, m->place,
                                 frame, &start);
  case LJP_LJM_TRACE:
    return ljp_tarantool_frame_trace(&t->symbols, t->p, m->place, 0, 0, frame);
  default:
    return ljp_tarantool_frame_internal(t->p, frame);
  }
}

/* Adds a place with its row. The file has the VM's state only where it is a
** trace. */
static enum ljp_status tarantool_add_place(struct tarantool_pass *t,
                                           const struct ljp_tarantool_memory *m,
                                           struct ljp_index_slot *slot,
                                           uint32_t hash)
{
  struct seen_place seen = {
      .place = m->place, .line = m->line, .source = m->source};
  struct seen_places *places = &t->places;
  struct ljp_profile *p = t->p;
  uint32_t frame, node = LJP_NODE_TOO_MANY;
  enum ljp_status status = tarantool_place_frame(t, m, &frame);
  if (status)
    return status;
  if (p->frames[frame].kind != LJP_FRAME_TOO_MANY &&
      (status = ljp_profile_intern_node(p, 0, frame, &node)))
    return status;
  if ((status = tarantool_row(p, node, LJP_PRODUCER_MEMORY,
                              m->source == LJP_LJM_TRACE ? LJP_VMSTATE_TRACE
                                                         : LJP_VMSTATE_UNKNOWN,
                              0, &seen.row)) ||
      (status = ljp_profile_intern_memory(p, seen.row, &seen.memory)) ||
      (status = ljp_profile_reserve_sites(p)))
    return status;
  if (!ljp_array_reserve(&places->list, places->count, &places->room,
                         sizeof *places->list))
    return LJP_ERR_MEM;
  ljp_index_put(&places->index, slot, hash, places->count);
  places->list[places->count++] = seen;
  return LJP_OK;
}

static inline bool tarantool_is_place(const struct seen_place *seen,
                                      const struct ljp_tarantool_memory *m)
{
  return seen->place == m->place && seen->line == m->line &&
         seen->source == m->source;
}

/* Finds the place of an event, which is valid until the next one. */
static inline enum ljp_status
tarantool_find_place(struct tarantool_pass *t,
                     const struct ljp_tarantool_memory *m,
                     const struct seen_place **seen)
{
  struct seen_places *places = &t->places;
  enum ljp_status status;
  if (LJP_UNLIKELY(t->generation != t->symbols.generation ||
                   places->count >= PLACES))
    tarantool_forget(t);
  uint64_t h = ljp_hash_mix(t->p->strings.seed, m->place << 3 | m->source);
  uint32_t hash = ljp_hash_finish(ljp_hash_mix(h, m->line));
  struct seen_place *near = &places->near[hash % PLACES_NEAR];
  *seen = near;
  if (LJP_LIKELY(tarantool_is_place(near, m)))
    return LJP_OK;
  if (LJP_UNLIKELY(!ljp_index_reserve(&places->index)))
    return LJP_ERR_MEM;
  struct ljp_index_slot *slot = ljp_index_at(&places->index, hash);
  for (; slot->item; slot = ljp_index_next(&places->index, slot))
    if (LJP_LIKELY(slot->hash == hash &&
                   tarantool_is_place(&places->list[slot->item - 1], m)))
      break;
  if (!slot->item && (status = tarantool_add_place(t, m, slot, hash)))
    return status;
  *near = places->list[slot->item - 1];
  return LJP_OK;
}

static enum ljp_status
tarantool_take_memory(struct tarantool_pass *t,
                      const struct ljp_tarantool_memory *m)
{
  struct ljp_profile *p = t->p;
  const struct seen_place *seen;
  enum ljp_status status = tarantool_find_place(t, m, &seen);
  if (LJP_UNLIKELY(status))
    return status;
  struct ljp_profile_site *site = &p->sites[seen->memory];
  struct ljp_rec_mem mem = {.address = m->address,
                            .size = m->size,
                            .old_address = m->old_address,
                            .old_size = m->old_size,
                            .op = LJP_MEM_ALLOC};
  if (m->kind == LJP_LJM_FREE) {
    mem.op = LJP_MEM_FREE;
    mem.address = m->old_address;
    mem.size = m->old_size;
    mem.old_address = mem.old_size = 0;
    site->frees++;
    site->free_bytes += m->old_size;
  } else if (!m->address && m->size) { /* The allocator had none. */
    mem.flags = LJP_MEM_FAILED;
  } else if (m->kind == LJP_LJM_REALLOC) {
    mem.op = LJP_MEM_REALLOC;
    site->realloc_bytes += m->size;
    site->realloc_old_bytes += m->old_size;
  }
  return ljp_profile_take_memory_at(p, &mem, seen->row);
}

/* -- The pass -------------------------------------------------------------- */

static enum ljp_status tarantool_read(struct tarantool_pass *t,
                                      struct ljp_tarantool_reader *reader)
{
  const struct ljp_tarantool_event *e;
  struct ljp_profile *p = t->p;
  enum ljp_status status;
  uint64_t told = 0;
  while (!(status = ljp_tarantool_next(reader, &e))) {
    switch (e->what) {
    case LJP_TARANTOOL_HEAD:
      status = ljp_tarantool_symbols_whole(&t->symbols, p);
      break;
    case LJP_TARANTOOL_MEMORY:
      if (!p->options.no_memory)
        status = tarantool_take_memory(t, &e->u.memory);
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
      return ljp_profile_flush_memory(p);
    }
    if (LJP_UNLIKELY(status)) {
      snprintf(p->error, sizeof p->error, "%s", ljp_status_text(status));
      return status;
    }
    if (LJP_UNLIKELY(e->offset - told >= 1u << 20) && p->options.progress) {
      told = e->offset;
      p->options.progress(p->options.progress_ctx, told);
    }
  }
  snprintf(p->error, sizeof p->error, "%s%s",
           status == LJP_ERR_FORMAT || status == LJP_ERR_VERSION
               ? "a file of Tarantool's profilers: "
               : "",
           reader->error);
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

enum ljp_status ljp_profile_add_tarantool(struct ljp_profile *p,
                                          struct ljp_tarantool_reader *reader)
{
  bool points = p->options.points;
  enum ljp_status status = tarantool_check_options(p);
  struct tarantool_pass *t = NULL;
  ljp_assert(!p->pass->begun);
  if (status)
    return status;
  if (!(t = calloc(1, sizeof *t))) {
    snprintf(p->error, sizeof p->error, "%s", ljp_status_text(LJP_ERR_MEM));
    return LJP_ERR_MEM;
  }
  t->p = p;
  p->pass->begun = true;
  p->source_count = 1;
  p->options.points = false; /* They are made at the end. */
  status = tarantool_read(t, reader);
  p->options.points = points;
  p->recorded_by =
      reader->memory ? "Tarantool's memprof" : "Tarantool's sysprof";
  if (!status && !reader->whole)
    snprintf(p->pass->ends, sizeof p->pass->ends, "%s", reader->error);
  else if (!status && reader->rest)
    snprintf(p->pass->ends, sizeof p->pass->ends,
             "%llu bytes after the end of the events were not read",
             (unsigned long long)reader->rest);
  if (!status && ((status = ljp_tarantool_symbols_note(&t->symbols, p)) ||
                  (points && (status = tarantool_add_points(p)))))
    snprintf(p->error, sizeof p->error, "%s", ljp_status_text(status));
  ljp_tarantool_symbols_fini(&t->symbols);
  tarantool_forget(t);
  free(t->places.list);
  free(t->samples.list);
  free(t->samples.bytes);
  free(t);
  return status;
}
