/*
** The symbols of Tarantool's files. One thread a table.
*/
#include "parsers/profile/tarantool_symbols.h"

#include <inttypes.h>
#include <stdio.h>

#include "parsers/base/array.h"
#include "parsers/profile/intern.h"
#include "parsers/profile/pass.h"
#include "parsers/tarantool/walk.h"

/* Chunk names that are longer are shortened, to so many bytes of their own. */
enum { LONG_BYTES = 1000, LONG_SHOWN = 60 };

void ljp_tarantool_symbols_fini(struct ljp_tarantool_symbols *s)
{
  free(s->protos.list);
  ljp_index_fini(&s->protos.index);
  free(s->traces.list);
  ljp_index_fini(&s->traces.index);
  free(s->names.list);
  ljp_index_fini(&s->names.index);
  free(s->asked);
  ljp_cfuncs_fini(&s->cfuncs);
  free(s->aliases);
  ljp_index_fini(&s->alias_index);
}

static inline uint32_t symbols_hash(const struct ljp_profile *p, uint64_t key)
{
  return ljp_hash_finish(ljp_hash_mix(p->strings.seed, key));
}

/* The slot of a key, or the free slot where it belongs. */
static inline struct ljp_index_slot *
symbols_slot(const struct ljp_tarantool_defs *defs, uint32_t hash, uint64_t key)
{
  struct ljp_index_slot *slot = ljp_index_at(&defs->index, hash);
  while (slot->item &&
         (slot->hash != hash || defs->list[slot->item - 1].key != key))
    slot = ljp_index_next(&defs->index, slot);
  return slot;
}

struct ljp_tarantool_def *
ljp_tarantool_symbols_at(const struct ljp_profile *p,
                         struct ljp_tarantool_defs *defs, uint64_t key)
{
  if (!ljp_index_reserve(&defs->index) ||
      !ljp_array_reserve(&defs->list, defs->count, &defs->room,
                         sizeof *defs->list))
    return NULL;
  uint32_t hash = symbols_hash(p, key);
  struct ljp_index_slot *slot = symbols_slot(defs, hash, key);
  if (slot->item)
    return &defs->list[slot->item - 1];
  ljp_index_put(&defs->index, slot, hash, defs->count);
  defs->list[defs->count] = (struct ljp_tarantool_def){.key = key};
  return &defs->list[defs->count++];
}

/* A chunk whose name is a source of several lines gets a short name, as in
** Tarantool's own reports; a notice says what it stands for. */
static enum ljp_status symbols_alias(struct ljp_tarantool_symbols *s,
                                     struct ljp_profile *p,
                                     struct ljp_str chunk, uint32_t *file)
{
  struct ljp_index *index = &s->alias_index;
  char name[32];
  uint32_t source;
  enum ljp_status status = ljp_profile_intern_string(p, chunk, &source);
  if (status)
    return status;
  if (!ljp_index_reserve(index) ||
      !ljp_array_reserve(&s->aliases, s->alias_count, &s->alias_room,
                         sizeof *s->aliases))
    return LJP_ERR_MEM;
  uint32_t hash = ljp_hash_finish(ljp_hash_mix(p->strings.seed, source));
  struct ljp_index_slot *slot = ljp_index_at(index, hash);
  while (slot->item && s->aliases[slot->item - 1] != source)
    slot = ljp_index_next(index, slot);
  if (!slot->item) {
    s->aliases[s->alias_count] = source;
    ljp_index_put(index, slot, hash, s->alias_count++);
  }
  snprintf(name, sizeof name, "function_alias_%u", slot->item);
  return ljp_tarantool_intern_text(p, name, file);
}

/* A long chunk name as its beginning, its size and its hash: others that begin
** alike have other names, and frames have room for the line. */
static enum ljp_status symbols_long_chunk(struct ljp_profile *p,
                                          struct ljp_str chunk, uint32_t *file)
{
  char name[LONG_SHOWN + 64];
  uint64_t hash = UINT64_C(0xcbf29ce484222325); /* FNV-1a */
  for (uint32_t i = 0; i < chunk.len; i++)
    hash = (hash ^ (uint8_t)chunk.data[i]) * UINT64_C(0x100000001b3);
  snprintf(name, sizeof name, "[string \"%.*s...\" %u bytes, %016" PRIx64 "]",
           LONG_SHOWN, chunk.data, chunk.len, hash);
  return ljp_tarantool_intern_text(p, name, file);
}

