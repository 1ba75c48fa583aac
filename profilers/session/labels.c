/*
** See labels.h. A set is found by its text in a table of numbers; the number
** leads to the text. A set is complete before its number is in the table, and
** neither changes afterwards.
*/
#include "profilers/session/labels.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/assert.h"
#include "src/base/sigsafe.h"

enum { ALL = LJP_LABELS_SETS + LJP_LABELS_OTHERS, SLOTS = 4 * LJP_LABELS_SETS };
_Static_assert((SLOTS & (SLOTS - 1)) == 0 && SLOTS > 2 * ALL, "half empty");

struct labels_set {
  uint32_t bytes;
  char text[]; /* As the stream has it (RFC 1). */
};

static struct labels_set *_Atomic labels_sets[1 + ALL];
static _Atomic uint32_t labels_slots[SLOTS];
static _Atomic uint32_t labels_count;
static _Atomic uint64_t labels_others;
static const char labels_other[] = "(other)";

static const struct labels_set *labels_set(uint64_t set)
{
  /* Acquire: the set was complete before its number was told. */
  return set && set <= ALL
             ? atomic_load_explicit(&labels_sets[set], memory_order_acquire)
             : NULL;
}

void ljp_labels_get(uint32_t set, struct ljp_labels *labels)
{
  const struct labels_set *s = labels_set(set);
  labels->count = 0;
  for (uint32_t at = 0; s && at < s->bytes;) {
    struct ljp_label *label = &labels->list[labels->count++];
    label->key = s->text + at;
    label->value = label->key + strlen(label->key) + 1;
    at = (uint32_t)(label->value + strlen(label->value) + 1 - s->text);
  }
}

bool ljp_labels_put(struct ljp_labels *labels, const char *key,
                    const char *value)
{
  unsigned at = 0;
  while (at < labels->count && strcmp(labels->list[at].key, key) < 0)
    at++;
  struct ljp_label *label = &labels->list[at];
  const unsigned behind = labels->count - at;
  const bool known = behind && strcmp(label->key, key) == 0;
  if (known && value) {
    label->value = value;
  } else if (known) {
    memmove(label, label + 1, (behind - 1) * sizeof *label);
    labels->count--;
  } else if (value) {
    if (labels->count == LJP_LABELS_PAIRS)
      return false;
    memmove(label + 1, label, behind * sizeof *label);
    *label = (struct ljp_label){key, value};
    labels->count++;
  }
  return true;
}

size_t ljp_labels_bytes(const struct ljp_labels *labels)
{
  size_t bytes = 0;
  for (unsigned i = 0; i < labels->count; i++)
    bytes += strlen(labels->list[i].key) + strlen(labels->list[i].value) + 2;
  return bytes;
}

/* -- The table ------------------------------------------------------------- */

static size_t labels_text(const struct ljp_labels *labels,
                          char text[LJP_NAME_BYTES])
{
  char *at = text;
  ljp_assert(ljp_labels_bytes(labels) <= LJP_NAME_BYTES);
  for (unsigned i = 0; i < labels->count; i++) {
    at = stpcpy(at, labels->list[i].key) + 1;
    at = stpcpy(at, labels->list[i].value) + 1;
  }
  return (size_t)(at - text);
}

static uint32_t labels_hash(const char *text, size_t bytes)
{
  uint32_t hash = 2166136261u; /* FNV-1a */
  for (size_t i = 0; i < bytes; i++)
    hash = (hash ^ (unsigned char)text[i]) * 16777619u;
  return hash;
}

static struct labels_set *labels_new(const char *text, size_t bytes)
{
  struct labels_set *s = malloc(sizeof *s + bytes);
  if (s) {
    s->bytes = (uint32_t)bytes;
    memcpy(s->text, text, bytes);
  }
  return s;
}

/* A number that nobody has. 0: all are taken. */
static uint32_t labels_number(uint32_t limit)
{
  uint32_t count = atomic_load(&labels_count);
  while (count < limit)
    if (atomic_compare_exchange_weak(&labels_count, &count, count + 1))
      return count + 1;
  return 0;
}

enum labels_found { LABELS_FOUND, LABELS_MADE, LABELS_FULL, LABELS_NO_MEMORY };

