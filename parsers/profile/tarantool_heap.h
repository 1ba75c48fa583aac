/*
** Memory events of Tarantool's memprof on their way into the profile. They are
** exact, have no times and one VM, and each has its place, even a free. So they
** are counted here and not by memory.c, with less memory a block and less work
** an event. One thread a heap.
*/
#ifndef LJP_PARSERS_PROFILE_TARANTOOL_HEAP_H
#define LJP_PARSERS_PROFILE_TARANTOOL_HEAP_H

#include "parsers/profile/tarantool_places.h"
#include "parsers/profile/tarantool_sums.h"
#include "parsers/profile/tarantool_symbols.h"

#ifdef LJP_DEBUG
#define LJP_TARANTOOL_BATCH 4u
#else
#define LJP_TARANTOOL_BATCH 64u
#endif

struct ljp_tarantool_heap {
  struct ljp_profile *p;
  struct ljp_tarantool_symbols *symbols;
  struct ljp_tarantool_places places;
  /* Lines of Lua functions by the functions' meaning, whatever their address:
  ** code that is loaded again and again is found here. */
  struct ljp_tarantool_places meanings;
  struct ljp_block_map blocks;
  struct ljp_tarantool_sums sums;
  uint32_t generation; /* Of the C functions, which the places are of. */
  /* Events that wait until what they need is in the processor's cache. */
  struct ljp_tarantool_memory events[LJP_TARANTOOL_BATCH];
  uint64_t place_hash[LJP_TARANTOOL_BATCH], block_hash[LJP_TARANTOOL_BATCH];
  uint64_t old_hash[LJP_TARANTOOL_BATCH]; /* REALLOC */
  uint32_t memory[LJP_TARANTOOL_BATCH];
};

/* p and symbols are borrowed. LJP_ERR_MEM, as for all below. */
enum ljp_status ljp_tarantool_heap_init(struct ljp_tarantool_heap *heap,
                                        struct ljp_profile *p,
                                        struct ljp_tarantool_symbols *symbols);
void ljp_tarantool_heap_fini(struct ljp_tarantool_heap *heap);

/* Counts an event. */
enum ljp_status
ljp_tarantool_heap_take(struct ljp_tarantool_heap *heap,
                        const struct ljp_tarantool_memory *event);
/* Counts events as long as ljp_tarantool_next_memory() reads some. */
enum ljp_status ljp_tarantool_heap_read(struct ljp_tarantool_heap *heap,
                                        struct ljp_tarantool_reader *reader);

/* Counts what is live at the end, and sums up. */
enum ljp_status ljp_tarantool_heap_finish(struct ljp_tarantool_heap *heap);

#endif
