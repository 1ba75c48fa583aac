/*
** ljprof heap: what a heap snapshot holds, by type, and what keeps the most
** alive.
*/
#include "tools/heap/heap.h"
#include "tools/heap/kinds.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "parsers/heap/dominators.h"
#include "parsers/stream/names.h"
#include "tools/shared/command.h"

static const char help[] =
    "Usage: ljprof heap [OPTION]... FILE\n"
    "Shows what a heap snapshot holds: objects and bytes by type, and the "
    "objects that\n"
    "keep the most memory alive, each with a shortest path from a root. What "
    "an\n"
    "object retains would go with it: its own bytes, and those of all objects "
    "that can\n"
    "be reached only through it. misc.memprof.snapshot(\"FILE\") writes a "
    "snapshot.\n"
    "\n"
    "  --top N  show N retainers and N kinds of objects (20)\n"
    "  --json   write one JSON object\n"
    "  --help   show this help\n"
    "\n"
    "Exit code: 0 success, 1 not readable, damaged or without a snapshot, 2 "
    "wrong usage.\n";

enum { TYPES = 32, MAX_TOP = 1000 };

struct heap_totals {
  uint64_t objects[TYPES], bytes[TYPES];
  uint64_t all_objects, all_bytes, garbage, garbage_bytes;
};

struct heap_view {
  struct ljp_graph graph;
  struct heap_totals totals;
  struct ljp_heap_kinds kinds;
  uint32_t top[MAX_TOP], count, wanted;
  uint64_t *largest; /* By node: the most that a node below it retains. */
};

static void heap_add_up(struct heap_view *v)
{
  const struct ljp_graph *g = &v->graph;
  struct heap_totals *t = &v->totals;
  for (uint32_t i = 1; i < g->count; i++) {
    t->objects[g->type[i] % TYPES]++;
    t->bytes[g->type[i] % TYPES] += g->bytes[i];
    t->all_objects++;
    t->all_bytes += g->bytes[i];
    if (g->dominator[i] == LJP_DOMINATED_BY_NONE) {
      t->garbage++;
      t->garbage_bytes += g->bytes[i];
    }
  }
}

/* -- The biggest retainers ------------------------------------------------- */

static const struct ljp_graph *heap_sort_graph;

static int heap_by_retained(const void *a, const void *b)
{
  uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
  if (heap_sort_graph->retained[x] != heap_sort_graph->retained[y])
    return heap_sort_graph->retained[x] < heap_sort_graph->retained[y] ? 1 : -1;
  return x < y ? -1 : x > y;
}

/* An object that only leads to another one, which retains nearly as much, is no
** retainer of its own: what counts is where memory comes together. */
static bool heap_gathers(const struct heap_view *v, uint32_t i)
{
  const struct ljp_graph *g = &v->graph;
  return g->dominator[i] != LJP_DOMINATED_BY_NONE &&
         g->type[i] <= LJP_MEM_TYPE_TRACE &&
         v->largest[i] < g->retained[i] / 4 * 3;
}

static enum ljp_status heap_find_top(struct heap_view *v)
{
  const struct ljp_graph *g = &v->graph;
  uint64_t least = 0;
  uint32_t count = 0;
  uint32_t *all = malloc(g->count * sizeof *all);
  v->largest = calloc(g->count, sizeof *v->largest);
  if (!all || !v->largest) {
    free(all);
    return LJP_ERR_MEM;
  }
  for (uint32_t i = 1; i < g->count; i++) {
    uint32_t up = g->dominator[i];
    if (up != LJP_DOMINATED_BY_NONE && g->retained[i] > v->largest[up])
      v->largest[up] = g->retained[i];
  }
  least = v->totals.all_bytes / 1000;
  for (uint32_t i = 1; i < g->count; i++)
    if (g->retained[i] > least && heap_gathers(v, i))
      all[count++] = i;
  heap_sort_graph = g;
  qsort(all, count, sizeof *all, heap_by_retained);
  v->count = count < v->wanted ? count : v->wanted;
  memcpy(v->top, all, v->count * sizeof *all);
  free(all);
  return LJP_OK;
}

/* -- Text ------------------------------------------------------------------ */

