/*
** Samples of Tarantool's sysprof on their way into the profile. Equal samples
** have equal bytes. So a sample that was seen before costs a search for its
** bytes, not a walk over its stack. One thread a table.
*/
#ifndef LJP_PARSERS_PROFILE_TARANTOOL_SAMPLES_H
#define LJP_PARSERS_PROFILE_TARANTOOL_SAMPLES_H

#include "parsers/profile/tarantool_stack.h"

#ifdef LJP_DEBUG
#define LJP_TARANTOOL_SAMPLES_PIECE ((size_t)1 << 10)
#define LJP_TARANTOOL_SAMPLES 4u
#else
#define LJP_TARANTOOL_SAMPLES_PIECE LJP_PAGES_LARGE
#define LJP_TARANTOOL_SAMPLES 32u
#endif
#define LJP_TARANTOOL_SAMPLES_PIECES 16u

/* A sample that was seen, in a piece. */
struct ljp_tarantool_seen {
  uint64_t generation; /* Of the symbols: row and cut were right then. */
  uint32_t size, row;
  uint8_t cut;
  uint8_t bytes[];
};

struct ljp_tarantool_samples {
  struct ljp_profile *p;
  struct ljp_tarantool_symbols *symbols;
  struct ljp_tarantool_stacks stacks;
  struct ljp_index index; /* From the hash of its bytes to one that was seen:
                          ** its place in the pieces, in words. */
  uint8_t *pieces[LJP_TARANTOOL_SAMPLES_PIECES];
  uint32_t piece_count;
  size_t used; /* Bytes of the newest piece. */
  struct ljp_tarantool_sample batch[LJP_TARANTOOL_SAMPLES];
  uint32_t hash[LJP_TARANTOOL_SAMPLES];
};

/* samples: all zero. LJP_ERR_MEM. */
enum ljp_status
ljp_tarantool_samples_init(struct ljp_tarantool_samples *samples,
                           struct ljp_profile *p,
                           struct ljp_tarantool_symbols *symbols);
void ljp_tarantool_samples_fini(struct ljp_tarantool_samples *samples);

/* Counts a sample. LJP_ERR_MEM, as for all below. */
enum ljp_status
ljp_tarantool_samples_take(struct ljp_tarantool_samples *samples,
                           const struct ljp_tarantool_sample *sample);

/* Counts the samples that the reader has at hand. */
enum ljp_status
ljp_tarantool_samples_read(struct ljp_tarantool_samples *samples,
                           struct ljp_tarantool_reader *reader);

#endif
