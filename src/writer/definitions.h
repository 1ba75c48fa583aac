/*
** Definitions that the writer has met, kept as the bytes of their records by
** class and key, so that each epoch can repeat what it needs without asking the
** session's owner again. Writer thread only. The table itself has no bound: the
** caller watches `bytes`.
*/
#ifndef LJP_DEFINITIONS_H
#define LJP_DEFINITIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/status.h"

enum ljp_def_class {
  LJP_DEF_PROTO = 1,
  LJP_DEF_TRACE,
  LJP_DEF_LABELS,
  LJP_DEF_BUILTIN, /* Up to here describe() can give them again. */
  LJP_DEF_MODULE,
  LJP_DEF_THREAD,
  LJP_DEF_VM,
  LJP_DEF_PRODUCER,
  LJP_DEF_INFO
};

struct ljp_def {
  uint64_t key; /* Class in bits 60-63; 0: empty slot. */
  uint64_t id;  /* In the file. */
  uint8_t *record;
  uint32_t len;
  uint32_t epoch; /* In which it was last written; 0: not yet. */
  uint32_t proto; /* Number of a prototype that it names; 0: none. */
  bool ended;     /* The next purge may remove it. */
  bool kept;      /* But not the very next one. */
};

/* Memory of a definition beside its record: slots, of which up to three in four
** are empty between two doublings, and malloc()'s own. */
enum { LJP_DEF_OVERHEAD = 3 * sizeof(struct ljp_def) + 16 };

struct ljp_defs {
  struct ljp_def *slots;
  uint32_t count, capacity;
  size_t bytes; /* Of memory, estimated. */
};

enum ljp_status ljp_defs_init(struct ljp_defs *defs);
void ljp_defs_fini(struct ljp_defs *defs);

/* NULL if unknown. Valid until the next put or purge. */
struct ljp_def *ljp_defs_find(struct ljp_defs *defs, enum ljp_def_class class,
                              uint64_t key);

/* Copies the record; replaces a definition with the same key. NULL: out of
** memory. */
struct ljp_def *ljp_defs_put(struct ljp_defs *defs, enum ljp_def_class class,
                             uint64_t key, uint64_t id, const uint8_t *record,
                             size_t len);

/* Removes definitions that have ended, except modules, which nodes may still
** name. With all_lazy (the nodes are removed, too): also modules that have
** ended and everything that describe() can give again. Leaves those that are
** `kept`, once. Allocates nothing. */
void ljp_defs_purge(struct ljp_defs *defs, bool all_lazy);

/* 0 for an empty slot. */
static inline uint64_t ljp_def_class(const struct ljp_def *def)
{
  return def->key >> 60;
}

#endif
