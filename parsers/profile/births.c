/*
** See births.h. While the file is read, each live block has the number of its
** allocation (live_blocks.h); at the moment of the wanted snapshot those of its
** VM are copied. Rows get other numbers when the profile is finished.
*/
#include "parsers/profile/births.h"

#include <stdlib.h>

#include "parsers/profile/pass.h"

static int births_compare(const void *a, const void *b)
{
  const struct ljp_birth *x = a, *y = b;
  return x->address < y->address ? -1 : x->address > y->address;
}

static enum ljp_status births_add(struct ljp_profile *p, uint32_t at)
{
  struct ljp_births *births = &p->births;
  const struct ljp_live *live = &p->pass->live;
  const struct ljp_live_block *b = ljp_live_block(live, at);
  if (b->memory == LJP_LIVE_UNWANTED)
    return LJP_OK;
  if (births->count == births->room) {
    size_t room = births->room ? 2 * births->room : 1024;
    struct ljp_birth *list = realloc(births->list, room * sizeof *list);
    if (!list)
      return LJP_ERR_MEM;
    births->list = list;
    births->room = room;
  }
  births->list[births->count++] =
      (struct ljp_birth){.address = b->address,
                         .event = ljp_live_number(live, at),
                         .size = b->size,
                         .weight = ljp_live_weight(live, at),
                         .row = p->memory[b->memory].row,
                         .cycle = b->cycle,
                         .ms = b->ms};
  return LJP_OK;
}

enum ljp_status ljp_profile_take_moment(struct ljp_profile *p,
                                        const struct ljp_rec_heap_moment *m)
{
  struct ljp_memory_sums *sums = &p->pass->memory;
  struct ljp_births *births = &p->births;
  struct ljp_live_walk walk = {0};
  enum ljp_status status = LJP_OK;
  uint32_t vm, at;
  if (!p->options.births || m->snapshot != p->options.births)
    return LJP_OK;
  births->count = 0; /* In an honest file there was none. */
  births->found = true;
  births->time_ns = ljp_profile_since(p, m->time_ns);
  births->heap_bytes = m->heap_bytes;
  births->before = sums->events;
  if (!(vm = ljp_memory_find_vm(sums, m->vm)))
    return LJP_OK;
  births->cycle = sums->vms[vm].cycle;
  while (!status &&
         (at = ljp_live_next_of(&p->pass->live, &sums->vms[vm].blocks, &walk)))
    status = births_add(p, at);
  if (births->count)
    qsort(births->list, births->count, sizeof *births->list, births_compare);
  return status;
}

void ljp_profile_move_births(struct ljp_profile *p, const uint32_t *row_map)
{
  for (size_t i = 0; i < p->births.count; i++)
    p->births.list[i].row = row_map[p->births.list[i].row];
}

const struct ljp_birth *ljp_births_find(const struct ljp_births *births,
                                        uint64_t address)
{
  const struct ljp_birth key = {.address = address};
  return births->count ? bsearch(&key, births->list, births->count, sizeof key,
                                 births_compare)
                       : NULL;
}
