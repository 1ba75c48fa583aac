/*
** C functions by address. Symbols come in any order, many at once (a
** library's), again and again, and between events. So they are kept in sorted
** runs, each less than half as long as the one before it: a symbol is moved
** O(log n) times, and a search looks at O(log n) runs. One thread a table.
*/
#ifndef LJP_PARSERS_TARANTOOL_CFUNCS_H
#define LJP_PARSERS_TARANTOOL_CFUNCS_H

#include <stdint.h>

#include "src/base/status.h"

struct ljp_cfunc {
  uint64_t address;
  uint32_t name; /* As given to ljp_cfuncs_add(). */
  uint32_t age;  /* Number of those before it. */
};

#define LJP_CFUNC_RUNS 40u /* More than the logarithm of any number of them. */
struct ljp_cfuncs {
  struct ljp_cfunc *list, *spare;
  uint32_t count, room, spare_room;
  uint32_t runs[LJP_CFUNC_RUNS + 1]; /* Where each begins; then where new ones
                                     ** are, unsorted. */
  uint32_t run_count;
};

void ljp_cfuncs_fini(struct ljp_cfuncs *cfuncs);

/* Adds a function, in place of an earlier one with its address. LJP_ERR_MEM. */
enum ljp_status ljp_cfuncs_add(struct ljp_cfuncs *cfuncs, uint64_t address,
                               uint32_t name);

/* The function with the highest address that is not above this one; NULL:
** there is none. Valid until the next call. LJP_ERR_MEM. */
enum ljp_status ljp_cfuncs_find(struct ljp_cfuncs *cfuncs, uint64_t address,
                                const struct ljp_cfunc **found);

#endif
