/*
** What a comparison compares, and in which unit.
*/
#include "tools/page/diff.h"

const struct ljp_diff_view ljp_diff_views[LJP_PAGE_VIEWS] = {
#define LJP_X(key, id, name, unit, counts) {id, name, unit},
    LJP_PAGE_VIEW_LIST(LJP_X)
#undef LJP_X
};

static bool units_is_of_time(int view)
{
  return view == LJP_PAGE_VIEW_CPU || view == LJP_PAGE_VIEW_WALL;
}

bool ljp_diff_is_untimed(const struct ljp_diff *d)
{
  return d->sides[0].untimed && d->sides[1].untimed;
}

const char *ljp_diff_by_text(enum ljp_diff_by by)
{
  static const char *const texts[] = {
#define LJP_X(name, key, text) text,
      LJP_DIFF_BY_LIST(LJP_X)
#undef LJP_X
  };
  return texts[by];
}

const char *ljp_diff_by_key(enum ljp_diff_by by)
{
  static const char *const keys[] = {
#define LJP_X(name, key, text) key,
      LJP_DIFF_BY_LIST(LJP_X)
#undef LJP_X
  };
  return keys[by];
}

bool ljp_diff_per_second(const struct ljp_diff *d, int view)
{
  return d->by == LJP_DIFF_PER_SECOND && view != LJP_PAGE_VIEW_LIVE &&
         view != LJP_PAGE_VIEW_LEAK && !ljp_diff_is_untimed(d);
}

const char *ljp_diff_unit(const struct ljp_diff *d, int view)
{
  return units_is_of_time(view) && ljp_diff_is_untimed(d)
             ? "samples"
             : ljp_diff_views[view].unit;
}

const char *ljp_diff_unit_of(const struct ljp_diff *d, int view, int side)
{
  return units_is_of_time(view) && d->sides[side].untimed
             ? "samples"
             : ljp_diff_views[view].unit;
}

const char *ljp_diff_total_lacks(const struct ljp_diff *d, int view)
{
  const struct ljp_diff_side *s = d->sides;
  return !s[0].holds[view]   ? "not recorded before"
         : !s[1].holds[view] ? "not recorded after"
         : units_is_of_time(view) && s[0].untimed != s[1].untimed
             ? "one file has no times"
             : NULL;
}
