/*
** Definitions that the writer has met, as the bytes of their records, by class
** and id: so that each epoch can repeat what it needs without asking anybody
** again. Writer thread only. Bounded by the caller, who looks at bytes.
*/
#ifndef LJP_DEFS_H
#define LJP_DEFS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/status.h"

enum ljp_def_class {
  LJP_DEF_PROTO = 1,
  LJP_DEF_TRACE,
  LJP_DEF_BUILTIN, /* Up to here: regenerated on demand, forgotten by clear. */
  LJP_DEF_MODULE,
  LJP_DEF_THREAD,
  LJP_DEF_VM,
  LJP_DEF_PRODUCER,
  LJP_DEF_INFO
};

struct ljp_def {
  uint64_t key; /* Class in bits 60-63; 0: empty slot. */
  uint64_t id;  /* That the file knows it by. */
  uint8_t *record;
  uint32_t len;
  uint32_t epoch; /* In which it was last written; 0: not yet. */
  uint32_t proto; /* Number of a prototype that it names; 0: none. */
  bool ended;     /* Forget it with the next purge. */
};

/* What one takes beside its record: slots, of which up to three in four are empty
** between two doublings, and what malloc() keeps. */
enum { LJP_DEF_OVERHEAD = 3 * sizeof(struct ljp_def) + 16 };

struct ljp_defs {
  struct ljp_def *slots;
  uint32_t count, capacity;
  size_t bytes; /* of memory, about */
};

enum ljp_status ljp_defs_init(struct ljp_defs *defs);
void ljp_defs_fini(struct ljp_defs *defs);

/* NULL if unknown. Valid until the next put, purge or clear. */
struct ljp_def *ljp_defs_find(struct ljp_defs *defs, enum ljp_def_class class,
                              uint64_t key);

/* Copies the record; replaces one with the same key. NULL: out of memory. */
struct ljp_def *ljp_defs_put(struct ljp_defs *defs, enum ljp_def_class class,
                             uint64_t key, uint64_t id, const uint8_t *record,
                             size_t len);

/* Forgets what has ended, modules excepted: nodes may still name them. With
** all_lazy (the nodes are forgotten too) modules as well, and everything that
** describe() can give again. Allocates nothing. */
void ljp_defs_purge(struct ljp_defs *defs, bool all_lazy);

#endif