/* Finds the set of this text, or makes it unless `limit` are there. */
static enum labels_found labels_find(const char *text, size_t bytes,
                                     uint32_t limit, uint32_t *number)
{
  struct labels_set *made = NULL;
  uint32_t at = labels_hash(text, bytes), mine = 0;
  for (;; at++) {
    _Atomic uint32_t *slot = &labels_slots[at & (SLOTS - 1)];
    uint32_t there = atomic_load(slot);
    if (!there && !mine) {
      if (!(made = labels_new(text, bytes)))
        return LABELS_NO_MEMORY;
      if (!(mine = labels_number(limit))) {
        free(made);
        return LABELS_FULL;
      }
      atomic_store_explicit(&labels_sets[mine], made, memory_order_release);
    }
    if (!there && atomic_compare_exchange_strong(slot, &there, mine)) {
      *number = mine;
      return LABELS_MADE;
    }
    const struct labels_set *s = labels_set(there);
    ljp_assert(s);
    if (s->bytes == bytes && memcmp(s->text, text, bytes) == 0) {
      /* If another thread has just made it, our number is never used. */
      *number = there;
      return LABELS_FOUND;
    }
  }
}

/* -- Keys with many values ------------------------------------------------- */

/* How many values each key has, roughly: hashes of pairs and of keys, each counted
** when a set of it is made. What finds no room is not counted. */
enum { PAIRS = 4 * LJP_LABELS_SETS, KEYS = 1024, TRIES = 32 };
_Static_assert((PAIRS & (PAIRS - 1)) == 0 && (KEYS & (KEYS - 1)) == 0, "masks");
static _Atomic uint32_t labels_pairs[PAIRS];
static _Atomic uint32_t labels_keys[KEYS], labels_values[KEYS];

/* Finds the hash in a table of `size` words. *added: it is new. Returns its place, or
** -1: there is no room. */
static int labels_place(_Atomic uint32_t *table, uint32_t size, uint32_t hash,
                        bool *added)
{
  hash |= 1;
  for (uint32_t i = 0; i < TRIES; i++) {
    uint32_t at = (hash + i) & (size - 1), there = 0;
    *added = atomic_compare_exchange_strong(&table[at], &there, hash);
    if (*added || there == hash)
      return (int)at;
  }
  return -1;
}

static int labels_key(const char *key)
{
  bool added;
  return labels_place(labels_keys, KEYS, labels_hash(key, strlen(key)), &added);
}

static void labels_count_values(const struct ljp_labels *labels)
{
  for (unsigned i = 0; i < labels->count; i++) {
    const struct ljp_label *label = &labels->list[i];
    bool added = false;
    uint32_t hash = labels_hash(label->value, strlen(label->value)) * 31 +
                    labels_hash(label->key, strlen(label->key));
    int key = labels_key(label->key);
    if (key >= 0 && labels_place(labels_pairs, PAIRS, hash, &added) >= 0 &&
        added)
      atomic_fetch_add(&labels_values[key], 1);
  }
}

/* The label whose key has the most values, of those that are not "(other)". */
static struct ljp_label *labels_richest(struct ljp_labels *labels)
{
  struct ljp_label *richest = NULL;
  uint32_t most = 0;
  for (unsigned i = 0; i < labels->count; i++) {
    int key = labels_key(labels->list[i].key);
    uint32_t values = key < 0 ? UINT32_MAX : labels_values[key];
    if (labels->list[i].value != labels_other && (!richest || values > most)) {
      richest = &labels->list[i];
      most = values;
    }
  }
  return richest;
}

bool ljp_labels_intern(const struct ljp_labels *labels, uint32_t *set)
{
  char text[LJP_NAME_BYTES];
  struct ljp_labels others = *labels;
  *set = 0;
  if (!labels->count)
    return true;
  enum labels_found found =
      labels_find(text, labels_text(labels, text), LJP_LABELS_SETS, set);
  if (LJP_LIKELY(found == LABELS_FOUND))
    return true;
  if (found == LABELS_MADE) {
    labels_count_values(labels);
    return true;
  }
  if (found == LABELS_NO_MEMORY)
    return false;
  atomic_fetch_add_explicit(&labels_others, 1, memory_order_relaxed);
  struct ljp_label *richest;
  /* Without room even for the last of these, the work has no labels. */
  while (found == LABELS_FULL && (richest = labels_richest(&others)) != NULL) {
    richest->value = labels_other;
    if (ljp_labels_bytes(&others) <= sizeof text)
      found = labels_find(text, labels_text(&others, text), ALL, set);
  }
  return found != LABELS_NO_MEMORY;
}

uint64_t ljp_labels_others(void)
{
  return atomic_load_explicit(&labels_others, memory_order_relaxed);
}

bool ljp_labels_describe(uint64_t set, char text[LJP_NAME_BYTES], size_t *bytes)
{
  const struct labels_set *s = labels_set(set);
  if (!s)
    return false;
  memcpy(text, s->text, s->bytes);
  *bytes = s->bytes;
  return true;
}
