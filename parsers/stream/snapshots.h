/*
** Snapshots: how much of each heap snapshot a stream holds (RFC 7). One at a time
** is followed, since a stream holds them one after the other; memory is bounded.
** One thread.
*/
#ifndef LJP_PARSERS_SNAPSHOTS_H
#define LJP_PARSERS_SNAPSHOTS_H

#include "parsers/stream/item.h"

/* What was found of a snapshot, and what there should be. */
struct ljp_snapshot {
  uint64_t number;        /* 1: the first one whose beginning is there. */
  uint64_t id, vm;        /* Of the stream. vm: 0 if not `begins`. */
  bool announced;         /* Only its place among the events is there. */
  bool begins, ends;      /* Its beginning, its end is there. */
  uint64_t objects, refs; /* References: keys, too. */
  uint64_t bytes;         /* If not `begins`, without parts of objects. */
  struct ljp_rec_heap head;
  struct ljp_rec_heap_end end;
};

#define LJP_SNAPSHOTS_MOMENTS 64u

struct ljp_snapshots {
  uint64_t begun, incomplete; /* Some incomplete ones never began. */
  bool open;                  /* `now` has begun, and has no end yet. */
  struct ljp_snapshot now;
  /* Announced, and not begun yet. Further ones are not followed. */
  struct ljp_rec_heap_moment moments[LJP_SNAPSHOTS_MOMENTS];
  unsigned moment_count;
  /* Called for each snapshot that is not whole, when this is certain. */
  void (*missing)(void *ctx, const struct ljp_snapshot *snapshot);
  void *ctx;
};

/* Takes each item of a stream, FINISH too. s: zeroed but for `missing`. */
void ljp_snapshots_take(struct ljp_snapshots *s, const struct ljp_item *item);

bool ljp_snapshot_is_whole(const struct ljp_snapshot *snapshot);

#endif