static enum ljp_status symbols_chunk(struct ljp_tarantool_symbols *s,
                                     struct ljp_profile *p,
                                     struct ljp_str chunk, uint32_t *file)
{
  static const char before[] = "[string \"", behind[] = "\"]";
  if (chunk.len && memchr(chunk.data, '\n', chunk.len))
    return symbols_alias(s, p, chunk, file);
  if (chunk.len > LONG_BYTES)
    return symbols_long_chunk(p, chunk, file);
  if (chunk.len && (*chunk.data == '@' || *chunk.data == '=')) {
    if (chunk.len > 1) /* The mark alone is a name, too. */
      chunk = (struct ljp_str){chunk.data + 1, chunk.len - 1};
    return ljp_profile_intern_string(p, chunk, file);
  }
  uint32_t len = chunk.len + sizeof before + sizeof behind - 2;
  char *text = malloc(len);
  if (!text)
    return LJP_ERR_MEM;
  memcpy(text, before, sizeof before - 1);
  memcpy(text + sizeof before - 1, chunk.data, chunk.len);
  memcpy(text + sizeof before - 1 + chunk.len, behind, sizeof behind - 1);
  enum ljp_status status =
      ljp_profile_intern_string(p, (struct ljp_str){text, len}, file);
  free(text);
  return status;
}

enum ljp_status ljp_tarantool_symbols_meaning(struct ljp_tarantool_symbols *s,
                                              struct ljp_profile *p,
                                              uint64_t proto, uint64_t *meaning)
{
  const struct ljp_tarantool_def *def =
      ljp_tarantool_symbols_at(p, &s->protos, proto);
  if (!def)
    return LJP_ERR_MEM;
  *meaning = 0;
  if (def->known)
    *meaning =
        (uint64_t)def->file << 32 | (uint64_t)def->builtin << 31 | def->line;
  return LJP_OK;
}

/* -- Places whose rows are kept -------------------------------------------- */

enum ljp_status ljp_tarantool_symbols_ask(struct ljp_tarantool_symbols *s,
                                          struct ljp_profile *p, bool trace,
                                          uint64_t number, uint32_t what)
{
  struct ljp_tarantool_def *def =
      ljp_tarantool_symbols_at(p, trace ? &s->traces : &s->protos, number);
  uint32_t at = s->asked_free;
  if (!def)
    return LJP_ERR_MEM;
  if (at) {
    s->asked_free = s->asked[--at].next;
  } else {
    if (!ljp_array_reserve(&s->asked, s->asked_count, &s->asked_room,
                           sizeof *s->asked))
      return LJP_ERR_MEM;
    at = s->asked_count++;
  }
  s->asked[at] = (struct ljp_tarantool_asked){
      number, what, def->asked_age == s->asked_age ? def->asked : 0};
  def->asked = at + 1;
  def->asked_age = s->asked_age;
  return LJP_OK;
}

/* The places of a definition have changed. */
static void symbols_drop_asked(struct ljp_tarantool_symbols *s,
                               const struct ljp_tarantool_def *def)
{
  uint32_t at = def->asked_age == s->asked_age ? def->asked : 0;
  while (at) {
    uint32_t next = s->asked[at - 1].next;
    s->asked[at - 1].next = s->asked_changed;
    s->asked_changed = at;
    at = next;
  }
}

bool ljp_tarantool_symbols_changed(struct ljp_tarantool_symbols *s,
                                   uint64_t *number, uint32_t *what)
{
  uint32_t at = s->asked_changed;
  if (LJP_LIKELY(!at))
    return false;
  struct ljp_tarantool_asked *asked = &s->asked[at - 1];
  *number = asked->number;
  *what = asked->what;
  s->asked_changed = asked->next;
  asked->next = s->asked_free;
  s->asked_free = at;
  return true;
}

