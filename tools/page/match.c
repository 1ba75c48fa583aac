/*
** Matches functions in two passes over lists that are sorted by name, file and
** line: first by name and file, then what is left by name alone.
*/
#include "tools/page/match.h"

#include <stdlib.h>

/* A Lua function. */
struct match_entry {
  struct ljp_str name, file;
  uint32_t line, function, frame;
  bool taken;
};

struct match_list {
  struct match_entry *entries;
  size_t count;
};

static int match_order_text(struct ljp_str a, struct ljp_str b)
{
  uint32_t n = a.len < b.len ? a.len : b.len;
  int order = n ? memcmp(a.data, b.data, n) : 0;
  return order ? order : (a.len > b.len) - (a.len < b.len);
}

static int match_order(const void *a, const void *b)
{
  const struct match_entry *x = a, *y = b;
  int order = match_order_text(x->name, y->name);
  order = order ? order : match_order_text(x->file, y->file);
  return order ? order : (x->line > y->line) - (x->line < y->line);
}

/* False: out of memory. */
static bool match_list(const struct ljp_profile *p, struct match_list *list)
{
  list->entries = calloc((size_t)p->function_count + 1, sizeof *list->entries);
  if (!list->entries)
    return false;
  for (uint32_t i = 1; i < p->function_count; i++) {
    const struct ljp_profile_frame *f = &p->frames[p->functions[i].frame];
    if ((f->kind != LJP_FRAME_LUA && f->kind != LJP_FRAME_LUA_INLINED) ||
        (f->flags & LJP_PROFILE_UNKNOWN))
      continue;
    list->entries[list->count++] =
        (struct match_entry){.name = ljp_profile_str(p, f->name),
                             .file = ljp_profile_str(p, f->file),
                             .line = f->first_line,
                             .function = i,
                             .frame = p->functions[i].frame};
  }
  qsort(list->entries, list->count, sizeof *list->entries, match_order);
  return true;
}

static void match_take(uint32_t *same, struct match_entry *a,
                       struct match_entry *b)
{
  a->taken = b->taken = true;
  same[a->function] = b->frame;
}

/* Matches functions of one name and file. */
static void match_group(uint32_t *same, struct match_entry *a, size_t n,
                        struct match_entry *b, size_t m)
{
  for (size_t i = 0, j = 0; n != m && i < n && j < m;) {
    if (a[i].line == b[j].line && !a[i].taken && !b[j].taken)
      match_take(same, &a[i], &b[j]);
    bool earlier = a[i].line <= b[j].line, later = a[i].line >= b[j].line;
    i += earlier;
    j += later;
  }
  for (size_t i = 0, j = 0; (n == m || a->name.len) && i < n && j < m;) {
    if (!a[i].taken && !b[j].taken)
      match_take(same, &a[i], &b[j]);
    i += a[i].taken;
    j += b[j].taken;
  }
}

/* The end of the entries from i on with the same name and, unless only names
** count, the same file. */
static size_t match_end(const struct match_list *list, size_t i, bool names)
{
  const struct match_entry *e = list->entries;
  size_t end = i + 1;
  while (end < list->count && ljp_str_same(e[end].name, e[i].name) &&
         (names || ljp_str_same(e[end].file, e[i].file)))
    end++;
  return end;
}

/* Narrows [*i, *end) to the entries of the one file that has all entries that
** are not taken. False: there is none, or several. */
static bool match_narrow(const struct match_list *list, size_t *i, size_t *end)
{
  const struct match_entry *e = list->entries;
  while (*i < *end && e[*i].taken)
    ++*i;
  while (*i < *end && e[*end - 1].taken)
    --*end;
  return *i < *end && ljp_str_same(e[*i].file, e[*end - 1].file);
}

static void match_pass(uint32_t *same, struct match_list *a,
                       struct match_list *b, bool names)
{
  for (size_t i = 0, j = 0; i < a->count && j < b->count;) {
    const struct match_entry *x = &a->entries[i], *y = &b->entries[j];
    int order = match_order_text(x->name, y->name);
    if (!order && !names)
      order = match_order_text(x->file, y->file);
    /* Each entry is looked at once, however many there are of a name. */
    size_t i_end = order <= 0 ? match_end(a, i, names) : i;
    size_t j_end = order >= 0 ? match_end(b, j, names) : j;
    if (!order && !names) {
      match_group(same, &a->entries[i], i_end - i, &b->entries[j], j_end - j);
    } else if (!order && x->name.len) {
      size_t from = i, to = i_end, after = j, after_to = j_end;
      if (match_narrow(a, &from, &to) && match_narrow(b, &after, &after_to))
        match_group(same, &a->entries[from], to - from, &b->entries[after],
                    after_to - after);
    }
    i = i_end;
    j = j_end;
  }
}

uint32_t *ljp_page_match(const struct ljp_profile *before,
                         const struct ljp_profile *after)
{
  struct match_list a = {0}, b = {0};
  uint32_t *same = calloc((size_t)before->function_count + 1, sizeof *same);
  if (same && match_list(before, &a) && match_list(after, &b)) {
    match_pass(same, &a, &b, false);
    match_pass(same, &a, &b, true);
  } else {
    free(same);
    same = NULL;
  }
  free(a.entries);
  free(b.entries);
  return same;
}
