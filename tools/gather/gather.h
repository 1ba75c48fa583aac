/*
** Gather: shared by the parts of `ljprof gather`. command.c reads the options,
** list.c prints what is in the store, merge.c makes one file of the segments that
** dead processes have left, prune.c removes what is too old or too much. One
** thread.
**
** Only files that a store's writers have made (src/base/store_name.h) are merged
** or removed. Whatever is removed is told.
*/
#ifndef LJP_TOOLS_GATHER_H
#define LJP_TOOLS_GATHER_H

#include <string.h>

#include "tools/shared/command.h"
#include "tools/shared/store.h"

struct ljp_gather {
  struct ljp_store store;
  const char *service; /* NULL: all. */
  bool failed;         /* An error was reported, or damage was found. */
};

/* Is it of the service that is asked for? */
static inline bool ljp_gather_takes(const struct ljp_gather *g,
                                    const struct ljp_segment *s)
{
  return !g->service || strcmp(g->service, s->made.service) == 0;
}

/* Looks again. False: reported. */
bool ljp_gather_look(struct ljp_gather *g);

void ljp_gather_list(struct ljp_gather *g, struct ljp_print *out);
void ljp_gather_merge(struct ljp_gather *g);
/* Before anything else: ends what an earlier merge has begun. */
void ljp_gather_recover(struct ljp_gather *g);
/* Each service takes at most so many bytes. */
void ljp_gather_prune_room(struct ljp_gather *g, uint64_t bytes);
/* No file is older than so many seconds. */
void ljp_gather_prune_age(struct ljp_gather *g, double seconds);

#endif
