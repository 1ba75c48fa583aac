/*
** The sums of memory events: what happens rarely. One thread a table.
*/
#include "parsers/profile/tarantool_sums.h"

#include <stdlib.h>

#include "parsers/base/array.h"
#include "parsers/profile/intern.h"
#include "src/base/assert.h"

void ljp_tarantool_sums_fini(struct ljp_tarantool_sums *s)
{
  free(s->blocks);
  free(s->deeds);
  free(s->rare);
  free(s->wide);
  *s = (struct ljp_tarantool_sums){.p = s->p};
}

static bool sums_reserve(struct ljp_tarantool_sums *s)
{
  return ljp_array_reserve_lines(&s->blocks, s->count, &s->blocks_room,
                                 sizeof *s->blocks) &&
         ljp_array_reserve_lines(&s->deeds, s->count, &s->deeds_room,
                                 sizeof *s->deeds) &&
         ljp_array_reserve(&s->rare, s->count, &s->rare_room, sizeof *s->rare);
}

static void sums_add_row(struct ljp_tarantool_sums *s, uint32_t row)
{
  s->blocks[s->count] = (struct ljp_tarantool_blocks){0};
  s->deeds[s->count] = (struct ljp_tarantool_deeds){0};
  s->rare[s->count] = (struct ljp_tarantool_rare){.row = row};
  s->count++;
}

enum ljp_status ljp_tarantool_sums_row(struct ljp_tarantool_sums *s,
                                       uint32_t node, bool trace,
                                       uint32_t *memory)
{
  const struct ljp_profile_context context = {
      .kind = LJP_PRODUCER_MEMORY,
      .state = trace ? LJP_VMSTATE_TRACE : LJP_VMSTATE_UNKNOWN};
  struct ljp_profile *p = s->p;
  uint32_t id, row;
  enum ljp_status status = ljp_profile_intern_context(p, &context, &id);
  if (!status)
    status = ljp_profile_intern_row(p, node, id, &row);
  if (status)
    return status;
  if (!p->rows[row].memory) {
    if (!s->count) {
      if (!sums_reserve(s))
        return LJP_ERR_MEM;
      sums_add_row(s, 0); /* Number 0 is for rows without memory. */
    }
    if (!sums_reserve(s))
      return LJP_ERR_MEM;
    p->rows[row].memory = s->count;
    sums_add_row(s, row);
  }
  *memory = p->rows[row].memory;
  return LJP_OK;
}

enum ljp_status ljp_tarantool_sums_widen(struct ljp_tarantool_sums *s)
{
  const struct ljp_memory_sums *all = &s->p->pass->memory;
  struct ljp_tarantool_wide *wide =
      realloc(s->wide, ((size_t)s->count + 1) * sizeof *wide);
  if (!wide)
    return LJP_ERR_MEM;
  memset(wide + s->wide_count, 0,
         ((size_t)s->count + 1 - s->wide_count) * sizeof *wide);
  s->wide = wide;
  s->wide_count = s->count;
  s->events = LJP_TARANTOOL_SUMS_EVENTS / 2;
  for (uint32_t i = 1; i < s->count; i++) {
    struct ljp_tarantool_blocks *b = &s->blocks[i];
    struct ljp_tarantool_deeds *d = &s->deeds[i];
    wide[i].allocs += b->allocs;
    wide[i].moved_out += b->moved_out;
    wide[i].frees += d->frees;
    wide[i].reallocs += d->reallocs;
    b->allocs = b->moved_out = d->frees = d->reallocs = 0;
    if (b->fall != (uint32_t)all->fall) /* It does not come again by itself. */
      b->fall = (uint32_t)all->fall - 1;
  }
  return LJP_OK;
}

enum ljp_status ljp_tarantool_sums_before(struct ljp_tarantool_sums *s,
                                          bool trace, uint64_t bytes,
                                          bool moved)
{
  struct ljp_tarantool_before *before = &s->before[trace];
  enum ljp_status status;
  if (LJP_UNLIKELY(!before->memory) &&
      (status =
           ljp_tarantool_sums_row(s, LJP_NODE_BEFORE, trace, &before->memory)))
    return status;
  before->bytes += bytes;
  before->moved += moved;
  before->frees += !moved;
  return LJP_OK;
}

