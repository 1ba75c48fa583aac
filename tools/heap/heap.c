/*
** ljprof heap: options, and the choice of a view.
*/
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tools/heap/diff.h"
#include "tools/heap/find.h"
#include "tools/heap/joined.h"
#include "tools/shared/command.h"
#include "tools/shared/labels.h"

static const char help[] =
    "Usage: ljprof heap [OPTION]... FILE\n"
    "       ljprof heap --diff [OPTION]... [BEFORE] AFTER\n"
    "       ljprof heap -p PID [-o FILE] [OPTION]...\n"
    "Shows what a heap snapshot holds, and what keeps it alive. An object "
    "retains what\n"
    "would go with it: its own bytes, and those of all objects that can be "
    "reached only\n"
    "through it. misc.memprof.snapshot(\"FILE\") writes a snapshot. Without an "
    "option\n"
    "for a view, the command shows what keeps the most alive, with a shortest "
    "path from\n"
    "a root, and the kinds and types of objects.\n"
    "\n"
    "Views:\n"
    "  --path WHAT         who holds these objects: the ways from a root, with "
    "the\n"
    "                      number of objects for each\n"
    "  --retained-by WHAT  what would go if nothing held these objects, by "
    "kind\n"
    "  --dominators        who keeps what alive, as a tree\n"
    "  --coroutines        coroutines by the stack on which they wait, with "
    "what they\n"
    "                      hold\n"
    "  --strings           strings by what they look like and by who holds "
    "them, and\n"
    "                      the largest\n"
    "  --sites             which lines allocated what is alive; for snapshots "
    "in a\n"
    "                      memory session's file\n"
    "  --diff              what was born between two snapshots and is alive, "
    "who\n"
    "                      holds it, and what grew; of one file: its last two\n"
    "                      snapshots\n"
    "\n"
    "WHAT is an address (0x7f0a1c2b4e80, as --json and dump show it) or an "
    "extended\n"
    "regular expression, which is looked for in the contents of strings, in "
    "kinds of\n"
    "objects, in the keys under which tables hold objects, and in the lines "
    "that\n"
    "allocated them.\n"
    "\n"
    "Objects by the labels with which they were allocated, in a memory "
    "session's file:\n"
    "  --label KEY=VALUE  with --path, --retained-by, --coroutines, --strings "
    "or\n"
    "                     --sites: only objects with this label (KEY=: without "
    "KEY);\n"
    "                     may be repeated\n"
    "  --by label:KEY     show --sites, and the sites of --diff, by the values "
    "of KEY\n"
    "                     instead of lines\n"
    "\n"
    "Of a running program:\n"
    "  -p, --pid PID     take a snapshot of the program: its number (see "
    "ljprof list),\n"
    "                    or the path of the socket at which it listens\n"
    "  -o, --output FILE keep the snapshot in FILE (default: it is only "
    "shown)\n"
    "  --force           replace FILE\n"
    "  --vm N            take a snapshot of VM N only (default: of all VMs, "
    "one after\n"
    "                    the other)\n"
    "  --gc              wait for one more collection first\n"
    "  --string-bytes N  keep N bytes of each string, 0 to 4096 (default 64)\n"
    "\n"
    "Options:\n"
    "  --snapshot N  show the Nth snapshot of the file (default: the last); "
    "with\n"
    "                --diff: compare it with the one before it, or N,M: the "
    "Mth with\n"
    "                the Nth\n"
    "  --depth N     levels of --dominators (default 5)\n"
    "  --top N       rows of a table (default 20)\n"
    "  --json        write one JSON object\n"
    "  --help        show this help\n"
    "\n"
    "Exit code: 0 success, 1 not readable, damaged or without a snapshot, 2 "
    "wrong usage.\n";

struct heap_options {
  const char *path, *retained_by, *snapshot, *depth, *top;
  bool dominators, coroutines, strings, sites, diff, json;
  struct ljp_heap_joined_options joined;
  struct ljp_label_options labels;
};

typedef enum ljp_status heap_show(struct ljp_heap_view *v,
                                  struct ljp_heap_show *s);