static void heap_text_amount(struct ljp_print *out, uint64_t bytes)
{
  char text[32];
  static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  double amount = (double)bytes;
  unsigned unit = 0;
  while (amount >= 999.5 && unit < 4) {
    amount /= 1024;
    unit++;
  }
  snprintf(text, sizeof text, "%.*f %s",
           unit == 0 || amount >= 99.95 ? 0
           : amount >= 9.995            ? 1
                                        : 2,
           amount, units[unit]);
  ljp_print_format(out, "%10s", text);
}

static void heap_text_safe(struct ljp_print *out,
                           const struct ljp_heap_text *text)
{
  ljp_print_safe(out, ljp_str(text->data, text->len));
}

static void heap_text_head(const struct heap_view *v, struct ljp_print *out)
{
  const struct ljp_graph *g = &v->graph;
  const struct heap_totals *t = &v->totals;
  ljp_print_format(out, "%" PRIu64 " objects,", t->all_objects);
  heap_text_amount(out, t->all_bytes);
  ljp_print_format(out, "; %" PRIu64 " of them are garbage,", t->garbage);
  heap_text_amount(out, t->garbage_bytes);
  ljp_print_str(out, "\n");
  if (t->all_bytes != g->head.heap_bytes)
    ljp_print_format(out,
                     "%" PRId64 " bytes are held by C functions that were "
                     "running\n",
                     (int64_t)(g->head.heap_bytes - t->all_bytes));
  if (!g->ended || g->end.objects != t->all_objects || g->missing_refs)
    ljp_print_format(out,
                     "The snapshot is damaged: %s; %" PRIu64
                     " references lead nowhere\n",
                     g->ended ? "objects are missing" : "its end is missing",
                     g->missing_refs);
}

static void heap_text(const struct heap_view *v, struct ljp_print *out)
{
  const struct ljp_graph *g = &v->graph;
  heap_text_head(v, out);
  ljp_print_format(out, "\n%10s %10s  %s\n", "retained", "own",
                   "what keeps the most alive");
  for (uint32_t i = 0; i < v->count; i++) {
    struct ljp_heap_text what = {.len = 0}, path = {.len = 0};
    uint32_t node = v->top[i];
    ljp_heap_path(g, node, &path);
    ljp_heap_describe(g, node, &what);
    heap_text_amount(out, g->retained[node]);
    ljp_print_str(out, " ");
    heap_text_amount(out, g->bytes[node]);
    ljp_print_str(out, "  ");
    heap_text_safe(out, &path);
    ljp_print_str(out, "  ");
    heap_text_safe(out, &what);
    ljp_print_str(out, "\n");
  }
  ljp_print_format(out, "\n%10s %10s %10s  %s\n", "retained", "own", "objects",
                   "kind");
  for (uint32_t i = 0; i < v->kinds.count && i < v->wanted; i++) {
    const struct ljp_heap_kind *kind = &v->kinds.list[i];
    struct ljp_heap_text what = {.len = 0};
    ljp_heap_kind_text(g, kind, &what);
    heap_text_amount(out, kind->retained);
    ljp_print_str(out, " ");
    heap_text_amount(out, kind->own);
    ljp_print_format(out, " %10" PRIu64 "  ", kind->objects);
    heap_text_safe(out, &what);
    ljp_print_str(out, "\n");
  }
  ljp_print_format(out, "\n%10s %10s  %s\n", "bytes", "objects", "type");
  for (unsigned n = 0; n < TYPES; n++) {
    unsigned most = 0;
    for (unsigned i = 1; i < TYPES; i++)
      if (v->totals.bytes[i] > v->totals.bytes[most])
        most = i;
    if (!v->totals.objects[most])
      break;
    heap_text_amount(out, v->totals.bytes[most]);
    ljp_print_format(out, " %10" PRIu64 "  %s\n", v->totals.objects[most],
                     ljp_name_mem_type(most) ? ljp_name_mem_type(most) : "?");
    ((struct heap_view *)v)->totals.bytes[most] = 0;
    ((struct heap_view *)v)->totals.objects[most] = 0;
  }
}

/* -- JSON ------------------------------------------------------------------ */

