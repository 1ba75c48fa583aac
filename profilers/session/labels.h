/*
** Sets of labels: what a program calls its work (route=/a, tenant=x). Each set has
** a number, which it keeps as long as the process lives; a Lua thread has the
** number of its set (src/luajit/heap.h). Any thread; no locks, so a child of fork()
** goes on with the sets of its parent.
**
** Bounded: beyond LJP_LABELS_SETS sets, a new one gets the value "(other)" for the
** key that has the most values, then for the next, until there is such a set or
** room for it. That is counted.
*/
#ifndef LJP_LABELS_H
#define LJP_LABELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/describe.h"
#include "src/base/format.h"

enum {
  LJP_LABELS_SETS = LJP_MAX_LABEL_SETS,
  LJP_LABELS_OTHERS = 256, /* More sets, for those with "(other)". */
  LJP_LABELS_PAIRS = 16,
  LJP_LABELS_KEY_BYTES = 64,    /* without the NUL */
  LJP_LABELS_VALUE_BYTES = 256, /* the same */
};

struct ljp_label {
  const char *key, *value; /* with a NUL */
};

struct ljp_labels {
  unsigned count;
  struct ljp_label list[LJP_LABELS_PAIRS]; /* sorted by key */
};

/* The labels of a set; none for 0. The strings stay. */
void ljp_labels_get(uint32_t set, struct ljp_labels *labels);

/* Sets a label, or takes it away (value NULL). False: there are too many. */
bool ljp_labels_put(struct ljp_labels *labels, const char *key,
                    const char *value);

/* The bytes of all keys and values, with their NULs. At most LJP_NAME_BYTES for a
** set. */
size_t ljp_labels_bytes(const struct ljp_labels *labels);

/* The number of the set; 0 for no labels. False: out of memory. */
bool ljp_labels_intern(const struct ljp_labels *labels, uint32_t *set);

/* How often values were replaced by "(other)". */
uint64_t ljp_labels_others(void);

/* For the writer: see struct ljp_describe. */
bool ljp_labels_describe(uint64_t set, char text[LJP_NAME_BYTES],
                         size_t *bytes);

#endif
