/*
** Points. They are appended in the order of the stream. When there are too
** many, points of the same tick and row are added up, and the tick is doubled
** until half of the room is free. One thread a profile.
*/
#include "parsers/profile/points.h"

#include "parsers/base/array.h"
#include "parsers/profile/pass.h"

#define FIRST_TICK_NS UINT64_C(1000000)

static int points_compare(const void *a, const void *b)
{
  const struct ljp_profile_point *x = a, *y = b;
  if (x->tick != y->tick)
    return x->tick < y->tick ? -1 : 1;
  if (x->row != y->row)
    return x->row < y->row ? -1 : 1;
  return (int)x->live - (int)y->live;
}

/* Adds a point to another of the same row and tick; false: they differ. */
static bool points_join(struct ljp_profile_point *to,
                        const struct ljp_profile_point *point)
{
  if (to->tick != point->tick || to->row != point->row ||
      to->live != point->live)
    return false;
  to->count += point->count;
  to->weight += point->weight;
  return true;
}

void ljp_profile_merge_points(struct ljp_profile *p)
{
  struct ljp_profile_point *points = p->points;
  uint32_t n = 0;
  if (p->point_count)
    qsort(points, p->point_count, sizeof *points, points_compare);
  for (uint32_t i = 0; i < p->point_count; i++)
    if (!n || !points_join(&points[n - 1], &points[i]))
      points[n++] = points[i];
  p->point_count = n;
}

static void points_double_tick(struct ljp_profile *p)
{
  p->tick_ns *= 2;
  for (uint32_t i = 0; i < p->point_count; i++)
    p->points[i].tick /= 2;
}

enum ljp_status ljp_profile_add_point(struct ljp_profile *p, uint64_t time_ns,
                                      uint32_t row, uint64_t count,
                                      uint64_t weight, bool live)
{
  if (!p->tick_ns)
    p->tick_ns = FIRST_TICK_NS;
  if (p->point_count >= LJP_PROFILE_MAX_POINTS) {
    ljp_profile_merge_points(p);
    /* A tick of 2^62 ns ends this loop: then there are at most four ticks,
    ** and the rows bound the number of points. */
    while (p->point_count > LJP_PROFILE_MAX_POINTS / 2 &&
           p->tick_ns < UINT64_C(1) << 62) {
      points_double_tick(p);
      ljp_profile_merge_points(p);
    }
  }
  while (time_ns / p->tick_ns > UINT32_MAX)
    points_double_tick(p);
  struct ljp_profile_point point = {.tick = (uint32_t)(time_ns / p->tick_ns),
                                    .row = row,
                                    .count = count,
                                    .live = live,
                                    .weight = weight};
  if (p->point_count && points_join(&p->points[p->point_count - 1], &point))
    return LJP_OK;
  if (!ljp_array_reserve(&p->points, p->point_count, &p->pass->point_room,
                         sizeof *p->points))
    return LJP_ERR_MEM;
  p->points[p->point_count++] = point;
  return LJP_OK;
}