static void heap_json(const struct heap_view *v, struct ljp_print *out)
{
  const struct ljp_graph *g = &v->graph;
  const struct heap_totals *t = &v->totals;
  const char *comma = "";
  ljp_print_format(out,
                   "{\"objects\":%" PRIu64 ",\"bytes\":%" PRIu64
                   ",\"heap_bytes\":%" PRIu64 ",\"garbage_objects\":%" PRIu64
                   ",\"garbage_bytes\":%" PRIu64 ",\"complete\":%s,\"types\":[",
                   t->all_objects, t->all_bytes, g->head.heap_bytes, t->garbage,
                   t->garbage_bytes,
                   g->ended && g->end.objects == t->all_objects ? "true"
                                                                : "false");
  for (unsigned i = 1; i < TYPES; i++) {
    if (!t->objects[i])
      continue;
    ljp_print_format(out,
                     "%s{\"type\":\"%s\",\"objects\":%" PRIu64
                     ",\"bytes\":%" PRIu64 "}",
                     comma, ljp_name_mem_type(i) ? ljp_name_mem_type(i) : "?",
                     t->objects[i], t->bytes[i]);
    comma = ",";
  }
  ljp_print_str(out, "],\"retainers\":[");
  for (uint32_t i = 0; i < v->count; i++) {
    struct ljp_heap_text what = {.len = 0}, path = {.len = 0};
    ljp_heap_path(g, v->top[i], &path);
    ljp_heap_describe(g, v->top[i], &what);
    ljp_print_format(out,
                     "%s{\"address\":\"0x%" PRIx64 "\",\"retained\":%" PRIu64
                     ",\"own\":%" PRIu64 ",\"object\":",
                     i ? "," : "", g->address[v->top[i]],
                     g->retained[v->top[i]], g->bytes[v->top[i]]);
    ljp_print_json(out, ljp_str(what.data, what.len));
    ljp_print_str(out, ",\"path\":");
    ljp_print_json(out, ljp_str(path.data, path.len));
    ljp_print_str(out, "}");
  }
  ljp_print_str(out, "],\"kinds\":[");
  for (uint32_t i = 0; i < v->kinds.count && i < v->wanted; i++) {
    const struct ljp_heap_kind *kind = &v->kinds.list[i];
    struct ljp_heap_text what = {.len = 0};
    ljp_heap_kind_text(g, kind, &what);
    ljp_print_format(out,
                     "%s{\"objects\":%" PRIu64 ",\"own\":%" PRIu64
                     ",\"retained\":%" PRIu64 ",\"kind\":",
                     i ? "," : "", kind->objects, kind->own, kind->retained);
    ljp_print_json(out, ljp_str(what.data, what.len));
    ljp_print_str(out, "}");
  }
  ljp_print_str(out, "]}\n");
}

/* -- The command ----------------------------------------------------------- */

static bool heap_read_top(const char *text, uint32_t *top)
{
  char *end = NULL;
  unsigned long n = text ? strtoul(text, &end, 10) : 20;
  if (text && (*text < '0' || *text > '9' || *end || n < 1 || n > MAX_TOP)) {
    ljp_command_error("heap", "--top wants a number from 1 to %d, not '%s'",
                      MAX_TOP, text);
    return false;
  }
  *top = (uint32_t)n;
  return true;
}

int ljp_command_heap(int argc, char **argv)
{
  static struct heap_view v;
  static struct ljp_print out;
  const char *file, *top = NULL;
  bool json = false;
  const struct ljp_flag flags[] = {{"--json", &json, NULL},
                                   {"--top", NULL, &top}};
  int code = ljp_command_options("heap", help, argc, argv, flags, 2, &file);
  if (code >= 0)
    return code;
  if (!heap_read_top(top, &v.wanted))
    return LJP_EXIT_USAGE;
  if (strcmp(file, "-") == 0)
    file = "/dev/stdin";
  enum ljp_status status = ljp_graph_load(&v.graph, file);
  if (status) {
    ljp_command_error("heap", "%s: %s", file, v.graph.error);
    ljp_graph_fini(&v.graph);
    return LJP_EXIT_FAILED;
  }
  heap_add_up(&v);
  code = v.graph.ended && v.graph.end.objects == v.totals.all_objects
             ? LJP_EXIT_OK
             : LJP_EXIT_FAILED;
  if (heap_find_top(&v) || ljp_heap_kinds_find(&v.graph, &v.kinds)) {
    ljp_command_error("heap", "%s: out of memory", file);
    code = LJP_EXIT_FAILED;
  } else {
    ljp_print_begin(&out, 1);
    if (json)
      heap_json(&v, &out);
    else
      heap_text(&v, &out);
    code = ljp_command_end("heap", &out, code);
  }
  free(v.largest);
  ljp_heap_kinds_fini(&v.kinds);
  ljp_graph_fini(&v.graph);
  return code;
}
