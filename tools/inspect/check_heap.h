/*
** What `ljprof check` says about heap snapshots. One thread.
*/
#ifndef LJP_TOOLS_CHECK_HEAP_H
#define LJP_TOOLS_CHECK_HEAP_H

#include "parsers/stream/snapshots.h"
#include "tools/shared/show.h"

/* A finding: a snapshot that is not whole, or not there. ctx: the shower. */
void ljp_check_snapshot(void *ctx, const struct ljp_snapshot *snapshot);

/* How many there are, if there are any. */
void ljp_check_snapshots(struct ljp_shower *show,
                         const struct ljp_snapshots *snapshots);

#endif
