/*
** Lists a store: a line for each process and for what was merged, then what
** cannot be read.
*/
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tools/gather/gather.h"
#include "tools/shared/units.h"

static void list_time(struct ljp_print *out, uint64_t wall_ns)
{
  char text[32] = "-";
  time_t seconds = (time_t)(wall_ns / 1000000000);
  struct tm tm;
  if (wall_ns && localtime_r(&seconds, &tm))
    strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &tm);
  ljp_print_format(out, "%-19s  ", text);
}

/* The files of a process; each merged file is a group of its own. */
struct group {
  const struct ljp_segment *first, *last;
  uint64_t bytes;
  size_t files;
};

static int list_by_session(const void *a, const void *b)
{
  const struct ljp_segment *x = *(const struct ljp_segment *const *)a;
  const struct ljp_segment *y = *(const struct ljp_segment *const *)b;
  int order = strcmp(x->made.service, y->made.service);
  if (!order)
    order = (x->stream > y->stream) - (x->stream < y->stream);
  if (!order)
    order = (int)x->merged - (int)y->merged;
  /* The list has them in their order. */
  return order ? order : (x > y) - (x < y);
}

static int list_by_age(const void *a, const void *b)
{
  const struct group *x = a, *y = b;
  return (x->first > y->first) - (x->first < y->first);
}

static bool list_belongs(const struct group *g, const struct ljp_segment *s)
{
  return !s->merged && !g->first->merged && g->first->stream == s->stream &&
         strcmp(g->first->made.service, s->made.service) == 0;
}

static void list_group(const struct group *g, struct ljp_print *out)
{
  const struct ljp_segment *s = g->first;
  char pid[24];
  snprintf(pid, sizeof pid, "%" PRIu64, s->pid);
  ljp_print_format(out, "%-20s  %8s  %-6s  %6zu  ", s->made.service,
                   s->merged ? "-" : pid,
                   s->merged  ? "merged"
                   : s->alive ? "alive"
                              : "dead",
                   g->files);
  size_t at = out->len;
  ljp_units_bytes(out, g->bytes);
  size_t width = out->len > at ? out->len - at : 8;
  ljp_print_format(out, "%*s  ", width < 8 ? (int)(8 - width) : 0, "");
  list_time(out, s->start_wall_ns);
  list_time(out, g->last->start_wall_ns);
  const char *program = s->executable ? s->executable : "-";
  ljp_print_safe(out, ljp_str(program, strlen(program)));
  if (s->script) {
    ljp_print_str(out, " ");
    ljp_print_safe(out, ljp_str(s->script, strlen(s->script)));
  }
  ljp_print_str(out, "\n");
}

/* Fills groups, in the order of the processes' first files. Returns their
** number. */
static size_t list_make_groups(const struct ljp_gather *g,
                               const struct ljp_segment **sorted,
                               struct group *groups)
{
  size_t n = 0, count = 0;
  for (size_t i = 0; i < g->store.count; i++) {
    const struct ljp_segment *s = &g->store.segments[i];
    if (!s->error && ljp_gather_takes(g, s))
      sorted[n++] = s;
  }
  if (n)
    qsort(sorted, n, sizeof *sorted, list_by_session);
  for (size_t i = 0; i < n; i++) {
    if (!count || !list_belongs(&groups[count - 1], sorted[i]))
      groups[count++] = (struct group){.first = sorted[i]};
    struct group *now = &groups[count - 1];
    now->last = sorted[i];
    now->bytes += sorted[i]->bytes;
    now->files++;
  }
  if (count)
    qsort(groups, count, sizeof *groups, list_by_age);
  return count;
}

void ljp_gather_list(struct ljp_gather *g, struct ljp_print *out)
{
  const struct ljp_store *store = &g->store;
  const struct ljp_segment **sorted = calloc(store->count + 1, sizeof *sorted);
  struct group *groups = calloc(store->count + 1, sizeof *groups);
  size_t count = 0;
  if (sorted && groups)
    count = list_make_groups(g, sorted, groups);
  else
    ljp_command_error("gather", "%s", ljp_status_text(LJP_ERR_MEM));
  g->failed |= !sorted || !groups;
  if (count)
    ljp_print_str(out, "SERVICE                    PID  STATE    FILES  SIZE   "
                       "   FIRST FROM           LAST FROM            "
                       "PROGRAM\n");
  else if (!g->failed)
    ljp_command_note("gather", "%s: there are no recordings", store->path);
  for (size_t i = 0; i < count; i++)
    list_group(&groups[i], out);
  for (size_t i = 0; i < store->count; i++)
    if (store->segments[i].error)
      ljp_command_note("gather", "%s: %s", store->segments[i].name,
                       store->segments[i].error);
  free((void *)sorted);
  free(groups);
}
