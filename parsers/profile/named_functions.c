/*
** Functions by file, name and first line; see named_functions.h.
*/
#include "parsers/profile/named_functions.h"

static uint32_t named_hash(uint32_t file, uint32_t name, uint32_t first_line)
{
  return ljp_hash_finish(
      ljp_hash_mix(ljp_hash_mix((uint64_t)file << 32 | name, 0), first_line));
}

bool ljp_named_functions_init(const struct ljp_profile *p,
                              struct ljp_index *index)
{
  *index = (struct ljp_index){0};
  for (uint32_t i = 1; i < p->function_count; i++) {
    const struct ljp_profile_frame *f = &p->frames[p->functions[i].frame];
    if (f->kind != LJP_FRAME_LUA && f->kind != LJP_FRAME_LUA_INLINED)
      continue;
    if (!ljp_index_reserve(index))
      return false;
    uint32_t hash = named_hash(f->file, f->name, f->first_line);
    struct ljp_index_slot *slot = ljp_index_at(index, hash);
    while (slot->item)
      slot = ljp_index_next(index, slot);
    ljp_index_put(index, slot, hash, i);
  }
  return ljp_index_reserve(index);
}

uint32_t ljp_named_function(const struct ljp_profile *p,
                            const struct ljp_index *index, uint32_t file,
                            uint32_t name, uint32_t first_line)
{
  uint32_t hash = named_hash(file, name, first_line);
  struct ljp_index_slot *slot = ljp_index_at(index, hash);
  for (; slot->item; slot = ljp_index_next(index, slot)) {
    const struct ljp_profile_frame *f =
        &p->frames[p->functions[slot->item - 1].frame];
    if (slot->hash == hash && f->file == file && f->name == name &&
        f->first_line == first_line)
      return slot->item - 1;
  }
  return 0;
}

void ljp_named_functions_fini(struct ljp_index *index)
{
  ljp_index_fini(index);
}
