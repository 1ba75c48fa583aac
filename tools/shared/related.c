/*
** Compares the programs of two profiles.
*/
#include "tools/shared/related.h"

#include <stdlib.h>
#include <string.h>

#include "parsers/base/str.h"
#include "tools/shared/print.h"

struct ljp_str ljp_related_program(const struct ljp_profile *p)
{
  return ljp_base_name(ljp_profile_str(p, p->executable));
}

struct ljp_str ljp_related_script(const struct ljp_profile *p)
{
  return ljp_related_script_of(ljp_profile_str(p, p->command_line));
}

static int related_order(const void *a, const void *b)
{
  const struct ljp_str *x = a, *y = b;
  uint32_t n = x->len < y->len ? x->len : y->len;
  int order = n ? memcmp(x->data, y->data, n) : 0;
  return order ? order : (x->len > y->len) - (x->len < y->len);
}

/* The names of the Lua functions but main chunks, which all have the same.
** Sorted, each once. NULL: out of memory. */
static struct ljp_str *related_names(const struct ljp_profile *p, size_t *count)
{
  struct ljp_str *names = calloc((size_t)p->function_count + 1, sizeof *names);
  size_t n = 0, kept = 0;
  for (uint32_t i = 0; names && i < p->function_count; i++) {
    const struct ljp_profile_frame *f = &p->frames[p->functions[i].frame];
    if ((f->kind == LJP_FRAME_LUA || f->kind == LJP_FRAME_LUA_INLINED) &&
        f->name && f->first_line && !(f->flags & LJP_PROFILE_UNKNOWN))
      names[n++] = ljp_profile_str(p, f->name);
  }
  if (names && n)
    qsort(names, n, sizeof *names, related_order);
  for (size_t i = 0; i < n; i++)
    if (!kept || !ljp_str_same(names[kept - 1], names[i]))
      names[kept++] = names[i];
  *count = kept;
  return names;
}

enum ljp_status ljp_related(const struct ljp_profile *a,
                            const struct ljp_profile *b,
                            enum ljp_related *related)
{
  struct ljp_str programs[] = {ljp_related_program(a), ljp_related_program(b)};
  struct ljp_str scripts[] = {ljp_related_script(a), ljp_related_script(b)};
  *related = LJP_RELATED;
  if (a->recorded_by || b->recorded_by)
    return LJP_OK;
  if (!ljp_str_same(programs[0], programs[1])) {
    *related = LJP_RELATED_NOT;
    return LJP_OK;
  }
  if (ljp_str_same(scripts[0], scripts[1]))
    return LJP_OK;
  size_t counts[2] = {0, 0}, i = 0, j = 0, common = 0;
  struct ljp_str *x = related_names(a, &counts[0]);
  struct ljp_str *y = related_names(b, &counts[1]);
  enum ljp_status status = x && y ? LJP_OK : LJP_ERR_MEM;
  while (!status && i < counts[0] && j < counts[1]) {
    int order = related_order(&x[i], &y[j]);
    common += order == 0;
    i += order <= 0;
    j += order >= 0;
  }
  size_t smaller = counts[0] < counts[1] ? counts[0] : counts[1];
  *related =
      common && common * 4 >= smaller ? LJP_RELATED_RENAMED : LJP_RELATED_NOT;
  free(x);
  free(y);
  return status;
}