static bool heap_read_number(const char *option, const char *text,
                             uint32_t most, uint32_t *number)
{
  char *end = NULL;
  unsigned long n = text ? strtoul(text, &end, 10) : 0;
  if (!text)
    return true;
  if (*text < '0' || *text > '9' || *end || n < 1 || n > most) {
    ljp_command_error("heap",
                      "%s wants a number from 1 to %" PRIu32 ", not '%s'",
                      option, most, text);
    return false;
  }
  *number = (uint32_t)n;
  return true;
}

/* NULL: several were asked for, which is reported. */
static heap_show *heap_choose(const struct heap_options *o,
                              const char **pattern)
{
  const struct {
    const char *option;
    bool wanted;
    heap_show *show;
    const char *pattern;
  } views[] = {
      {"--path", o->path != NULL, ljp_heap_paths, o->path},
      {"--retained-by", o->retained_by != NULL, ljp_heap_retained_by,
       o->retained_by},
      {"--dominators", o->dominators, ljp_heap_dominators, NULL},
      {"--coroutines", o->coroutines, ljp_heap_coroutines, NULL},
      {"--strings", o->strings, ljp_heap_strings, NULL},
      {"--sites", o->sites, ljp_heap_show_sites, NULL},
      {"--diff", o->diff, ljp_heap_overview, NULL}, /* Two views, see below. */
  };
  const char *chosen = NULL;
  heap_show *show = o->labels.by ? ljp_heap_show_sites : ljp_heap_overview;
  for (unsigned i = 0; i < sizeof views / sizeof *views; i++) {
    if (!views[i].wanted)
      continue;
    if (chosen) {
      ljp_command_error("heap", "%s and %s are two views: choose one", chosen,
                        views[i].option);
      return NULL;
    }
    chosen = views[i].option;
    show = views[i].show;
    *pattern = views[i].pattern;
  }
  return show;
}

/* -- Loading --------------------------------------------------------------- */

static int heap_fail(const char *file, enum ljp_status status)
{
  if (status == LJP_ERR_USE) /* Reported. */
    return LJP_EXIT_USAGE;
  ljp_command_error("heap", "%s: %s", file, ljp_status_text(status));
  return LJP_EXIT_FAILED;
}

static bool heap_load(struct ljp_heap_view *v, const char *file,
                      uint32_t snapshot)
{
  if (strcmp(file, "-") == 0)
    file = "/dev/stdin";
  if (ljp_graph_load(&v->graph, file, snapshot)) {
    ljp_command_error("heap", "%s: %s", file, v->graph.error);
    return false;
  }
  ljp_heap_add_up(v);
  return true;
}

/* "N" or "N,M" of --snapshot. */
static bool heap_read_snapshots(const struct heap_options *o, unsigned files,
                                uint32_t number[2])
{
  char first[32];
  const char *comma = o->snapshot ? strchr(o->snapshot, ',') : NULL;
  if (!comma)
    return heap_read_number("--snapshot", o->snapshot, UINT32_MAX, &number[1]);
  size_t len = (size_t)(comma - o->snapshot);
  if (!o->diff || files != 1 || len >= sizeof first) {
    ljp_command_error("heap",
                      "--snapshot %s: two snapshots are for --diff with one "
                      "file",
                      o->snapshot);
    return false;
  }
  memcpy(first, o->snapshot, len);
  first[len] = '\0';
  return heap_read_number("--snapshot", first, UINT32_MAX, &number[0]) &&
         heap_read_number("--snapshot", comma + 1, UINT32_MAX, &number[1]);
}

/* The snapshots to be compared: of two files, or of one. */
static bool heap_load_two(struct ljp_heap_view v[2], const char **files,
                          unsigned count, const uint32_t number[2])
{
  const char *after = files[count - 1];
  if (!heap_load(&v[1], after, number[1]))
    return false;
  uint32_t before = number[0];
  if (count == 1 && !before) {
    before = v[1].graph.before;
    if (!before) {
      ljp_command_error("heap",
                        "%s: no snapshot of this VM comes before snapshot "
                        "%" PRIu32 "; name another file as the first one",
                        after, v[1].graph.number);
      return false;
    }
  }
  return heap_load(&v[0], files[0], count == 1 ? before : 0);
}

