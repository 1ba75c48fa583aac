/*
** Finds what a budget is about: the function, file, line or module with a name.
** Functions come first. A path matches from its end, at a slash, since the same
** program may lie elsewhere on another machine.
*/
#include <stdio.h>
#include <string.h>

#include "parsers/profile/frame_name.h"
#include "src/base/nearest.h"
#include "tools/expect/figures.h"
#include "tools/report/groups.h"

enum { NAME_BYTES = LJP_FRAME_NAME_BYTES };

static bool find_is(struct ljp_str wanted, const char *name, size_t len)
{
  return wanted.len == len && memcmp(wanted.data, name, len) == 0;
}

/* Whether a path is the wanted one, or ends in "/" and the wanted one. */
static bool find_is_path(struct ljp_str wanted, const char *path, size_t len)
{
  if (wanted.len >= len)
    return find_is(wanted, path, len);
  size_t at = len - wanted.len;
  return wanted.len && path[at - 1] == '/' &&
         memcmp(path + at, wanted.data, wanted.len) == 0;
}

/* The same for a place, "file:12", where the wanted one may lack the line. */
static bool find_is_place(struct ljp_str wanted, const char *place)
{
  const char *colon = strrchr(place, ':');
  return find_is_path(wanted, place, strlen(place)) ||
         (colon && find_is_path(wanted, place, (size_t)(colon - place)));
}

/* A function matches by its name, by its whole text ("parse app.lua:12"), or by
** its name and the end of its place ("parse app.lua"). */
static bool find_is_function(const struct ljp_profile *p, uint32_t frame,
                             struct ljp_str wanted)
{
  char name[NAME_BYTES], place[NAME_BYTES];
  ljp_frame_function_text(p, frame, name, sizeof name);
  size_t len = strlen(name);
  if (find_is(wanted, name, len))
    return true;
  if (wanted.len <= len + 1 || memcmp(wanted.data, name, len) != 0 ||
      wanted.data[len] != ' ')
    return false;
  struct ljp_str rest =
      ljp_str(wanted.data + len + 1, (size_t)wanted.len - len - 1);
  ljp_frame_place_text(p, frame, 0, place, sizeof place);
  return find_is_place(rest, place);
}

static bool find_matches(const struct ljp_report *r,
                         const struct ljp_groups *groups, uint32_t group,
                         struct ljp_str wanted)
{
  char name[NAME_BYTES];
  if (r->by == LJP_BY_FUNCTION)
    return find_is_function(r->p, groups->first[group], wanted);
  ljp_group_name(r, groups, group, name, sizeof name);
  return find_is_path(wanted, name, strlen(name));
}

/* Looks among the groups of one kind. Returns the number of matches. What the
** file knows, but did not count anything for, is only chosen if nothing else
** matches. */
static uint32_t find_group(const struct ljp_report *r,
                           const struct ljp_groups *groups,
                           const struct ljp_budget *b,
                           struct ljp_figure_match *m, char why[640])
{
  char names[3][160];
  uint32_t count = 0;
  bool empty = false;
  for (uint32_t i = 0; i < groups->count; i++) {
    const struct ljp_group_value *v = &groups->values[i];
    if (!find_matches(r, groups, i, b->subject))
      continue;
    if (!v->total.count && !v->total.weight) {
      empty = true;
      continue;
    }
    if (count < 3)
      ljp_group_name(r, groups, i, names[count], sizeof names[count]);
    count++;
    m->value = b->own ? v->self : v->total;
  }
  if (!count && empty) {
    m->value = (struct ljp_value){0};
    count = 1;
  }
  m->found = count == 1;
  if (count > 1)
    snprintf(why, 640, "'%.*s' can be any of %u: %s, %s%s%s; write one of them",
             b->subject.len < 80 ? (int)b->subject.len : 80, b->subject.data,
             count, names[0], names[1], count > 2 ? ", " : "",
             count > 3   ? "..."
             : count > 2 ? names[2]
                         : "");
  return count;
}

/* Says that nothing has the name, and which function has the most similar. */
static void find_nothing(const struct ljp_report *r,
                         const struct ljp_groups *groups, const char *file,
                         const struct ljp_budget *b, char why[640])
{
  char wanted[LJP_NEAREST_MAX_BYTES + 1], name[NAME_BYTES];
  unsigned best = 4;
  int n = snprintf(
      why, 640, "no function, file, line or module '%.*s' in %.200s",
      b->subject.len < 120 ? (int)b->subject.len : 120, b->subject.data, file);
  if (b->subject.len >= sizeof wanted || n < 0)
    return;
  memcpy(wanted, b->subject.data, b->subject.len);
  wanted[b->subject.len] = '\0';
  for (uint32_t i = 0; i < groups->count; i++) {
    ljp_frame_function_text(r->p, groups->first[i], name, sizeof name);
    unsigned distance = ljp_nearest_distance(wanted, name);
    if (distance >= best)
      continue;
    best = distance;
    snprintf(why + n, 640 - (size_t)n, "; did you mean '%.100s'?", name);
  }
  if (best == 4)
    snprintf(why + n, 640 - (size_t)n,
             " (if it may be missing, write '%s?': it then counts 0)", wanted);
}

enum ljp_status ljp_figure_find(struct ljp_profile *p, const char *file,
                                const struct ljp_budget *b,
                                enum ljp_measure measure,
                                struct ljp_figure_match *m, char why[640])
{
  static const enum ljp_by order[] = {LJP_BY_FUNCTION, LJP_BY_LINE, LJP_BY_FILE,
                                      LJP_BY_MODULE};
  struct ljp_report r = {.p = p};
  const struct ljp_select_options options = {.measure = measure};
  struct ljp_groups groups, functions = {0};
  if (ljp_select(&r.select, p, &options, "expect"))
    return LJP_ERR_MEM;
  *m =
      (struct ljp_figure_match){.value = r.select.total, .all = r.select.total};
  enum ljp_status status = LJP_OK;
  uint32_t count = !b->subject.len;
  m->found = count;
  for (unsigned i = 0; !count && !status && i < 4; i++) {
    r.by = order[i];
    if (!ljp_groups_make(&r, &groups)) {
      status = LJP_ERR_MEM;
      break;
    }
    count = find_group(&r, &groups, b, m, why);
    if (i == 0)
      functions = groups;
    else
      ljp_groups_fini(&groups);
  }
  if (!count && !status) {
    r.by = LJP_BY_FUNCTION;
    m->value = (struct ljp_value){0};
    if (!b->optional)
      find_nothing(&r, &functions, file, b, why);
  }
  ljp_groups_fini(&functions);
  ljp_select_fini(&r.select);
  return status;
}