void ljp_tarantool_symbols_unask(struct ljp_tarantool_symbols *s)
{
  s->asked_count = s->asked_free = s->asked_changed = 0;
  s->asked_age++;
}

bool ljp_tarantool_symbols_hold(struct ljp_tarantool_symbols *s,
                                const struct ljp_profile *p,
                                const struct ljp_tarantool_sample *sample,
                                uint64_t generation)
{
  struct ljp_tarantool_walk walk = ljp_tarantool_walk(sample);
  struct ljp_tarantool_frame frame;
  if (sample->state == LJP_LJP_TRACE || s->cfunc_generation > generation)
    return false; /* A stack of one frame is as easily made again. */
  while (ljp_tarantool_has_guest(sample->state) &&
         ljp_tarantool_guest(&walk, &frame)) {
    if (frame.kind != LJP_LJP_FRAME_LUA ||
        LJP_LIKELY(ljp_tarantool_symbols_same(s, frame.number, generation)))
      continue;
    const struct ljp_index_slot *slot =
        symbols_slot(&s->protos, symbols_hash(p, frame.number), frame.number);
    if (!slot->item || s->protos.list[slot->item - 1].changed > generation)
      return false;
  }
  return true;
}

/* -- Definitions ----------------------------------------------------------- */

/* Puts a new meaning in place of the old one. */
static void symbols_replace(struct ljp_tarantool_symbols *s,
                            struct ljp_tarantool_def *at,
                            struct ljp_tarantool_def *fresh, bool was_there)
{
  if (was_there) {
    fresh->changed = ++s->generation;
    symbols_drop_asked(s, at);
  }
  fresh->known = true;
  *at = *fresh;
}

static enum ljp_status symbols_add_lfunc(struct ljp_tarantool_symbols *s,
                                         struct ljp_profile *p,
                                         const struct ljp_tarantool_symbol *e)
{
  struct ljp_tarantool_def fresh = {.key = e->key};
  uint32_t count = s->protos.count;
  struct ljp_tarantool_def *at =
      ljp_tarantool_symbols_at(p, &s->protos, e->key);
  enum ljp_status status;
  if (!at)
    return LJP_ERR_MEM;
  fresh.builtin = ljp_tarantool_is_builtin(e->line);
  fresh.line = fresh.builtin ? 0 : (uint32_t)e->line;
  status = fresh.builtin ? ljp_profile_intern_string(p, e->text, &fresh.file)
                         : symbols_chunk(s, p, e->text, &fresh.file);
  if (status)
    return status;
  if (!at->known || at->file != fresh.file || at->line != fresh.line ||
      at->builtin != fresh.builtin) {
    symbols_replace(s, at, &fresh, count == s->protos.count);
    *ljp_tarantool_symbols_changed_at(s, e->key) = s->generation;
  }
  return LJP_OK;
}

enum ljp_status ljp_tarantool_symbols_start(struct ljp_tarantool_symbols *s,
                                            struct ljp_profile *p,
                                            uint64_t proto,
                                            struct ljp_tarantool_def *def)
{
  const struct ljp_tarantool_def *at =
      ljp_tarantool_symbols_at(p, &s->protos, proto);
  if (!at)
    return LJP_ERR_MEM;
  if (at->known) {
    def->file = at->file;
    def->first_line = at->line;
  }
  return LJP_OK;
}

/* Numbers are given to other traces again, so each definition that differs is
** a trace of its own. */
static enum ljp_status symbols_new_trace(struct ljp_profile *p,
                                         struct ljp_tarantool_def *def)
{
  struct ljp_profile_pass *pass = p->pass;
  if (p->trace_count > LJP_PROFILE_MAX_EVENTS) {
    p->totals.dropped_events++;
    return LJP_OK;
  }
  if (!ljp_array_reserve(&p->traces, p->trace_count, &pass->trace_room,
                         sizeof *p->traces))
    return LJP_ERR_MEM;
  p->traces[p->trace_count] =
      (struct ljp_profile_trace){.id = p->trace_count,
                                 .source = pass->source,
                                 .number = ljp_clamp_u32(def->key),
                                 .known = true,
                                 .file = def->file,
                                 .first_line = def->first_line,
                                 .line = def->line};
  def->trace = p->trace_count++;
  return LJP_OK;
}

