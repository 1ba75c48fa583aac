/*
** The tally: how many events were read and how many the writer says there
** were, and what was lost before it reached the file. Losses and overruns
** are cumulative in the stream, so the latest of each key counts. Memory is
** bounded by LJP_TALLY_MAX_KEYS. One thread a tally.
*/
#ifndef LJP_PARSERS_TALLY_H
#define LJP_PARSERS_TALLY_H

#include "parsers/stream/item.h"
#include "src/base/status.h"

#define LJP_TALLY_TAGS 64u
#define LJP_TALLY_MAX_KEYS 65536u

struct ljp_tally_loss {
  uint64_t producer, reason, count;
  bool overrun; /* reason is 0; count is of merged timer expiries. */
};

struct ljp_tally {
  uint64_t records[LJP_TALLY_TAGS];   /* Whole records by tag, bad ones too. */
  uint64_t read[LJP_TALLY_TAGS];      /* Events read, by tag. */
  uint64_t before[LJP_TALLY_TAGS];    /* Of segments before this input. */
  uint64_t swallowed[LJP_TALLY_TAGS]; /* Events that gaps have swallowed. */
  bool anchored;                      /* before[] is known. */
  bool gap; /* Something was lost since the last TOTALS. */

  /* read[] when the current block began: what its TOTALS is about. */
  uint64_t at_block[LJP_TALLY_TAGS];

  struct ljp_tally_loss *losses;
  size_t loss_count, loss_room;
  size_t *index; /* Hash of losses by key; 0: free, else position + 1. */
};

void ljp_tally_init(struct ljp_tally *tally);
void ljp_tally_fini(struct ljp_tally *tally);

/* Whether a TOTALS counts what this tag yields. */
bool ljp_is_counted(uint64_t tag);

void ljp_tally_block(struct ljp_tally *tally, const struct ljp_block *block);
void ljp_tally_gap(struct ljp_tally *tally);

/* Compares with a TOTALS; tally->read is counted up by the caller.
** LJP_ERR_FORMAT: more events were read than it says, or fewer though no gap
** explains it. */
enum ljp_status ljp_tally_totals(struct ljp_tally *tally,
                                 struct ljp_pairs counts);

/* LOSS and OVERRUN. */
enum ljp_status ljp_tally_loss(struct ljp_tally *tally, uint64_t producer,
                               uint64_t reason, uint64_t count, bool overrun);

#endif
