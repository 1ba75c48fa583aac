/*
** Tables: gives a profile a new stack tree, and counts its rows again there.
** One thread a profile.
*/
#include "parsers/profile/tables.h"

#include <stdlib.h>

#include "parsers/profile/intern.h"
#include "parsers/profile/pass.h"
#include "src/base/assert.h"

void ljp_tables_add_memory(struct ljp_profile_memory *to,
                           const struct ljp_profile_memory *from)
{
  to->alloc_objects += from->alloc_objects;
  to->alloc_bytes += from->alloc_bytes;
  to->free_events += from->free_events;
  to->free_objects += from->free_objects;
  to->free_bytes += from->free_bytes;
  to->realloc_events += from->realloc_events;
  to->moved_objects_in += from->moved_objects_in;
  to->moved_objects_out += from->moved_objects_out;
  to->live_objects += from->live_objects;
  to->live_bytes += from->live_bytes;
  to->peak_objects += from->peak_objects;
  to->peak_bytes += from->peak_bytes;
  to->temporary_objects += from->temporary_objects;
  to->temporary_bytes += from->temporary_bytes;
  to->old_objects += from->old_objects;
  to->old_bytes += from->old_bytes;
  to->recent_objects += from->recent_objects;
  to->recent_bytes += from->recent_bytes;
  to->marked_objects += from->marked_objects;
  to->marked_bytes += from->marked_bytes;
  to->gc_ns += from->gc_ns;
  to->slices |= from->slices;
  to->late |= from->late;
}

static void tables_add_site(struct ljp_profile_site *to,
                            const struct ljp_profile_site *from)
{
  to->frees += from->frees;
  to->free_bytes += from->free_bytes;
  to->realloc_bytes += from->realloc_bytes;
  to->realloc_old_bytes += from->realloc_old_bytes;
}

void ljp_tables_add_estimates(struct ljp_profile_estimates *to,
                              const struct ljp_profile_estimates *from)
{
#define LJP_X(name) ljp_estimate_sum(&to->name, &from->name);
  LJP_ESTIMATES_LIST(LJP_X)
#undef LJP_X
}

void ljp_tables_take(struct ljp_profile *p, struct ljp_tables *old)
{
  struct ljp_profile_pass *pass = p->pass;
  *old = (struct ljp_tables){.frames = p->frames,
                             .nodes = p->nodes,
                             .rows = p->rows,
                             .memory = p->memory,
                             .estimates = p->estimates,
                             .sites = p->sites,
                             .frame_count = p->frame_count,
                             .node_count = p->node_count,
                             .row_count = p->row_count};
  p->frames = NULL;
  p->nodes = NULL;
  p->rows = NULL;
  p->memory = NULL;
  p->estimates = NULL;
  p->sites = NULL;
  p->frame_count = p->node_count = p->row_count = p->memory_count = 0;
  pass->frame_room = pass->node_room = pass->row_room = pass->memory_room = 0;
  pass->estimate_room = pass->site_room = 0;
}

void ljp_tables_free(struct ljp_tables *old)
{
  free(old->frames);
  free(old->nodes);
  free(old->rows);
  free(old->memory);
  free(old->estimates);
  free(old->sites);
}

/* Adds the memory of an old row to a new one. */
static enum ljp_status tables_move_memory(struct ljp_profile *p,
                                          const struct ljp_tables *old,
                                          uint32_t from, uint32_t row)
{
  enum ljp_status status;
  uint32_t memory;
  if ((status = ljp_profile_intern_memory(p, row, &memory)))
    return status;
  ljp_tables_add_memory(&p->memory[memory], &old->memory[from]);
  if (old->sites) {
    if ((status = ljp_profile_reserve_sites(p)))
      return status;
    tables_add_site(&p->sites[memory], &old->sites[from]);
  }
  if (old->estimates) {
    if ((status = ljp_profile_reserve_estimates(p)))
      return status;
    ljp_tables_add_estimates(&p->estimates[memory], &old->estimates[from]);
  }
  return LJP_OK;
}

enum ljp_status ljp_tables_move_rows(struct ljp_profile *p,
                                     const struct ljp_tables *old,
                                     uint32_t *row_map)
{
  enum ljp_status status = ljp_profile_init_memory(p);
  ljp_assert(status || p->memory_count == 1);
  for (uint32_t i = 0; !status && i < old->row_count; i++) {
    const struct ljp_profile_row *row = &old->rows[i];
    if (!row->count && !row->weight && !row->memory)
      continue;
    if ((status =
             ljp_profile_intern_row(p, row->node, row->context, &row_map[i])))
      return status;
    p->rows[row_map[i]].count += row->count;
    p->rows[row_map[i]].weight += row->weight;
    if (row->memory)
      status = tables_move_memory(p, old, row->memory, row_map[i]);
  }
  return status;
}