/* What is to be shown, checked before anything is read. */
struct heap_plan {
  const struct heap_options *o;
  struct ljp_heap_view *v; /* Two. */
  heap_show *show;
  uint32_t number[2];
  struct ljp_profile_options labels;
};

/* For the views that show or look for them. */
static bool heap_load_sites(const struct heap_plan *plan,
                            struct ljp_heap_view *v, const char *file)
{
  char error[LJP_READER_ERROR_BYTES + 64];
  const bool needed = plan->show == ljp_heap_show_sites ||
                      plan->labels.labels.count || plan->labels.label_key;
  if (!needed && !plan->o->diff && !v->pattern)
    return true;
  if (needed && !v->graph.in_session) {
    ljp_command_error("heap",
                      "%s: %s are not known, since no "
                      "memory session has recorded the snapshot; ljprof record "
                      "--memory --every --snapshot writes both into one file",
                      file,
                      plan->labels.labels.count || plan->labels.label_key
                          ? "the labels of allocations"
                          : "the lines that allocated");
    return false;
  }
  if (!ljp_heap_sites_init(&v->sites, &v->graph, file, &plan->labels, error))
    return true;
  ljp_command_error("heap", "%s: %s", file, error);
  return false;
}

/* --label and --by, with a view that has them. */
static bool heap_check_labels(struct heap_plan *plan, unsigned files)
{
  const struct heap_options *o = plan->o;
  const bool overview = plan->show == ljp_heap_overview && !o->diff;
  if (ljp_label_options("heap", &o->labels, &plan->labels))
    return false;
  plan->labels.label_frames = false;
  if (o->labels.labels[0] &&
      (overview || o->diff || plan->show == ljp_heap_dominators))
    ljp_command_error("heap", "--label is for --path, --retained-by, "
                              "--coroutines, --strings and --sites");
  else if (o->labels.by && !o->diff && plan->show != ljp_heap_show_sites)
    ljp_command_error("heap", "--by is for --sites and --diff");
  else if (o->labels.by && o->diff && files > 1)
    ljp_command_error("heap", "--by is for two snapshots in the file of one "
                              "memory session: name one file");
  else
    return true;
  return false;
}

/* -1: go on; else the exit code after reporting what is wrong. */
static int heap_check(struct heap_plan *plan, const char **files,
                      unsigned count)
{
  const struct heap_options *o = plan->o;
  struct ljp_heap_view *v = plan->v;
  plan->show = heap_choose(o, &v[1].pattern);
  v[0].top = v[1].top = 20;
  v[1].depth = 5;
  if (!plan->show ||
      !heap_read_number("--top", o->top, LJP_HEAP_MAX_TOP, &v[1].top) ||
      !heap_read_number("--depth", o->depth, LJP_HEAP_MAX_DEPTH, &v[1].depth) ||
      !heap_read_snapshots(o, count, plan->number))
    return LJP_EXIT_USAGE;
  if (count > 2 || (count > 1 && !o->diff)) {
    ljp_command_error("heap", "unexpected argument '%s': %s", files[count - 1],
                      o->diff
                          ? "--diff takes two files"
                          : "this command takes one file; --diff takes two");
    return LJP_EXIT_USAGE;
  }
  return (v[1].pattern && !ljp_heap_can_find(v[1].pattern)) ||
                 !heap_check_labels(plan, count)
             ? LJP_EXIT_USAGE
             : -1;
}

