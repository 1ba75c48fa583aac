/*
** Counts memory events in batches: an event needs a place, rows and a slot of
** the map of blocks, at addresses that cannot be foreseen. Each step prefetches
** what the next step reads. One thread a heap.
*/
#include "parsers/profile/tarantool_heap.h"

#include "parsers/profile/intern.h"
#include "parsers/profile/points.h"

#ifdef LJP_DEBUG
#define PLACES 16u
#else
#define PLACES (1u << 20)
#endif

enum ljp_status ljp_tarantool_heap_init(struct ljp_tarantool_heap *h,
                                        struct ljp_profile *p,
                                        struct ljp_tarantool_symbols *symbols)
{
  *h =
      (struct ljp_tarantool_heap){.p = p, .symbols = symbols, .sums = {.p = p}};
  enum ljp_status status = ljp_block_map_init(&h->blocks);
  if (!status)
    status = ljp_tarantool_places_init(&h->places, p->strings.seed);
  if (!status)
    status = ljp_tarantool_places_init(&h->meanings, p->strings.seed);
  return status;
}

void ljp_tarantool_heap_fini(struct ljp_tarantool_heap *h)
{
  ljp_block_map_fini(&h->blocks);
  ljp_tarantool_places_fini(&h->places);
  ljp_tarantool_places_fini(&h->meanings);
  ljp_tarantool_sums_fini(&h->sums);
}

/* -- Places ---------------------------------------------------------------- */

/* Removes the places whose meaning has changed. */
static void heap_forget(struct ljp_tarantool_heap *h)
{
  uint64_t number;
  uint32_t what;
  if (h->generation != h->symbols->cfunc_generation ||
      h->places.count > PLACES - LJP_TARANTOOL_BATCH) {
    h->generation = h->symbols->cfunc_generation;
    ljp_tarantool_places_clear(&h->places);
    ljp_tarantool_symbols_unask(h->symbols);
  }
  while (ljp_tarantool_symbols_changed(h->symbols, &number, &what))
    ljp_tarantool_places_remove(&h->places, number, what);
}

static enum ljp_status heap_frame(struct ljp_tarantool_heap *h,
                                  const struct ljp_tarantool_memory *m,
                                  uint32_t *frame)
{
  uint64_t start;
  switch (m->source) {
  case LJP_LJM_LFUNC:
    return ljp_tarantool_frame_lua(h->symbols, h->p, m->place, m->line, frame);
  case LJP_LJM_CFUNC:
    return ljp_tarantool_frame_c(h->symbols, h->p, LJP_FRAME_CFUNC, m->place,
                                 frame, &start);
  case LJP_LJM_TRACE:
    return ljp_tarantool_frame_trace(h->symbols, h->p, m->place, 0, 0, frame);
  default:
    return ljp_tarantool_frame_internal(h->p, frame);
  }
}

/* Makes the row of a place. */
static enum ljp_status heap_place_row(struct ljp_tarantool_heap *h,
                                      const struct ljp_tarantool_memory *m,
                                      uint32_t *memory)
{
  struct ljp_profile *p = h->p;
  uint32_t frame, node = LJP_NODE_TOO_MANY;
  enum ljp_status status = heap_frame(h, m, &frame);
  if (status)
    return status;
  if (p->frames[frame].kind != LJP_FRAME_TOO_MANY &&
      (status = ljp_profile_intern_node(p, 0, frame, &node)))
    return status;
  return ljp_tarantool_sums_row(&h->sums, node, m->source == LJP_LJM_TRACE,
                                memory);
}

/* Finds or makes the row of a line of a Lua function. */
static enum ljp_status heap_line_row(struct ljp_tarantool_heap *h,
                                     const struct ljp_tarantool_memory *m,
                                     uint32_t what, uint32_t *memory)
{
  struct ljp_tarantool_places *meanings = &h->meanings;
  struct ljp_tarantool_place line = {.what = what};
  enum ljp_status status =
      ljp_tarantool_symbols_meaning(h->symbols, h->p, m->place, &line.number);
  if (status)
    return status;
  if (!line.number)
    return heap_place_row(h, m, memory);
  *memory = ljp_tarantool_places_find(
                meanings, ljp_tarantool_place_hash(meanings, line.number, what),
                line.number, what)
                ->memory;
  if (*memory)
    return LJP_OK;
  if (meanings->count == PLACES)
    ljp_tarantool_places_clear(meanings);
  if ((status = heap_place_row(h, m, memory)))
    return status;
  line.memory = *memory;
  return ljp_tarantool_places_add(meanings, &line);
}

