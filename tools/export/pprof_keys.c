/*
** Keys of the program's labels in pprof's format.
**
** Invariant: no two labels of a sample have the same key, and no label of a sample
** has a key of the series that it goes to: an engine would keep only one of the two.
** A key that is taken gets a name of its own, which the caller is told. Keys that
** need no change come first, so they keep their names whatever else there is.
*/
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "parsers/base/array.h"
#include "parsers/base/index.h"
#include "tools/export/pprof.h"

struct key_names {
  char **list;
  uint32_t count, room;
  struct ljp_index index; /* Over list, by text. */
  unsigned next;          /* A number that no new name has had. */
};

static uint32_t keys_hash(const char *text)
{
  uint64_t hash = 0;
  for (; *text; text++)
    hash = ljp_hash_mix(hash, (uint8_t)*text);
  return ljp_hash_finish(hash);
}

enum keys_taken { KEYS_NEW, KEYS_TAKEN, KEYS_NO_MEMORY };

static enum keys_taken keys_take(struct key_names *k, const char *name)
{
  uint32_t hash = keys_hash(name);
  if (!ljp_index_reserve(&k->index) ||
      !ljp_array_reserve(&k->list, k->count, &k->room, sizeof *k->list))
    return KEYS_NO_MEMORY;
  struct ljp_index_slot *slot = ljp_index_at(&k->index, hash);
  for (; slot->item; slot = ljp_index_next(&k->index, slot))
    if (slot->hash == hash && strcmp(k->list[slot->item - 1], name) == 0)
      return KEYS_TAKEN;
  if (!(k->list[k->count] = strdup(name)))
    return KEYS_NO_MEMORY;
  ljp_index_put(&k->index, slot, hash, k->count++);
  return KEYS_NEW;
}

static char *keys_text(struct ljp_str key)
{
  struct ljp_str plain = ljp_export_plain(key);
  char *text = plain.data ? realloc((char *)plain.data, plain.len + 1) : NULL;
  if (text)
    text[plain.len] = '\0';
  else
    free((char *)plain.data);
  return text;
}

/* A name that no other key has, in place of `taken`. NULL: no memory. */
static char *keys_rename(struct key_names *k, const char *taken)
{
  enum keys_taken what = KEYS_TAKEN;
  char *name = NULL;
  for (unsigned n = 1; what == KEYS_TAKEN; n = ++k->next) {
    free(name);
    if ((n == 1 ? asprintf(&name, "app_%s", taken)
                : asprintf(&name, "app%u_%s", n, taken)) < 0)
      return NULL;
    what = keys_take(k, name);
  }
  if (what == KEYS_NEW)
    return name;
  free(name);
  return NULL;
}

/* Names one key. exact: only if its text needs no change. false: no memory. */
static bool keys_name(struct ljp_pprof *w, struct ljp_pprof_labels *names,
                      uint32_t number, struct key_names *k, bool exact)
{
  struct ljp_str key = ljp_profile_str(w->e->p, number);
  char *base = w->e->plain_keys ? ljp_export_key(key) : keys_text(key);
  if (!base)
    return false;
  bool same = strlen(base) == key.len && memcmp(base, key.data, key.len) == 0;
  bool reserved = w->e->plain_keys && strncmp(base, "__", 2) == 0;
  char *name = NULL;
  enum keys_taken what = KEYS_TAKEN;
  if (same || !exact) {
    if (!reserved)
      what = keys_take(k, base);
    if (what == KEYS_TAKEN)
      name = keys_rename(k, base);
    if (what != KEYS_NO_MEMORY && (what == KEYS_NEW || name))
      names->keys[number] = (uint32_t)ljp_pprof_add_name(w, name ? name : base);
    if (name && w->e->renamed)
      w->e->renamed(w->e->renamed_ctx, key, name);
  }
  bool done = names->keys[number] || (exact && !same);
  free(name);
  free(base);
  return done;
}

bool ljp_pprof_name_keys(struct ljp_pprof *w, struct ljp_pprof_labels *names)
{
  static const char *const own[] = {"thread", "vm", "state", "type"};
  const struct ljp_profile *p = w->e->p;
  struct key_names k = {.next = 1};
  bool ok = true;
  for (size_t i = 0; ok && !w->e->own_labels && i < sizeof own / sizeof *own;
       i++)
    ok = keys_take(&k, own[i]) != KEYS_NO_MEMORY;
  for (unsigned i = 0; ok && i < w->e->series_key_count; i++)
    ok = keys_take(&k, w->e->series_keys[i]) != KEYS_NO_MEMORY;
  for (int pass = 0; pass < 2; pass++)
    for (uint32_t i = 0; ok && p->has_labels && i < p->label_pair_count; i++)
      if (p->label_pairs[i].key && p->label_pairs[i].value &&
          !names->keys[p->label_pairs[i].key])
        ok = keys_name(w, names, p->label_pairs[i].key, &k, pass == 0);
  for (uint32_t i = 0; i < k.count; i++)
    free(k.list[i]);
  free(k.list);
  ljp_index_fini(&k.index);
  if (!ok)
    w->status = LJP_ERR_MEM;
  return ok;
}
