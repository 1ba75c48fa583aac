/*
** The export of memory events for Tarantool's memprof tools. It needs each
** event, not sums: so it takes the events while the profile is made (options
** memory_event), and keeps them in a temporary file until all names are known.
*/
#ifndef LJP_TOOLS_LJM_H
#define LJP_TOOLS_LJM_H

#include "tools/export/export.h"

/* NULL: no memory, or no temporary file (errno). */
struct ljp_ljm *ljp_ljm_new(void);
void ljp_ljm_free(struct ljp_ljm *ljm);

/* For ljp_profile_options.memory_event; ctx is the struct ljp_ljm. */
enum ljp_status ljp_ljm_take(void *ctx, const struct ljp_reader *reader,
                             const struct ljp_item *item);

#endif
