/*
** Lists a store: a line for each process and for what was merged, then what
** cannot be read.
*/
#include <inttypes.h>
#include <stdio.h>
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

/* The lines are in the order of the processes' first files. */
static bool list_is_first(const struct ljp_store *store, size_t i)
{
  const struct ljp_segment *s = &store->segments[i];
  for (size_t k = 0; k < i; k++)
    if (!store->segments[k].error && !store->segments[k].merged &&
        store->segments[k].stream == s->stream &&
        strcmp(store->segments[k].made.service, s->made.service) == 0)
      return false;
  return true;
}

static void list_process(const struct ljp_store *store, size_t first,
                         struct ljp_print *out)
{
  const struct ljp_segment *s = &store->segments[first], *last = s;
  char pid[24];
  uint64_t bytes = 0;
  size_t files = 0;
  for (size_t i = first; i < store->count; i++) {
    const struct ljp_segment *other = &store->segments[i];
    if (other->error || other->stream != s->stream ||
        strcmp(other->made.service, s->made.service) != 0 ||
        other->merged != s->merged)
      continue;
    bytes += other->bytes;
    files++;
    last = other;
  }
  snprintf(pid, sizeof pid, "%" PRIu64, s->pid);
  ljp_print_format(out, "%-20s  %8s  %-6s  %6zu  ", s->made.service,
                   s->merged ? "-" : pid,
                   s->merged  ? "merged"
                   : s->alive ? "alive"
                              : "dead",
                   files);
  size_t at = out->len;
  ljp_units_bytes(out, bytes);
  size_t width = out->len > at ? out->len - at : 8;
  ljp_print_format(out, "%*s  ", width < 8 ? (int)(8 - width) : 0, "");
  list_time(out, s->start_wall_ns);
  list_time(out, last->start_wall_ns);
  const char *program = s->executable ? s->executable : "-";
  ljp_print_safe(out, ljp_str(program, strlen(program)));
  if (s->script) {
    ljp_print_str(out, " ");
    ljp_print_safe(out, ljp_str(s->script, strlen(s->script)));
  }
  ljp_print_str(out, "\n");
}

void ljp_gather_list(const struct ljp_gather *g, struct ljp_print *out)
{
  const struct ljp_store *store = &g->store;
  bool any = false;
  for (size_t i = 0; i < store->count; i++) {
    const struct ljp_segment *s = &store->segments[i];
    if (s->error || !ljp_gather_takes(g, s) ||
        (!s->merged && !list_is_first(store, i)))
      continue;
    if (!any)
      ljp_print_str(out, "SERVICE                    PID  STATE    FILES  SIZE "
                         "     FIRST FROM           LAST FROM            "
                         "PROGRAM\n");
    any = true;
    list_process(store, i, out);
  }
  if (!any)
    ljp_command_note("gather", "%s: there are no recordings", store->path);
  for (size_t i = 0; i < store->count; i++)
    if (store->segments[i].error)
      ljp_command_note("gather", "%s: %s", store->segments[i].name,
                       store->segments[i].error);
}
