/*
** Sampled blocks that are alive; see track.h.
*/
#include "profilers/memory/track.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST_SLOTS = 1024 };

/* True: the address is new to the table. */
static bool track_insert(struct ljp_tracked *slots, uint32_t mask,
                         const struct ljp_tracked *block)
{
  uint32_t at = ljp_track_hash(block->address) & mask;
  while (slots[at].address && slots[at].address != block->address)
    at = (at + 1) & mask;
  bool fresh = !slots[at].address;
  slots[at] = *block;
  return fresh;
}

static void track_count(struct ljp_track *track, uint64_t address)
{
  uint8_t *wide = &track->wide[ljp_track_wide_at(address, track->wide_shift)];
  *wide += *wide < UINT8_MAX;
}

static bool track_grow(struct ljp_track *track)
{
  uint32_t slots = track->slots ? 2 * (track->mask + 1) : FIRST_SLOTS;
  if (slots > 2 * (uint32_t)LJP_TRACK_MAX)
    return false;
  struct ljp_tracked *fresh = calloc(slots, sizeof *fresh);
  uint8_t *wide = track->filters ? calloc(slots, LJP_TRACK_WIDE) : NULL;
  if (!fresh || (track->filters && !wide)) {
    free(fresh);
    free(wide);
    return false;
  }
  free(track->wide);
  track->wide = wide;
  track->wide_shift =
      32 - (uint32_t)__builtin_ctz(slots * (uint32_t)LJP_TRACK_WIDE);
  for (uint32_t i = 0; track->slots && i <= track->mask; i++)
    if (track->slots[i].address) {
      track_insert(fresh, slots - 1, &track->slots[i]);
      if (wide)
        track_count(track, track->slots[i].address);
    }
  free(track->slots);
  track->slots = fresh;
  track->mask = slots - 1;
  return true;
}

bool ljp_track_put(struct ljp_track *track, const struct ljp_tracked *block)
{
  if ((!track->slots || track->count > track->mask / 2) && !track_grow(track))
    return false;
  if (!track_insert(track->slots, track->mask, block))
    return true;
  track->count++;
  if (!track->filters)
    return true;
  uint8_t *filter = &track->filter[ljp_track_filter_at(block->address)];
  *filter += *filter < UINT8_MAX;
  track_count(track, block->address);
  return true;
}

bool ljp_track_take(struct ljp_track *track, uint64_t address,
                    struct ljp_tracked *block)
{
  if (!track->count)
    return false;
  uint32_t mask = track->mask, at = ljp_track_hash(address) & mask;
  while (track->slots[at].address != address) {
    if (!track->slots[at].address)
      return false;
    at = (at + 1) & mask;
  }
  *block = track->slots[at];
  track->count--;
  if (track->filters) {
    uint8_t *filter = &track->filter[ljp_track_filter_at(address)];
    *filter -= *filter < UINT8_MAX;
    uint8_t *wide = &track->wide[ljp_track_wide_at(address, track->wide_shift)];
    *wide -= *wide < UINT8_MAX;
  }
  /* Blocks behind the hole that would no longer be found move up. */
  for (uint32_t hole = at;;) {
    at = (at + 1) & mask;
    if (!track->slots[at].address) {
      track->slots[hole].address = 0;
      return true;
    }
    uint32_t home = ljp_track_hash(track->slots[at].address) & mask;
    if (((at - home) & mask) >= ((at - hole) & mask)) {
      track->slots[hole] = track->slots[at];
      hole = at;
    }
  }
}

void ljp_track_fini(struct ljp_track *track)
{
  memset(track->filter, 0, sizeof track->filter);
  free(track->wide);
  free(track->slots);
  track->wide = NULL;
  track->slots = NULL;
  track->count = track->mask = 0;
}
