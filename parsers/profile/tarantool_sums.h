/*
** What memory events did at each row, while the file is read: each event
** changes one or two rows, at places in memory that nobody can foresee. So the
** numbers that events change take 32 bytes each for the blocks and for the
** place, not several cache lines. At the end they become memory[] and sites[]
** of the profile, at the same places.
**
** Counters of 32 bits are moved to wider ones before they can overflow. One
** thread a table.
*/
#ifndef LJP_PARSERS_PROFILE_TARANTOOL_SUMS_H
#define LJP_PARSERS_PROFILE_TARANTOOL_SUMS_H

#include "parsers/profile/pass.h"

/* Blocks that were allocated at a row. What is freed is the difference. */
struct ljp_tarantool_blocks {
  uint64_t alloc_bytes; /* With the new sizes of reallocations. */
  uint64_t live_bytes;
  uint32_t live, allocs;
  uint32_t moved_out; /* Reallocations made them blocks of another row. */
  uint32_t fall;      /* In which the row saved its peak: see peak.h. */
};

/* What was done at a place, whichever blocks it was about. */
struct ljp_tarantool_deeds {
  uint64_t free_bytes, realloc_bytes, realloc_old_bytes;
  uint32_t frees, reallocs;
};

/* What changes rarely. */
struct ljp_tarantool_rare {
  uint32_t row;  /* In rows[] of the profile. */
  uint32_t live; /* At the peak. */
  uint64_t live_bytes;
  uint64_t replaced; /* Blocks whose free is not in the file. */
};

/* Counters that were moved. */
struct ljp_tarantool_wide {
  uint64_t allocs, moved_out, frees, reallocs;
};

/* Blocks from before the session. */
struct ljp_tarantool_before {
  uint32_t memory; /* 0: none was seen. */
  uint64_t frees, moved, bytes;
};

/* All arrays are by row of memory, from 1. */
struct ljp_tarantool_sums {
  struct ljp_profile *p;
  struct ljp_tarantool_blocks *blocks;
  struct ljp_tarantool_deeds *deeds;
  struct ljp_tarantool_rare *rare;
  struct ljp_tarantool_wide *wide; /* NULL: nothing was moved. */
  uint32_t count, blocks_room, deeds_room, rare_room, wide_count;
  uint32_t events; /* Since counters were moved, or more. */
  struct ljp_tarantool_before before[2]; /* [1]: in traces. */
};

void ljp_tarantool_sums_fini(struct ljp_tarantool_sums *sums);

/* The row of memory of a node. The file tells the VM's state only for events in
** traces. LJP_ERR_MEM, as for all below. */
enum ljp_status ljp_tarantool_sums_row(struct ljp_tarantool_sums *sums,
                                       uint32_t node, bool trace,
                                       uint32_t *memory);

/* Moves the counters of 32 bits. */
enum ljp_status ljp_tarantool_sums_widen(struct ljp_tarantool_sums *sums);
#ifdef LJP_DEBUG
#define LJP_TARANTOOL_SUMS_EVENTS 64u
#else
#define LJP_TARANTOOL_SUMS_EVENTS (UINT32_C(1) << 31)
#endif
/* Call before so many events are counted. */
static inline enum ljp_status
ljp_tarantool_sums_expect(struct ljp_tarantool_sums *sums, uint32_t events)
{
  sums->events += events;
  return LJP_LIKELY(sums->events < LJP_TARANTOOL_SUMS_EVENTS)
             ? LJP_OK
             : ljp_tarantool_sums_widen(sums);
}

/* A block from before the session was freed or moved. */
enum ljp_status ljp_tarantool_sums_before(struct ljp_tarantool_sums *sums,
                                          bool trace, uint64_t bytes,
                                          bool moved);

/* Makes memory[] and sites[] of the profile. */
enum ljp_status ljp_tarantool_sums_finish(struct ljp_tarantool_sums *sums);

static inline void ljp_tarantool_sums_save_peak(struct ljp_tarantool_sums *sums,
                                                uint32_t memory)
{
  const struct ljp_memory_sums *all = &sums->p->pass->memory;
  struct ljp_tarantool_blocks *b = &sums->blocks[memory];
  if (all->falling && b->fall != (uint32_t)all->fall) {
    b->fall = (uint32_t)all->fall;
    sums->rare[memory].live = b->live;
    sums->rare[memory].live_bytes = b->live_bytes;
  }
}

/* A block is live. */
static inline void ljp_tarantool_sums_grow(struct ljp_tarantool_sums *sums,
                                           uint32_t memory, uint64_t bytes)
{
  struct ljp_memory_sums *all = &sums->p->pass->memory;
  struct ljp_tarantool_blocks *b = &sums->blocks[memory];
  ljp_tarantool_sums_save_peak(sums, memory);
  b->alloc_bytes += bytes;
  b->live_bytes += bytes;
  b->live++;
  all->bytes += bytes;
  if (all->bytes > all->peak_bytes) {
    all->peak_bytes = all->bytes;
    all->falling = false;
  }
}

/* A block is live no more. */
static inline void ljp_tarantool_sums_shrink(struct ljp_tarantool_sums *sums,
                                             uint32_t memory, uint64_t bytes)
{
  struct ljp_memory_sums *all = &sums->p->pass->memory;
  struct ljp_tarantool_blocks *b = &sums->blocks[memory];
  if (!all->falling && all->bytes == all->peak_bytes) {
    all->falling = true;
    all->fall++;
  }
  ljp_tarantool_sums_save_peak(sums, memory);
  b->live_bytes -= bytes;
  b->live--;
  all->bytes -= bytes;
}

#endif
