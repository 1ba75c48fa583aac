/*
** Numbers that the writer gives to prototypes. A reference, as frame words carry
** it, may come to stand for another prototype once nothing in a ring means the
** first one any more (describe.h). The stack tree and the definitions remember
** for longer than that, so they go by numbers: 1, 2 ... of what was asked for,
** and no two prototypes have the same one until both are cleared.
** Writer thread only. Memory: 4 bytes a reference, in pages of 16 KiB.
*/
#ifndef LJP_REFS_H
#define LJP_REFS_H

#include <stdbool.h>
#include <stdint.h>

#include "src/base/status.h"

enum { LJP_REFS_PAGE = 4096, LJP_REFS_PAGES = 4096 };

struct ljp_refs {
  uint32_t **pages;    /* LJP_REFS_PAGES of them, NULL: nothing in it */
  uint32_t last;       /* number given */
  uint32_t generation; /* grows when a reference loses its number */
};

enum ljp_status ljp_refs_init(struct ljp_refs *refs);
void ljp_refs_fini(struct ljp_refs *refs);

/* 0: it has none. */
uint32_t ljp_refs_number(const struct ljp_refs *refs, uint32_t ref);

/* Gives the next number to a reference that has none. 0: it is too large, or
** there is no memory. */
uint32_t ljp_refs_give(struct ljp_refs *refs, uint32_t ref);

/* What it stood for has gone. */
void ljp_refs_forget(struct ljp_refs *refs, uint32_t ref);

/* Together with all that knows numbers. */
void ljp_refs_clear(struct ljp_refs *refs);

#endif
