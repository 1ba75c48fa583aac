/*
** Points: shares of moments. They are appended as they come; when there are
** too many, those of the same tick and row are added up, and the tick is
** doubled until half of the room is free.
*/
#include "parsers/profile/work.h"

#include <string.h>

#define FIRST_TICK_NS UINT64_C(1000000)

static int compare(const void *a, const void *b)
{
  const struct ljp_profile_point *x = a, *y = b;
  if (x->tick != y->tick)
    return x->tick < y->tick ? -1 : 1;
  if (x->row != y->row)
    return x->row < y->row ? -1 : 1;
  return (int)x->live - (int)y->live;
}

static bool add_to(struct ljp_profile_point *to,
                   const struct ljp_profile_point *point)
{
  if (to->tick != point->tick || to->row != point->row ||
      to->live != point->live || point->count > UINT32_MAX - to->count)
    return false;
  to->count += point->count;
  to->weight += point->weight;
  return true;
}

void ljp_profile_points_merge(struct ljp_profile *p)
{
  struct ljp_profile_point *points = p->points;
  uint32_t n = 0;
  if (p->point_count)
    qsort(points, p->point_count, sizeof *points, compare);
  for (uint32_t i = 0; i < p->point_count; i++)
    if (!n || !add_to(&points[n - 1], &points[i]))
      points[n++] = points[i];
  p->point_count = n;
}

enum ljp_status ljp_profile_point(struct ljp_profile *p, uint64_t time_ns,
                                  uint32_t row, uint64_t count, uint64_t weight,
                                  bool live)
{
  if (!p->tick_ns)
    p->tick_ns = FIRST_TICK_NS;
  if (p->point_count >= LJP_PROFILE_MAX_POINTS) {
    ljp_profile_points_merge(p);
    /* 2^63 ns end this: then there is one tick, and as many points as rows
    ** at the most. */
    while (p->point_count > LJP_PROFILE_MAX_POINTS / 2 &&
           p->tick_ns < UINT64_C(1) << 62) {
      p->tick_ns *= 2;
      for (uint32_t i = 0; i < p->point_count; i++)
        p->points[i].tick /= 2;
      ljp_profile_points_merge(p);
    }
  }
  while (time_ns / p->tick_ns > UINT32_MAX) {
    p->tick_ns *= 2;
    for (uint32_t i = 0; i < p->point_count; i++)
      p->points[i].tick /= 2;
  }
  struct ljp_profile_point point = {
      .tick = (uint32_t)(time_ns / p->tick_ns),
      .row = row,
      .count = count < UINT32_MAX ? (uint32_t)count : UINT32_MAX,
      .live = live,
      .weight = weight};
  if (p->point_count && add_to(&p->points[p->point_count - 1], &point))
    return LJP_OK;
  if (!ljp_array_reserve(&p->points, p->point_count, &p->work->point_room,
                         sizeof *p->points))
    return LJP_ERR_MEM;
  p->points[p->point_count++] = point;
  return LJP_OK;
}
