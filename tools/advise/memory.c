/*
** Memory by site: what each Lua line allocated, for each type.
*/
#include <stdlib.h>

#include "parsers/base/array.h"
#include "tools/advise/advise.h"

static struct advise_site *memory_site(struct advise_facts *a, uint32_t frame,
                                       uint8_t type)
{
  uint32_t hash = ljp_hash_finish(ljp_hash_mix((uint64_t)frame << 8 | type, 0));
  if (!ljp_index_reserve(&a->site_index))
    return NULL;
  struct ljp_index_slot *slot = ljp_index_at(&a->site_index, hash);
  for (; slot->item; slot = ljp_index_next(&a->site_index, slot)) {
    struct advise_site *s = &a->sites[slot->item - 1];
    if (slot->hash == hash && s->frame == frame && s->type == type)
      return s;
  }
  if (!ljp_array_reserve(&a->sites, a->site_count, &a->site_room,
                         sizeof *a->sites))
    return NULL;
  ljp_index_put(&a->site_index, slot, hash, a->site_count);
  a->sites[a->site_count] = (struct advise_site){.frame = frame, .type = type};
  return &a->sites[a->site_count++];
}

bool ljp_advise_collect_memory(struct advise_facts *a)
{
  const struct ljp_profile *p = a->p;
  for (uint32_t i = 0; i < p->row_count; i++) {
    const struct ljp_profile_row *row = &p->rows[i];
    const struct advise_node *n = &a->nodes[row->node];
    if (!row->memory)
      continue;
    uint32_t frame = p->nodes[n->lua ? n->lua : row->node].frame;
    struct advise_site *s =
        memory_site(a, frame, p->contexts[row->context].type);
    const struct ljp_profile_memory *m = &p->memory[row->memory];
    if (!s)
      return false;
    s->memory.alloc_objects += m->alloc_objects;
    s->memory.alloc_bytes += m->alloc_bytes;
    s->memory.live_objects += m->live_objects;
    s->memory.live_bytes += m->live_bytes;
    s->memory.free_objects += m->free_objects;
    s->memory.temporary_objects += m->temporary_objects;
    s->memory.temporary_bytes += m->temporary_bytes;
    s->memory.old_objects += m->old_objects;
    s->memory.old_bytes += m->old_bytes;
    s->memory.slices |= m->slices;
    s->memory.late |= m->late;
    if (p->estimates) {
      ljp_estimate_sum(&s->estimates.live, &p->estimates[row->memory].live);
      ljp_estimate_sum(&s->estimates.old, &p->estimates[row->memory].old);
    }
  }
  return true;
}
