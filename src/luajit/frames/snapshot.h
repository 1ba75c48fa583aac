/*
** Snapshots of a trace: the inlined frames at a place that has no marker.
*/
#ifndef LJP_SNAPSHOT_H
#define LJP_SNAPSHOT_H

#include "src/luajit/frames.h"

struct ljp_snapshot {
  uint64_t ir;  /* of the trace */
  uint64_t map; /* of its entries */
  uint32_t entries;
  uint64_t pc;
  uint32_t baseslot; /* of its innermost frame; 2 is the trace's own */
  uint32_t jump;     /* offset of what leaves the trace at its end */
  uint32_t loop;     /* offset to which its loop goes back, 0: none */
};

/* The last snapshot at or before an offset into the code; object: the
** GCtrace. */
LJP_SIGSAFE bool ljp_snap_at(uint64_t object, uint32_t offset,
                             struct ljp_snapshot *snap);
/* The snapshot with this number, which is that of the exit. */
LJP_SIGSAFE bool ljp_snap_number(uint64_t object, uint32_t number,
                                 struct ljp_snapshot *snap);

/* Appends its inlined frames, innermost first. Sets *pc to the position in the
** frame below, which lies on the Lua stack. False: not understood. */
LJP_SIGSAFE bool ljp_snap_inlined(const struct ljp_snapshot *snap,
                                  struct ljp_stack *stack, uint64_t *pc);

#endif