/* Adds a place with its row. */
static enum ljp_status heap_add_place(struct ljp_tarantool_heap *h,
                                      const struct ljp_tarantool_memory *m,
                                      uint32_t *memory)
{
  struct ljp_tarantool_place place = {.number = m->place,
                                      .what = ljp_tarantool_place_what(m)};
  enum ljp_status status = m->source == LJP_LJM_LFUNC
                               ? heap_line_row(h, m, place.what, memory)
                               : heap_place_row(h, m, memory);
  if (status)
    return status;
  place.memory = *memory;
  if ((m->source == LJP_LJM_LFUNC || m->source == LJP_LJM_TRACE) &&
      (status = ljp_tarantool_symbols_ask(
           h->symbols, h->p, m->source == LJP_LJM_TRACE, m->place, place.what)))
    return status;
  return ljp_tarantool_places_add(&h->places, &place);
}

/* -- Counting -------------------------------------------------------------- */

static inline enum ljp_status
heap_count_free(struct ljp_tarantool_heap *h,
                const struct ljp_tarantool_memory *m, uint32_t memory,
                uint64_t hash)
{
  struct ljp_block_slot *slot = ljp_block_find(&h->blocks, hash, m->address);
  struct ljp_tarantool_deeds *deeds = &h->sums.deeds[memory];
  deeds->frees++;
  deeds->free_bytes += m->size;
  if (!slot->memory)
    return ljp_tarantool_sums_before(&h->sums, m->source == LJP_LJM_TRACE,
                                     m->size, false);
  ljp_tarantool_sums_shrink(&h->sums, ljp_block_memory(slot),
                            ljp_block_size(&h->blocks, slot));
  ljp_block_remove(&h->blocks, slot);
  return LJP_OK;
}

/* A reallocation takes the old block away. */
static inline enum ljp_status
heap_count_move(struct ljp_tarantool_heap *h,
                const struct ljp_tarantool_memory *m, uint32_t memory,
                uint64_t hash)
{
  struct ljp_block_slot *slot =
      ljp_block_find(&h->blocks, hash, m->old_address);
  struct ljp_tarantool_deeds *deeds = &h->sums.deeds[memory];
  deeds->realloc_bytes += m->size;
  deeds->realloc_old_bytes += m->old_size;
  deeds->reallocs++;
  if (!slot->memory)
    return ljp_tarantool_sums_before(&h->sums, m->source == LJP_LJM_TRACE,
                                     m->old_size, true);
  uint32_t owner = ljp_block_memory(slot);
  ljp_tarantool_sums_shrink(&h->sums, owner, ljp_block_size(&h->blocks, slot));
  h->sums.blocks[owner].moved_out++;
  ljp_block_remove(&h->blocks, slot);
  return LJP_OK;
}

/* An allocation or reallocation for which the allocator had no memory. */
static void heap_count_failure(const struct ljp_tarantool_heap *h,
                               uint32_t memory)
{
  struct ljp_profile *p = h->p;
  p->totals.failed_allocs++;
  p->totals.too_many +=
      p->rows[h->sums.rare[memory].row].node == LJP_NODE_TOO_MANY;
}

static inline enum ljp_status
heap_count_alloc(struct ljp_tarantool_heap *h,
                 const struct ljp_tarantool_memory *m, uint32_t memory,
                 uint64_t hash, uint64_t old_hash)
{
  struct ljp_block_map *blocks = &h->blocks;
  enum ljp_status status = ljp_block_map_reserve(blocks);
  if (LJP_UNLIKELY(status))
    return status;
  if (LJP_UNLIKELY(!m->address && m->size)) {
    heap_count_failure(h, memory);
    return LJP_OK;
  }
  if (m->kind == LJP_LJM_REALLOC) {
    if (LJP_UNLIKELY((status = heap_count_move(h, m, memory, old_hash))))
      return status;
  } else {
    h->sums.blocks[memory].allocs++;
  }
  struct ljp_block_slot *slot = ljp_block_find(blocks, hash, m->address);
  if (LJP_UNLIKELY(slot->memory)) { /* Its free is not in the stream. */
    uint32_t owner = ljp_block_memory(slot);
    h->p->totals.double_allocs++;
    h->sums.rare[owner].replaced++;
    ljp_tarantool_sums_shrink(&h->sums, owner, ljp_block_size(blocks, slot));
    ljp_block_take(blocks, slot);
  }
  ljp_tarantool_sums_grow(&h->sums, memory, m->size);
  return ljp_block_put(blocks, slot, m->address, m->size, memory);
}

/* -- Batches --------------------------------------------------------------- */

/* A search, and the closing of a gap, often reach into the next line. */
static inline void heap_prefetch_slot(const struct ljp_tarantool_heap *h,
                                      uint64_t hash)
{
  const struct ljp_block_slot *home = ljp_block_home(&h->blocks, hash);
  __builtin_prefetch(home, 1);
  __builtin_prefetch(home + 2, 1);
}

