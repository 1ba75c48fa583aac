/*
** The tally: how many events were read, how many the writer says there were,
** and how many were lost before they reached the file. Losses and overruns are
** cumulative in the stream, so the latest of each key counts. Memory is bounded
** by LJP_TALLY_MAX_KEYS. One thread a tally.
*/
#ifndef LJP_PARSERS_TALLY_H
#define LJP_PARSERS_TALLY_H

#include "parsers/stream/item.h"
#include "src/base/status.h"

#define LJP_TALLY_TAGS LJP_RECORD_TAGS
#define LJP_TALLY_MAX_KEYS 65536u

struct ljp_tally_loss {
  uint64_t producer, reason, count;
  bool overrun; /* count is of merged timer expiries; reason is 0. */
};

struct ljp_tally {
  uint64_t records[LJP_TALLY_TAGS];   /* Records by tag, malformed ones too. */
  uint64_t read[LJP_TALLY_TAGS];      /* Events read, by tag. */
  uint64_t before[LJP_TALLY_TAGS];    /* Events in file segments before. */
  uint64_t swallowed[LJP_TALLY_TAGS]; /* Events that gaps have swallowed. */
  bool anchored;                      /* before[] is known. */
  bool gap; /* There was a gap or a malformed record since the last TOTALS. */

  /* read[] when the current block began: what a TOTALS in it counts. */
  uint64_t at_block[LJP_TALLY_TAGS];

  struct ljp_tally_loss *losses;
  size_t loss_count, loss_room;
  size_t *index; /* Hash of losses by key; 0: free, else position + 1. */
};

void ljp_tally_init(struct ljp_tally *tally);
void ljp_tally_fini(struct ljp_tally *tally);

/* Whether a TOTALS counts events of this tag. */
bool ljp_tally_counts(uint64_t tag);

void ljp_tally_block(struct ljp_tally *tally, const struct ljp_block *block);
void ljp_tally_gap(struct ljp_tally *tally);

/* Compares the events read with a TOTALS. (The caller counts tally->read.)
** LJP_ERR_FORMAT: more events were read than it says, or fewer, and no gap
** explains that. */
enum ljp_status ljp_tally_totals(struct ljp_tally *tally,
                                 struct ljp_pairs counts);

/* A LOSS or an OVERRUN. LJP_ERR_LIMIT: too many keys. LJP_ERR_MEM. */
enum ljp_status ljp_tally_loss(struct ljp_tally *tally, uint64_t producer,
                               uint64_t reason, uint64_t count, bool overrun);

#endif