static enum ljp_status symbols_add_trace(struct ljp_tarantool_symbols *s,
                                         struct ljp_profile *p,
                                         const struct ljp_tarantool_symbol *e)
{
  struct ljp_tarantool_def fresh = {
      .key = e->key, .proto = e->proto, .line = ljp_clamp_u32(e->line)};
  enum ljp_status status = ljp_tarantool_symbols_start(s, p, e->proto, &fresh);
  if (status)
    return status;
  uint32_t count = s->traces.count;
  struct ljp_tarantool_def *at =
      ljp_tarantool_symbols_at(p, &s->traces, e->key);
  if (!at)
    return LJP_ERR_MEM;
  if (at->known && at->file == fresh.file && at->line == fresh.line &&
      at->first_line == fresh.first_line)
    return LJP_OK;
  if ((status = symbols_new_trace(p, &fresh)))
    return status;
  symbols_replace(s, at, &fresh, count == s->traces.count);
  return LJP_OK;
}

/* Tables of C symbols are written again and again, so nothing but another name
** changes anything. */
static enum ljp_status symbols_add_cfunc(struct ljp_tarantool_symbols *s,
                                         struct ljp_profile *p,
                                         const struct ljp_tarantool_symbol *e)
{
  struct ljp_tarantool_def *at = ljp_tarantool_symbols_at(p, &s->names, e->key);
  enum ljp_status status;
  if (!at)
    return LJP_ERR_MEM;
  if (LJP_LIKELY(at->known)) {
    struct ljp_str old = ljp_profile_str(p, at->file);
    if (old.len == e->text.len &&
        (!old.len || memcmp(old.data, e->text.data, old.len) == 0))
      return LJP_OK;
  }
  at->known = true;
  if ((status = ljp_profile_intern_string(p, e->text, &at->file)))
    return status;
  if (s->cfuncs_used)
    s->cfunc_generation = ++s->generation;
  s->cfuncs_used = false;
  return ljp_cfuncs_add(&s->cfuncs, e->key, at->file);
}

enum ljp_status ljp_tarantool_symbols_add(struct ljp_tarantool_symbols *s,
                                          struct ljp_profile *p,
                                          const struct ljp_tarantool_symbol *e)
{
  switch (e->kind) {
  case LJP_LJS_LFUNC:
    return symbols_add_lfunc(s, p, e);
  case LJP_LJS_TRACE:
    return symbols_add_trace(s, p, e);
  default:
    return symbols_add_cfunc(s, p, e);
  }
}

enum ljp_status ljp_tarantool_symbols_whole(struct ljp_tarantool_symbols *s,
                                            struct ljp_profile *p)
{
  for (uint32_t i = 0; i < s->traces.count; i++) {
    struct ljp_tarantool_def *def = &s->traces.list[i];
    enum ljp_status status;
    if (!def->known || def->file)
      continue;
    if ((status = ljp_tarantool_symbols_start(s, p, def->proto, def)))
      return status;
    if (def->trace) {
      p->traces[def->trace].file = def->file;
      p->traces[def->trace].first_line = def->first_line;
    }
  }
  return LJP_OK;
}

enum ljp_status
ljp_tarantool_symbols_note(const struct ljp_tarantool_symbols *s,
                           struct ljp_profile *p)
{
  enum { SHOWN = 160 };
  struct ljp_profile_pass *pass = p->pass;
  enum ljp_status status = LJP_OK;
  for (uint32_t i = 0; i < s->alias_count && !status; i++) {
    struct ljp_str source = ljp_profile_str(p, s->aliases[i]);
    char text[SHOWN + 64];
    if (pass->note_count == LJP_PROFILE_MAX_NOTES) {
      pass->more_notes += s->alias_count - i;
      break;
    }
    snprintf(text, sizeof text, "function_alias_%u is the chunk named \"%.*s%s",
             i + 1, (int)(source.len < SHOWN ? source.len : SHOWN), source.data,
             source.len > SHOWN ? "...\"" : "\"");
    status =
        ljp_tarantool_intern_text(p, text, &pass->notes[pass->note_count++]);
  }
  return status;
}