/* The numbers of row i. */
static void sums_make(const struct ljp_tarantool_sums *s, uint32_t i,
                      struct ljp_profile_memory *m,
                      struct ljp_profile_site *site)
{
  const struct ljp_memory_sums *all = &s->p->pass->memory;
  const struct ljp_tarantool_blocks *b = &s->blocks[i];
  const struct ljp_tarantool_deeds *d = &s->deeds[i];
  const struct ljp_tarantool_rare *rare = &s->rare[i];
  struct ljp_tarantool_wide n = {0};
  if (i < s->wide_count)
    n = s->wide[i];
  n.allocs += b->allocs;
  n.moved_out += b->moved_out;
  n.frees += d->frees;
  n.reallocs += d->reallocs;
  uint64_t freed = n.allocs + n.reallocs - n.moved_out - b->live;
  *m = (struct ljp_profile_memory){
      .row = rare->row,
      .vm = s->p->contexts[s->p->rows[rare->row].context].vm,
      .alloc_objects = n.allocs * LJP_OBJECT,
      .alloc_bytes = b->alloc_bytes,
      .live_objects = b->live * LJP_OBJECT,
      .live_bytes = b->live_bytes,
      .free_events = freed - rare->replaced,
      .free_objects = freed * LJP_OBJECT,
      .free_bytes = b->alloc_bytes - b->live_bytes,
      .realloc_events = n.reallocs,
      .moved_objects_in = n.reallocs * LJP_OBJECT,
      .moved_objects_out = n.moved_out * LJP_OBJECT,
      .peak_fall = b->fall == (uint32_t)all->fall ? all->fall : 0,
      .peak_objects = rare->live * LJP_OBJECT,
      .peak_bytes = rare->live_bytes};
  *site = (struct ljp_profile_site){.frees = n.frees,
                                    .free_bytes = d->free_bytes,
                                    .realloc_bytes = d->realloc_bytes,
                                    .realloc_old_bytes = d->realloc_old_bytes};
}

static void sums_add_before(struct ljp_tarantool_sums *s)
{
  struct ljp_profile *p = s->p;
  for (unsigned i = 0; i < 2; i++) {
    const struct ljp_tarantool_before *before = &s->before[i];
    if (!before->memory)
      continue;
    struct ljp_profile_memory *m = &p->memory[before->memory];
    m->free_bytes += before->bytes;
    m->free_events += before->frees;
    m->free_objects += before->frees * LJP_OBJECT;
    m->moved_objects_out += before->moved * LJP_OBJECT;
    p->totals.before_free_bytes += before->bytes;
    p->totals.before_reallocs += before->moved;
    p->totals.before_frees += before->frees;
  }
}

enum ljp_status ljp_tarantool_sums_finish(struct ljp_tarantool_sums *s)
{
  struct ljp_profile *p = s->p;
  if (!s->count)
    return LJP_OK;
  ljp_assert(p->memory_count == 1 && !p->sites);
  size_t bytes = s->count * sizeof *p->memory;
  struct ljp_profile_memory *memory =
      aligned_alloc(LJP_CACHE_LINE_BYTES, bytes);
  p->sites = malloc(s->count * sizeof *p->sites);
  if (!memory || !p->sites) {
    free(memory);
    return LJP_ERR_MEM;
  }
  ljp_pages_hint(memory, bytes);
  free(p->memory);
  p->memory = memory;
  p->memory_count = p->pass->memory_room = p->pass->site_room = s->count;
  for (uint32_t i = 0; i < s->count; i++)
    sums_make(s, i, &memory[i], &p->sites[i]);
  memory[0] = (struct ljp_profile_memory){0};
  sums_add_before(s);
  return LJP_OK;
}
