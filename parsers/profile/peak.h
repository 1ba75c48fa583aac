/*
** Live memory of rows, and what was live at the peak of the whole.
**
** While the live bytes climb beyond everything before, the rows as they are now
** are the peak's. When the live bytes fall, a row saves its numbers the first
** time that it changes after that (peak_fall remembers in which fall); a new
** peak makes what was saved void. So a peak that moves costs nothing, and a
** fall costs one store a row. One thread a profile.
*/
#ifndef LJP_PARSERS_PROFILE_PEAK_H
#define LJP_PARSERS_PROFILE_PEAK_H

#include "parsers/profile/pass.h"

/* Call before a row's live memory changes. */
static inline void ljp_memory_save_peak(struct ljp_profile *p, uint32_t memory)
{
  const struct ljp_memory_sums *sums = &p->pass->memory;
  struct ljp_profile_memory *m = &p->memory[memory];
  if (sums->falling && m->peak_fall != sums->fall) {
    m->peak_fall = sums->fall;
    m->peak_objects = m->live_objects;
    m->peak_bytes = m->live_bytes;
    if (p->estimates)
      p->estimates[memory].peak = p->estimates[memory].live;
  }
}

static inline void ljp_memory_grow(struct ljp_profile *p, uint32_t memory,
                                   uint64_t objects, uint64_t bytes,
                                   uint64_t time_ns)
{
  struct ljp_memory_sums *sums = &p->pass->memory;
  ljp_memory_save_peak(p, memory);
  p->memory[memory].live_objects += objects;
  p->memory[memory].live_bytes += bytes;
  sums->objects += objects;
  sums->bytes += bytes;
  if (sums->bytes > sums->peak_bytes) {
    sums->peak_bytes = sums->bytes;
    sums->falling = false;
    p->totals.peak_ns = time_ns;
  }
}

static inline void ljp_memory_shrink(struct ljp_profile *p, uint32_t memory,
                                     uint64_t objects, uint64_t bytes)
{
  struct ljp_memory_sums *sums = &p->pass->memory;
  if (!sums->falling && sums->bytes == sums->peak_bytes) {
    sums->falling = true;
    sums->fall++;
  }
  ljp_memory_save_peak(p, memory);
  p->memory[memory].live_objects -= objects;
  p->memory[memory].live_bytes -= bytes;
  sums->objects -= objects;
  sums->bytes -= bytes;
}

#endif
