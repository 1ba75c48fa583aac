/*
** Functions: gives the frames of one function the same number. One thread a
** profile.
*/
#include "parsers/base/array.h"
#include "parsers/profile/intern.h"
#include "parsers/profile/pass.h"
#include "parsers/profile/plain_names.h"
#include "src/base/assert.h"

/* The identity of a frame's function: a frame that has only the members in
** which frames of one function agree. It may not be a frame of the profile. */
static struct ljp_profile_frame
functions_identity(const struct ljp_profile_frame *f)
{
  struct ljp_profile_frame id = {.kind = f->kind,
                                 .name = f->name,
                                 .file = f->file,
                                 .first_line = f->first_line,
                                 .module = f->module};
  switch (f->kind) {
  case LJP_FRAME_LUA_INLINED:
    id.kind = LJP_FRAME_LUA;
    /* Fall through. */
  case LJP_FRAME_LUA:
    if (f->flags & LJP_PROFILE_UNKNOWN)
      id.offset = f->offset;
    break;
  case LJP_FRAME_CFUNC:
  case LJP_FRAME_HOST:
  case LJP_FRAME_VM:
    id.kind = LJP_FRAME_HOST;
    if (!f->name)
      id.offset = f->offset;
    break;
  default:
    id.offset = f->offset;
  }
  return id;
}

/* Makes frames of builtins in bytecode what those of other builtins are. */
static void functions_turn_builtins(struct ljp_profile *p)
{
  for (uint32_t i = 0; i < p->frame_count; i++) {
    struct ljp_profile_frame *f = &p->frames[i];
    if ((f->kind == LJP_FRAME_LUA || f->kind == LJP_FRAME_LUA_INLINED) &&
        f->first_line == LJP_PROFILE_BUILTIN_LINE && !f->file)
      *f = (struct ljp_profile_frame){
          .kind = LJP_FRAME_BUILTIN, .name = f->name, .flags = f->flags & 0xf};
  }
}

/* Gives functions that Lua has under another name, or under none, the name that
** people know. */
static enum ljp_status functions_name_plainly(struct ljp_profile *p)
{
  enum ljp_status status = LJP_OK;
  for (uint32_t i = 0; i < p->frame_count && !status; i++) {
    struct ljp_profile_frame *f = &p->frames[i];
    if (!f->name ||
        (f->kind != LJP_FRAME_BUILTIN && f->kind != LJP_FRAME_CFUNC))
      continue;
    const char *plain = ljp_plain_name(ljp_profile_str(p, f->name));
    if (plain)
      status = ljp_profile_intern_string(
          p, (struct ljp_str){plain, (uint32_t)strlen(plain)}, &f->name);
  }
  return status;
}

enum ljp_status ljp_profile_number_functions(struct ljp_profile *p)
{
  struct ljp_index index = {0};
  struct ljp_profile_frame *ids = NULL;
  uint32_t room = 0, count = 0;
  functions_turn_builtins(p);
  enum ljp_status status = functions_name_plainly(p);
  for (uint32_t i = 0; i < p->frame_count && !status; i++) {
    struct ljp_profile_frame id = functions_identity(&p->frames[i]);
    uint64_t h = ljp_hash_mix(p->strings.seed, id.offset);
    h = ljp_hash_mix(h, (uint64_t)id.name << 32 | id.file);
    h = ljp_hash_mix(h, (uint64_t)id.first_line << 32 | id.module);
    uint32_t hash = ljp_hash_finish(ljp_hash_mix(h, id.kind));
    if (!ljp_index_reserve(&index) ||
        !ljp_array_reserve(&ids, count, &room, sizeof *ids) ||
        !ljp_array_reserve(&p->functions, count, &p->pass->function_room,
                           sizeof *p->functions)) {
      status = LJP_ERR_MEM;
      break;
    }
    struct ljp_index_slot *slot = ljp_index_at(&index, hash);
    for (; slot->item; slot = ljp_index_next(&index, slot))
      if (slot->hash == hash &&
          ljp_profile_same_frame(&ids[slot->item - 1], &id))
        break;
    if (!slot->item) {
      ljp_index_put(&index, slot, hash, count);
      p->functions[count].frame = i;
      ids[count++] = id;
    }
    ljp_assert(slot->item && slot->item <= count);
    p->frames[i].function = slot->item - 1;
  }
  p->function_count = count;
  ljp_index_fini(&index);
  free(ids);
  return status;
}