static inline void heap_prefetch(struct ljp_tarantool_heap *h, uint32_t count)
{
  for (uint32_t i = 0; i < count; i++) {
    const struct ljp_tarantool_memory *m = &h->events[i];
    h->place_hash[i] = ljp_tarantool_place_hash(&h->places, m->place,
                                                ljp_tarantool_place_what(m));
    __builtin_prefetch(&h->places.slots[h->place_hash[i] >> h->places.shift]);
    h->block_hash[i] = ljp_block_hash(&h->blocks, m->address);
    heap_prefetch_slot(h, h->block_hash[i]);
    if (m->kind == LJP_LJM_REALLOC) {
      h->old_hash[i] = ljp_block_hash(&h->blocks, m->old_address);
      heap_prefetch_slot(h, h->old_hash[i]);
    }
  }
}

/* Prefetches the row of a block that will be taken away. */
static inline void heap_prefetch_owner(const struct ljp_tarantool_heap *h,
                                       uint64_t hash, uint64_t address)
{
  const struct ljp_block_slot *slot = ljp_block_find(&h->blocks, hash, address);
  __builtin_prefetch(&h->sums.blocks[ljp_block_memory(slot)], 1);
}

/* Finds the rows of memory, and prefetches them and those of freed blocks. */
static inline enum ljp_status heap_find_rows(struct ljp_tarantool_heap *h,
                                             uint32_t count)
{
  enum ljp_status status;
  for (uint32_t i = 0; i < count; i++) {
    const struct ljp_tarantool_memory *m = &h->events[i];
    const struct ljp_tarantool_place *place = ljp_tarantool_places_find(
        &h->places, h->place_hash[i], m->place, ljp_tarantool_place_what(m));
    h->memory[i] = place->memory;
    if (LJP_UNLIKELY(!place->memory) &&
        (status = heap_add_place(h, m, &h->memory[i])))
      return status;
    if (m->kind != LJP_LJM_ALLOC)
      __builtin_prefetch(&h->sums.deeds[h->memory[i]], 1);
    if (m->kind == LJP_LJM_FREE)
      heap_prefetch_owner(h, h->block_hash[i], m->address);
    else
      __builtin_prefetch(&h->sums.blocks[h->memory[i]], 1);
    if (m->kind == LJP_LJM_REALLOC)
      heap_prefetch_owner(h, h->old_hash[i], m->old_address);
  }
  return LJP_OK;
}

/* Counts the first events of the batch. */
static enum ljp_status heap_count(struct ljp_tarantool_heap *h, uint32_t count)
{
  enum ljp_status status;
  heap_forget(h);
  heap_prefetch(h, count);
  if ((status = ljp_tarantool_sums_expect(&h->sums, count)) ||
      (status = heap_find_rows(h, count)))
    return status;
  for (uint32_t i = 0; i < count && !status; i++) {
    const struct ljp_tarantool_memory *m = &h->events[i];
    status = m->kind == LJP_LJM_FREE
                 ? heap_count_free(h, m, h->memory[i], h->block_hash[i])
                 : heap_count_alloc(h, m, h->memory[i], h->block_hash[i],
                                    h->old_hash[i]);
  }
  return status;
}

enum ljp_status
ljp_tarantool_heap_take(struct ljp_tarantool_heap *h,
                        const struct ljp_tarantool_memory *event)
{
  h->events[0] = *event;
  return heap_count(h, 1);
}

enum ljp_status ljp_tarantool_heap_read(struct ljp_tarantool_heap *h,
                                        struct ljp_tarantool_reader *reader)
{
  enum ljp_status status = LJP_OK;
  uint32_t count;
  while (!status && (count = ljp_tarantool_next_memory(reader, h->events,
                                                       LJP_TARANTOOL_BATCH)))
    if (!h->p->options.no_memory)
      status = heap_count(h, count);
  return status;
}

/* -- The end --------------------------------------------------------------- */

enum ljp_status ljp_tarantool_heap_finish(struct ljp_tarantool_heap *h)
{
  struct ljp_profile *p = h->p;
  ljp_block_map_fini(&h->blocks);
  enum ljp_status status = ljp_tarantool_sums_finish(&h->sums);
  ljp_tarantool_sums_fini(&h->sums);
  for (uint32_t i = 1; i < p->memory_count && !status; i++) {
    struct ljp_profile_memory *m = &p->memory[i];
    struct ljp_profile_row *row = &p->rows[m->row];
    uint64_t allocs = m->alloc_objects / LJP_OBJECT;
    uint64_t live = m->live_objects / LJP_OBJECT;
    p->totals.alloc_events += allocs;
    p->totals.realloc_events += m->realloc_events;
    p->totals.free_events += p->sites[i].frees;
    if (row->node == LJP_NODE_TOO_MANY)
      p->totals.too_many += allocs + m->realloc_events;
    row->count += allocs;
    row->weight += m->alloc_bytes;
    /* There are no collections, so all that is live is old. */
    m->old_objects = m->live_objects;
    m->old_bytes = m->live_bytes;
    m->slices = live ? 1 : 0;
    if (p->options.points && live)
      status = ljp_profile_add_point(p, 0, m->row, live * LJP_OBJECT,
                                     m->live_bytes, true);
  }
  return status;
}
