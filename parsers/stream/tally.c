/*
** The tally: plain counters by tag, and a hash table of losses by key. One
** thread a tally.
*/
#include "parsers/stream/tally.h"

#include <stdlib.h>
#include <string.h>

#include "src/base/assert.h"

#ifdef LJP_DEBUG
#define FIRST_ROOM 2u
#else
#define FIRST_ROOM 64u
#endif

void ljp_tally_init(struct ljp_tally *tally)
{
  *tally = (struct ljp_tally){0};
}

void ljp_tally_fini(struct ljp_tally *tally)
{
  free(tally->losses);
  free(tally->index);
  ljp_tally_init(tally);
}

void ljp_tally_block(struct ljp_tally *tally, const struct ljp_block *block)
{
  if (block->head.epoch == 1) /* The session begins with it. */
    tally->anchored = true;
  memcpy(tally->at_block, tally->read, sizeof tally->read);
}

void ljp_tally_gap(struct ljp_tally *tally)
{
  tally->gap = true;
}

bool ljp_tally_counts(uint64_t tag)
{
  switch (tag) {
#define LJP_X(name, number, text, event)                                       \
  case number:                                                                 \
    return event;
    LJP_RECORD_LIST(LJP_X)
#undef LJP_X
  }
  return false;
}

enum ljp_status ljp_tally_totals(struct ljp_tally *tally,
                                 struct ljp_pairs counts)
{
  uint64_t said[LJP_TALLY_TAGS] = {0};
  uint64_t tag, count;
  enum ljp_status status = LJP_OK;
  while (ljp_pairs_next(&counts, &tag, &count))
    if (tag < LJP_TALLY_TAGS)
      said[tag] = count;
  for (unsigned i = 0; i < LJP_TALLY_TAGS; i++) {
    uint64_t have = tally->at_block[i];
    if (!ljp_tally_counts(i))
      continue;
    if (!tally->anchored)
      tally->before[i] = said[i] > have ? said[i] - have : 0;
    have += tally->before[i];
    if (said[i] < have) {
      status = LJP_ERR_FORMAT;
      continue;
    }
    if (said[i] - have != tally->swallowed[i] && !tally->gap)
      status = LJP_ERR_FORMAT;
    tally->swallowed[i] = said[i] - have;
  }
  tally->anchored = true;
  tally->gap = false;
  return status;
}

static size_t tally_hash(const struct ljp_tally_loss *key)
{
  uint64_t h = key->producer * UINT64_C(0x9e3779b97f4a7c15) ^
               (key->reason * 2 + key->overrun) * UINT64_C(0xc2b2ae3d27d4eb4f);
  return (size_t)(h ^ h >> 29);
}

/* The place of a key in the index, or the free place where it belongs. */
static size_t *tally_place(const struct ljp_tally *tally,
                           const struct ljp_tally_loss *key)
{
  size_t mask = tally->loss_room * 2 - 1;
  size_t i = tally_hash(key) & mask;
  for (; tally->index[i]; i = (i + 1) & mask) {
    const struct ljp_tally_loss *loss = &tally->losses[tally->index[i] - 1];
    if (loss->producer == key->producer && loss->reason == key->reason &&
        loss->overrun == key->overrun)
      break;
  }
  return &tally->index[i];
}

static enum ljp_status tally_grow(struct ljp_tally *tally)
{
  size_t room = tally->loss_room ? tally->loss_room * 2 : FIRST_ROOM;
  if (room > LJP_TALLY_MAX_KEYS)
    return LJP_ERR_LIMIT;
  struct ljp_tally_loss *losses = malloc(room * sizeof *losses);
  size_t *index = calloc(room * 2, sizeof *index);
  if (!losses || !index) {
    free(losses);
    free(index);
    return LJP_ERR_MEM;
  }
  if (tally->loss_count)
    memcpy(losses, tally->losses, tally->loss_count * sizeof *losses);
  free(tally->losses);
  free(tally->index);
  tally->losses = losses;
  tally->index = index;
  tally->loss_room = room;
  for (size_t i = 0; i < tally->loss_count; i++)
    *tally_place(tally, &losses[i]) = i + 1;
  return LJP_OK;
}

enum ljp_status ljp_tally_loss(struct ljp_tally *tally, uint64_t producer,
                               uint64_t reason, uint64_t count, bool overrun)
{
  const struct ljp_tally_loss loss = {producer, reason, count, overrun};
  enum ljp_status status;
  if (!tally->loss_room && (status = tally_grow(tally)))
    return status;
  size_t *at = tally_place(tally, &loss);
  if (!*at) {
    if (tally->loss_count == tally->loss_room) {
      if ((status = tally_grow(tally)))
        return status;
      at = tally_place(tally, &loss);
    }
    tally->losses[tally->loss_count] = loss;
    *at = ++tally->loss_count;
    ljp_assert(tally->loss_count <= tally->loss_room);
  } else if (tally->losses[*at - 1].count < count) {
    tally->losses[*at - 1].count = count;
  }
  return LJP_OK;
}
