/*
** What ids of the stream mean in the profile. One thread a profile.
*/
#include "parsers/profile/definitions.h"

#include <stdlib.h>
#include <string.h>

#include "parsers/base/array.h"
#include "parsers/profile/intern.h"
#include "parsers/profile/pass.h"
#include "parsers/stream/names.h"

/* Makes room for one more in the array p->members; false: no memory. */
#define RESERVE(p, member)                                                     \
  ljp_array_reserve(&(p)->member##s, (p)->member##_count,                      \
                    &(p)->pass->member##_room, sizeof *(p)->member##s)

/* Honest files have few threads, VMs and modules, and each costs a definition,
** so a search from the newest one is fast. The limit is for hostile files. */
enum { DEFINITIONS_MAX = 4096 };

enum ljp_status ljp_profile_find_thread(struct ljp_profile *p, uint64_t id,
                                        uint32_t *thread)
{
  const struct ljp_rec_thread *t =
      ljp_model_thread(&p->pass->reader->model, id);
  *thread = 0;
  if (!id)
    return LJP_OK;
  for (uint32_t i = p->thread_count - 1; i > 0; i--)
    if (p->threads[i].id == id && p->threads[i].source == p->pass->source) {
      *thread = i;
      break;
    }
  if (!*thread) {
    if (p->thread_count >= DEFINITIONS_MAX)
      return LJP_OK;
    if (!RESERVE(p, thread))
      return LJP_ERR_MEM;
    *thread = p->thread_count++;
    p->threads[*thread] =
        (struct ljp_profile_thread){.source = p->pass->source, .id = id};
  }
  if (!t)
    return LJP_OK;
  p->threads[*thread].tid = t->tid;
  return ljp_profile_intern_string(p, t->name, &p->threads[*thread].name);
}

enum ljp_status ljp_profile_find_vm(struct ljp_profile *p, uint64_t id,
                                    uint32_t *vm)
{
  const struct ljp_rec_vm *v = ljp_model_vm(&p->pass->reader->model, id);
  *vm = 0;
  if (!id)
    return LJP_OK;
  for (uint32_t i = p->vm_count - 1; i > 0; i--)
    if (p->vms[i].id == id && p->vms[i].source == p->pass->source) {
      *vm = i;
      break;
    }
  if (!*vm) {
    if (p->vm_count >= DEFINITIONS_MAX)
      return LJP_OK;
    if (!RESERVE(p, vm))
      return LJP_ERR_MEM;
    *vm = p->vm_count++;
    p->vms[*vm] = (struct ljp_profile_vm){.source = p->pass->source, .id = id};
  }
  return v ? ljp_profile_intern_string(p, v->name, &p->vms[*vm].name) : LJP_OK;
}

enum ljp_status ljp_profile_find_module(struct ljp_profile *p, uint64_t id,
                                        uint32_t *module)
{
  const struct ljp_rec_module *m =
      ljp_model_module(&p->pass->reader->model, id);
  uint32_t path, build_id;
  enum ljp_status status;
  *module = 0;
  if (!m)
    return LJP_OK;
  if ((status = ljp_profile_intern_string(p, m->path, &path)) ||
      (status = ljp_profile_intern_string(p, m->build_id, &build_id)))
    return status;
  for (uint32_t i = p->module_count - 1; i > 0; i--) {
    const struct ljp_profile_module *old = &p->modules[i];
    if (old->path == path && old->build_id == build_id &&
        old->span == m->size) {
      *module = i;
      return LJP_OK;
    }
  }
  if (p->module_count >= DEFINITIONS_MAX)
    return LJP_OK;
  if (!RESERVE(p, module))
    return LJP_ERR_MEM;
  uint32_t symbols =
      ljp_symbols_module(p->symbols, m->path, m->build_id, m->size, m->flags);
  if (!symbols)
    return LJP_ERR_MEM;
  *module = p->module_count++;
  p->modules[*module] = (struct ljp_profile_module){.path = path,
                                                    .build_id = build_id,
                                                    .symbols = symbols,
                                                    .span = m->size,
                                                    .flags = m->flags};
  return LJP_OK;
}

static enum ljp_status definitions_chunk_name(struct ljp_profile *p,
                                              struct ljp_str chunk,
                                              uint32_t *id)
{
  char room[LJP_CHUNK_NAME_BYTES];
  return ljp_profile_intern_string(p, ljp_chunk_name(chunk, room), id);
}

/* A few builtins of LuaJIT are written in Lua and built in as bytecode. Their
** chunk is their name without the library's, and their line is -1. */
static enum ljp_status definitions_builtin(struct ljp_profile *p,
                                           struct ljp_str name, uint32_t *id)
{
  static const char *const all[] = {
      "math.deg",     "math.rad",       "string.len",   "table.foreach",
      "table.getn",   "table.foreachi", "table.remove", "table.move",
      "table.insert", "table.concat"};
  for (size_t i = 0; name.len && i < sizeof all / sizeof *all; i++) {
    const char *own = strchr(all[i], '.') + 1;
    if (strlen(own) == name.len && memcmp(own, name.data, name.len) == 0)
      name = (struct ljp_str){all[i], (uint32_t)strlen(all[i])};
  }
  return ljp_profile_intern_string(p, name, id);
}

/* Keeps a function in p->blacklisted, once. */
static enum ljp_status
definitions_blacklisted(struct ljp_profile *p,
                        const struct ljp_profile_proto *proto)
{
  struct ljp_index *index = &p->pass->blacklisted_index;
  const struct ljp_profile_blacklisted b = {proto->file, proto->name,
                                            proto->first_line};
  uint32_t hash = ljp_hash_finish(ljp_hash_mix(
      ljp_hash_mix((uint64_t)b.file << 32 | b.name, p->strings.seed),
      b.first_line));
  if (!ljp_index_reserve(index) ||
      !ljp_array_reserve(&p->blacklisted, p->blacklisted_count,
                         &p->pass->blacklisted_room, sizeof *p->blacklisted))
    return LJP_ERR_MEM;
  struct ljp_index_slot *slot = ljp_index_at(index, hash);
  for (; slot->item; slot = ljp_index_next(index, slot)) {
    const struct ljp_profile_blacklisted *old = &p->blacklisted[slot->item - 1];
    if (old->file == b.file && old->name == b.name &&
        old->first_line == b.first_line)
      return LJP_OK;
  }
  ljp_index_put(index, slot, hash, p->blacklisted_count);
  p->blacklisted[p->blacklisted_count++] = b;
  return LJP_OK;
}

enum ljp_status ljp_profile_find_proto(struct ljp_profile *p, uint64_t id,
                                       struct ljp_profile_proto *proto)
{
  struct ljp_profile_proto *entry = &p->pass->protos[id % LJP_PROFILE_PROTOS];
  enum ljp_status status;
  if (!entry->known || entry->id != id || entry->epoch != p->pass->epoch) {
    static const char main_chunk[] = "main chunk";
    const struct ljp_rec_proto *rec =
        ljp_model_proto(&p->pass->reader->model, id);
    struct ljp_profile_proto fresh = {.id = id, .epoch = p->pass->epoch};
    if (rec) {
      struct ljp_str name = rec->name;
      if (rec->flags & LJP_PROTO_MAIN)
        name = (struct ljp_str){main_chunk, sizeof main_chunk - 1};
      fresh.known = !(rec->flags & LJP_PROTO_UNKNOWN);
      fresh.first_line = ljp_clamp_u32(rec->first_line);
      fresh.builtin = fresh.known && fresh.first_line == UINT32_MAX;
      if (fresh.builtin)
        fresh.first_line = 0;
      if ((status = fresh.builtin
                        ? definitions_builtin(p, rec->chunk, &fresh.name)
                        : ljp_profile_intern_string(p, name, &fresh.name)) ||
          (fresh.known && !fresh.builtin &&
           (status = definitions_chunk_name(p, rec->chunk, &fresh.file))))
        return status;
      if (fresh.known && !fresh.builtin && rec->flags & LJP_PROTO_BLACKLISTED &&
          (status = definitions_blacklisted(p, &fresh)))
        return status;
    }
    *entry = fresh;
  }
  *proto = *entry;
  return LJP_OK;
}

enum ljp_status ljp_profile_init_definitions(struct ljp_profile *p)
{
  if (!RESERVE(p, thread) || !RESERVE(p, vm) || !RESERVE(p, module) ||
      !RESERVE(p, trace))
    return LJP_ERR_MEM;
  p->traces[p->trace_count++] = (struct ljp_profile_trace){0};
  p->threads[p->thread_count++] = (struct ljp_profile_thread){0};
  p->vms[p->vm_count++] = (struct ljp_profile_vm){0};
  p->modules[p->module_count++] = (struct ljp_profile_module){0};
  p->pass->protos = calloc(LJP_PROFILE_PROTOS, sizeof *p->pass->protos);
  return p->pass->protos ? LJP_OK : LJP_ERR_MEM;
}
