/*
** See labels.h. Sets are interned by their pairs of strings, so the same labels
** are one set in all epochs and inputs.
*/
#include "parsers/profile/labels.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "parsers/base/array.h"
#include "parsers/profile/intern.h"
#include "parsers/profile/rows.h"
#include "parsers/profile/tables.h"
#include "parsers/stream/labels.h"
#include "src/base/assert.h"

#define TOO_MANY_LABELS "(too many)"
#define LOST_LABELS "(unknown)"

/* Makes room for one more in the array p->members; false: no memory. */
#define RESERVE(p, member)                                                     \
  ljp_array_reserve(&(p)->member##s, (p)->member##_count,                      \
                    &(p)->pass->member##_room, sizeof *(p)->member##s)

/* -- The filter ------------------------------------------------------------ */

/* The parts of "KEY=VALUE". */
static void labels_split(const char *filter, struct ljp_str *key,
                         struct ljp_str *value)
{
  size_t len = strcspn(filter, "=");
  *key = (struct ljp_str){filter, (uint32_t)len};
  filter += len + (filter[len] != '\0');
  *value = (struct ljp_str){filter, (uint32_t)strlen(filter)};
}

/* Whether the options select events with these labels. */
static bool labels_wanted(const struct ljp_profile *p,
                          const struct ljp_profile_labels *set)
{
  struct ljp_str key, want;
  for (unsigned i = 0; i < p->options.labels.count; i++) {
    struct ljp_str has = {0};
    labels_split(p->options.labels.list[i], &key, &want);
    for (uint32_t k = 0; k < set->count; k++) {
      const struct ljp_profile_label_pair *pair =
          &p->label_pairs[set->first + k];
      if (ljp_str_same(ljp_profile_str(p, pair->key), key))
        has = ljp_profile_str(p, pair->value);
    }
    if (!ljp_str_same(has, want))
      return false;
  }
  return true;
}

/* -- Sets ------------------------------------------------------------------ */

enum ljp_status ljp_labels_init(struct ljp_profile *p)
{
  static const char *const texts[LJP_LABELS_OWN] = {"", TOO_MANY_LABELS,
                                                    LOST_LABELS};
  const bool filtered = p->options.labels.count;
  enum ljp_status status;
  for (uint32_t i = 0; i < LJP_LABELS_OWN; i++) {
    const struct ljp_str text = {texts[i], (uint32_t)strlen(texts[i])};
    if (!RESERVE(p, label))
      return LJP_ERR_MEM;
    struct ljp_profile_labels *set = &p->labels[p->label_count++];
    *set = (struct ljp_profile_labels){0};
    set->wanted = i == LJP_LABELS_NONE ? labels_wanted(p, set) : !filtered;
    if ((status = ljp_profile_intern_string(p, text, &p->label_texts[i])))
      return status;
  }
  return LJP_OK;
}

/* Finds a set like the one whose pairs have just been added after the others,
** and takes these away again; else keeps it. */
static enum ljp_status labels_intern(struct ljp_profile *p,
                                     struct ljp_profile_labels set,
                                     uint32_t *labels)
{
  struct ljp_index *index = &p->pass->label_index;
  const struct ljp_profile_label_pair *pairs = &p->label_pairs[set.first];
  uint64_t h = p->strings.seed;
  if (!ljp_index_reserve(index) || !RESERVE(p, label))
    return LJP_ERR_MEM;
  for (uint32_t i = 0; i < set.count; i++)
    h = ljp_hash_mix(h, (uint64_t)pairs[i].key << 32 | pairs[i].value);
  uint32_t hash = ljp_hash_finish(h);
  struct ljp_index_slot *slot = ljp_index_at(index, hash);
  for (; slot->item; slot = ljp_index_next(index, slot)) {
    const struct ljp_profile_labels *old = &p->labels[slot->item - 1];
    if (slot->hash == hash && old->count == set.count &&
        memcmp(&p->label_pairs[old->first], pairs, set.count * sizeof *pairs) ==
            0) {
      *labels = slot->item - 1;
      p->label_pair_count = set.first;
      return LJP_OK;
    }
  }
  if (p->label_count >= LJP_PROFILE_MAX_LABELS) {
    *labels = LJP_LABELS_TOO_MANY;
    p->label_pair_count = set.first;
    return LJP_OK;
  }
  set.wanted = labels_wanted(p, &set);
  ljp_index_put(index, slot, hash, p->label_count);
  p->labels[p->label_count] = set;
  *labels = p->label_count++;
  return LJP_OK;
}

enum ljp_status ljp_labels_define(struct ljp_profile *p,
                                  const struct ljp_rec_labels *rec,
                                  uint32_t *labels)
{
  struct ljp_str rest = rec->labels, key, value;
  struct ljp_profile_labels set = {.first = p->label_pair_count};
  struct ljp_profile_label_pair pair;
  enum ljp_status status;
  while (ljp_labels_next(&rest, &key, &value)) {
    if (set.count >= LJP_PROFILE_MAX_LABEL_PAIRS - set.first) {
      *labels = LJP_LABELS_TOO_MANY;
      p->label_pair_count = set.first;
      return LJP_OK;
    }
    if ((status = ljp_profile_intern_string(p, key, &pair.key)) ||
        (status = ljp_profile_intern_string(p, value, &pair.value)))
      return status;
    if (!RESERVE(p, label_pair))
      return LJP_ERR_MEM;
    p->label_pairs[p->label_pair_count++] = pair;
    set.count++;
  }
  if (!set.count) {
    *labels = LJP_LABELS_NONE;
    return LJP_OK;
  }
  return labels_intern(p, set, labels);
}

enum ljp_status ljp_labels_find(struct ljp_profile *p, uint64_t id,
                                uint32_t *labels)
{
  const struct ljp_rec_labels *rec =
      ljp_model_labels(&p->pass->reader->model, id);
  *labels = LJP_LABELS_LOST;
  return rec ? ljp_labels_define(p, rec, labels) : LJP_OK;
}

enum ljp_status ljp_profile_filter(struct ljp_profile *p, uint64_t time_ns,
                                   uint64_t stack, bool *wanted)
{
  enum ljp_status status = LJP_OK;
  uint32_t labels;
  *wanted = *wanted && ljp_profile_time_wanted(p, time_ns);
  if (*wanted && p->options.labels.count &&
      !(status = ljp_profile_stack_labels(p, stack, &labels))) {
    *wanted = p->labels[labels].wanted;
    p->totals.lost_labels += labels == LJP_LABELS_LOST;
  }
  return status;
}

/* -- Questions ------------------------------------------------------------- */

uint32_t ljp_labels_key(const struct ljp_profile *p, struct ljp_str key)
{
  for (uint32_t i = 0; i < p->label_pair_count; i++)
    if (ljp_str_same(ljp_profile_str(p, p->label_pairs[i].key), key))
      return p->label_pairs[i].key;
  return 0;
}

uint32_t ljp_labels_value(const struct ljp_profile *p, uint32_t labels,
                          uint32_t key)
{
  const struct ljp_profile_labels *set = &p->labels[labels];
  if (labels < LJP_LABELS_OWN)
    return p->label_texts[labels];
  for (uint32_t i = 0; i < set->count; i++)
    if (p->label_pairs[set->first + i].key == key)
      return p->label_pairs[set->first + i].value;
  return 0;
}

/* A pair with its texts, by which it is sorted. */
struct labels_pair {
  struct ljp_str key, value;
  struct ljp_profile_label_pair pair;
};

static int labels_compare_texts(struct ljp_str a, struct ljp_str b)
{
  size_t len = a.len < b.len ? a.len : b.len;
  int order = len ? memcmp(a.data, b.data, len) : 0;
  return order ? order : a.len < b.len ? -1 : a.len > b.len;
}

static int labels_compare(const void *a, const void *b)
{
  const struct labels_pair *x = a, *y = b;
  int order = labels_compare_texts(x->key, y->key);
  return order ? order : labels_compare_texts(x->value, y->value);
}

/* All pairs, sorted, each once. NULL: no memory. */
static struct labels_pair *labels_sorted_pairs(const struct ljp_profile *p,
                                               uint32_t *count)
{
  const uint32_t all = p->label_pair_count;
  struct labels_pair *pairs = malloc(((size_t)all + 1) * sizeof *pairs);
  *count = 0;
  if (!pairs)
    return NULL;
  for (uint32_t i = 0; i < all; i++)
    pairs[i] = (struct labels_pair){ljp_profile_str(p, p->label_pairs[i].key),
                                    ljp_profile_str(p, p->label_pairs[i].value),
                                    p->label_pairs[i]};
  qsort(pairs, all, sizeof *pairs, labels_compare);
  for (uint32_t i = 0; i < all; i++)
    if (!*count || labels_compare(&pairs[*count - 1], &pairs[i]) != 0)
      pairs[(*count)++] = pairs[i];
  return pairs;
}

bool ljp_labels_keys(const struct ljp_profile *p, struct ljp_labels_keys *keys)
{
  uint32_t count;
  struct labels_pair *pairs = labels_sorted_pairs(p, &count);
  keys->count = 0;
  keys->list = pairs ? malloc(((size_t)count + 1) * sizeof *keys->list) : NULL;
  for (uint32_t i = 0; keys->list && i < count; i++) {
    if (!keys->count || keys->list[keys->count - 1].key != pairs[i].pair.key)
      keys->list[keys->count++] =
          (struct ljp_labels_key){.key = pairs[i].pair.key};
    keys->list[keys->count - 1].values++;
  }
  free(pairs);
  return keys->list;
}

/* Appends to p->error the keys of the file (key 0), or the values of a key. */
static enum ljp_status labels_list(struct ljp_profile *p, uint32_t key)
{
  uint32_t count, last = 0;
  size_t at = strlen(p->error), room = sizeof p->error;
  struct labels_pair *pairs = labels_sorted_pairs(p, &count);
  bool first = true;
  if (!pairs)
    return LJP_ERR_MEM;
  for (uint32_t i = 0; i < count && at < room; i++) {
    struct ljp_str s = key ? pairs[i].value : pairs[i].key;
    if (key ? pairs[i].pair.key != key : !first && pairs[i].pair.key == last)
      continue;
    if (room - at < 64) {
      snprintf(p->error + at, room - at, " ...");
      break;
    }
    at += (size_t)snprintf(p->error + at, room - at, "%s '%.*s'",
                           first ? "" : ",", s.len < 40 ? (int)s.len : 40,
                           s.len ? s.data : "");
    last = pairs[i].pair.key;
    first = false;
  }
  free(pairs);
  return LJP_ERR_USE;
}

/* Whether a key, and with a value this value of it, is in the file. */
static enum ljp_status labels_check_pair(struct ljp_profile *p,
                                         struct ljp_str key,
                                         struct ljp_str value)
{
  const uint32_t number = ljp_labels_key(p, key);
  const int len = key.len < 40 ? (int)key.len : 40;
  if (!number && !p->label_pair_count) {
    snprintf(p->error, sizeof p->error, "there is no label '%.*s': %s", len,
             key.data,
             p->has_labels || p->totals.lost_labels
                 ? "those of the file were lost in a gap"
                 : "the file has no labels");
    return LJP_ERR_USE;
  }
  if (!number) {
    snprintf(p->error, sizeof p->error,
             "there is no label '%.*s'; those of the file are", len, key.data);
    return labels_list(p, 0);
  }
  for (uint32_t i = 0; value.len && i < p->label_pair_count; i++)
    if (p->label_pairs[i].key == number &&
        ljp_str_same(ljp_profile_str(p, p->label_pairs[i].value), value))
      return LJP_OK;
  if (!value.len)
    return LJP_OK;
  snprintf(p->error, sizeof p->error,
           "the label '%.*s' never has the value '%.*s'; its values are", len,
           key.data, value.len < 40 ? (int)value.len : 40, value.data);
  return labels_list(p, number);
}

enum ljp_status ljp_labels_check(struct ljp_profile *p)
{
  struct ljp_str key, value;
  enum ljp_status status = LJP_OK;
  for (unsigned i = 0; i < p->options.labels.count && !status; i++) {
    labels_split(p->options.labels.list[i], &key, &value);
    status = labels_check_pair(p, key, value);
  }
  if (!status && p->options.label_key) {
    key = (struct ljp_str){p->options.label_key,
                           (uint32_t)strlen(p->options.label_key)};
    status = labels_check_pair(p, key, (struct ljp_str){0});
  }
  return status;
}

/* -- After the pass -------------------------------------------------------- */

uint32_t ljp_labels_at(const struct ljp_tables *old, const uint32_t *labels,
                       uint32_t i)
{
  const struct ljp_profile_node *node = &old->nodes[i];
  const struct ljp_profile_frame *f = &old->frames[node->frame];
  if (node->parent)
    return labels[node->parent] & ~LJP_LABELS_ONLY;
  switch (f->kind) {
  case LJP_FRAME_LABELS:
    return (uint32_t)f->offset | LJP_LABELS_ONLY;
  case LJP_FRAME_LOST:
    return LJP_LABELS_LOST;
  case LJP_FRAME_TOO_MANY:
    return LJP_LABELS_TOO_MANY;
  }
  return LJP_LABELS_NONE;
}

enum ljp_status ljp_labels_move_row(struct ljp_profile *p,
                                    const struct ljp_tables *old,
                                    struct ljp_profile_row *row,
                                    uint32_t labels, uint32_t *node)
{
  struct ljp_profile_context c = p->contexts[row->context];
  const uint64_t events =
      row->count + (row->memory ? old->memory[row->memory].realloc_events : 0);
  if (labels & LJP_LABELS_ONLY) {
    *node = LJP_NODE_NO_STACK;
    p->totals.no_stack += events;
  }
  c.labels = labels & ~LJP_LABELS_ONLY;
  p->totals.too_many_labels += c.labels == LJP_LABELS_TOO_MANY ? events : 0;
  p->totals.lost_labels += c.labels == LJP_LABELS_LOST ? events : 0;
  return ljp_profile_intern_context(p, &c, &row->context);
}
