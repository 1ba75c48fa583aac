/*
** Modules: what the loader has mapped, where and since when. Resolves an
** address at a given time to a module, or to none if that is not certain.
** Invariants: an id is never used again. A module that is gone stays known for
** two seconds, for events that were recorded before and are drained later.
** Writer thread only. A look calls dl_iterate_phdr(), which takes the loader's
** lock, so it must not run in a signal handler.
*/
#ifndef LJP_MODULES_H
#define LJP_MODULES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/status.h"

enum { LJP_BUILD_ID_MAX_BYTES = 64 };

struct ljp_module {
  uint64_t start, end, bias;
  uint64_t maybe_from_ns; /* The look before the one that found it. */
  uint64_t from_ns;       /* The look that found it. */
  uint64_t until_ns;      /* The last look that found it. */
  uint64_t gone_ns;       /* The end of the look that missed it; 0: loaded. */
  uint32_t id, flags;
  uint32_t build_id_len;
  uint8_t build_id[LJP_BUILD_ID_MAX_BYTES];
  char *path;
  bool seen;
};

struct ljp_modules {
  struct ljp_module *list; /* Loaded ones sorted by start, then gone ones. */
  size_t loaded, count, capacity;
  uint64_t adds, subs; /* The loader's counters at the last look. */
  uint64_t looked_ns;
  uint32_t next_id;
  uint32_t generation; /* Grows when the list changes. */
};

void ljp_modules_init(struct ljp_modules *m);
void ljp_modules_fini(struct ljp_modules *m);

/* Looks at the loader's list if the loader's counters have changed. On
** LJP_ERR_MEM the list is unchanged and the next look tries again. */
enum ljp_status ljp_modules_look(struct ljp_modules *m, uint64_t now_ns);

/* Every look holds this lock, and fork() does: otherwise a child might inherit
** the loader's lock from a writer thread that does not exist in the child. */
void ljp_modules_hold(void);
void ljp_modules_unhold(void);
/* In a copy of a process whose threads it does not have: frees the lock. */
void ljp_modules_renew(void);

/* The module that was certainly at the address at that time, or NULL. *settled
** is false if the answer may differ for another time: do not cache it. The
** result is valid until the next look. */
const struct ljp_module *ljp_modules_find(const struct ljp_modules *m,
                                          uint64_t address, uint64_t time_ns,
                                          bool *settled);

#endif