static int heap_run(const struct heap_plan *plan, const char **files,
                    unsigned count)
{
  static struct ljp_print out;
  const struct heap_options *o = plan->o;
  struct ljp_heap_view *v = plan->v;
  struct ljp_heap_show s;
  bool loaded = o->diff ? heap_load_two(v, files, count, plan->number)
                        : heap_load(&v[1], files[0], plan->number[1]);
  if (!loaded)
    return LJP_EXIT_FAILED;
  /* Two files tell nothing of each other's allocations. */
  if (count == 1 && (!heap_load_sites(plan, &v[1], files[0]) ||
                     (o->diff && !heap_load_sites(plan, &v[0], files[0]))))
    return LJP_EXIT_FAILED;
  bool whole =
      ljp_heap_is_whole(&v[1]) && (!o->diff || ljp_heap_is_whole(&v[0]));
  ljp_print_begin(&out, 1);
  ljp_heap_show_begin(&s, &out, o->json);
  enum ljp_status status =
      o->diff ? ljp_heap_diff(&v[0], &v[1], &s) : plan->show(&v[1], &s);
  ljp_heap_show_end(&s);
  if (status)
    return heap_fail(files[0], status);
  return ljp_command_end("heap", &out, whole ? LJP_EXIT_OK : LJP_EXIT_FAILED);
}

static void heap_free(struct ljp_heap_view v[2])
{
  for (int i = 0; i < 2; i++) {
    ljp_heap_sites_fini(&v[i].sites);
    ljp_graph_fini(&v[i].graph);
  }
}

/* A snapshot of a running program, which is in this file. */
static int heap_run_joined(void *ctx, const char *path)
{
  const struct heap_plan *plan = ctx;
  int code = heap_run(plan, &path, 1);
  heap_free(plan->v);
  memset(&plan->v[0].graph, 0, sizeof plan->v[0].graph);
  memset(&plan->v[1].graph, 0, sizeof plan->v[1].graph);
  memset(&plan->v[1].sites, 0, sizeof plan->v[1].sites);
  return code;
}

/* The arguments are read. */
static int heap_main(struct heap_plan *plan, const char **files, unsigned count)
{
  const struct ljp_heap_joined_options *joined = &plan->o->joined;
  if (!joined->pid && !count) {
    ljp_command_error("heap", "no file given ('-': standard input)");
    return LJP_EXIT_USAGE;
  }
  const struct heap_options *o = plan->o;
  int code = ljp_heap_joined_check(joined, o->diff || o->sites || o->snapshot ||
                                               o->labels.labels[0] ||
                                               o->labels.by || count);
  if (code < 0)
    code = heap_check(plan, files, count);
  if (code >= 0)
    return code;
  return joined->pid
             ? ljp_heap_joined(joined, plan->o->json, heap_run_joined, plan)
             : heap_run(plan, files, count);
}

int ljp_command_heap(int argc, char **argv)
{
  static struct ljp_heap_view v[2];
  struct heap_options o = {.path = NULL};
  struct heap_plan plan = {.o = &o, .v = v};
  unsigned count;
  const struct ljp_flag flags[] = {
      {"--json", &o.json, NULL},
      {"--top", NULL, &o.top},
      {"--path", NULL, &o.path},
      {"--retained-by", NULL, &o.retained_by},
      {"--dominators", &o.dominators, NULL},
      {"--depth", NULL, &o.depth},
      {"--coroutines", &o.coroutines, NULL},
      {"--strings", &o.strings, NULL},
      {"--sites", &o.sites, NULL},
      {"--diff", &o.diff, NULL},
      {"--snapshot", NULL, &o.snapshot},
      {"-p", NULL, &o.joined.pid},
      {"--pid", NULL, &o.joined.pid},
      {"-o", NULL, &o.joined.output},
      {"--output", NULL, &o.joined.output},
      {"--force", &o.joined.force, NULL},
      {"--vm", NULL, &o.joined.vm},
      {"--gc", &o.joined.gc, NULL},
      {"--string-bytes", NULL, &o.joined.string_bytes},
      LJP_LABEL_FLAGS(o.labels),
  };
  const char **files = malloc((size_t)argc * sizeof *files);
  if (!files)
    return heap_fail("heap", LJP_ERR_MEM);
  int code = ljp_command_words("heap", help, argc, argv, flags,
                               sizeof flags / sizeof *flags, files, &count);
  if (code < 0)
    code = heap_main(&plan, files, count);
  heap_free(v);
  free((void *)files);
  return code;
}
