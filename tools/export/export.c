/*
** ljprof export: writes a profile in the format of another tool.
*/
#include "tools/export/export.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "parsers/heap/graph.h"
#include "tools/export/ljm.h"
#include "tools/shared/command.h"
#include "tools/shared/damage.h"
#include "tools/shared/labels.h"
#include "tools/shared/outfile.h"

static const struct {
  const char *name, *unit;
} export_values[] = {
#define LJP_X(name, text, unit) {text, unit},
    LJP_VALUE_LIST(LJP_X)
#undef LJP_X
};

static const struct {
  const char *name, *help;
  enum ljp_status (*run)(struct ljp_export *e);
} export_formats[] = {
#define LJP_X(name, text, help) {text, help, ljp_export_##name},
    LJP_EXPORT_LIST(LJP_X)
#undef LJP_X
};
#define LJP_EXPORT_WORD(name, text, more) " " text
enum { FORMATS = sizeof export_formats / sizeof *export_formats };

static const char export_help_head[] =
    "Usage: ljprof export --to FORMAT -o OUT [OPTION]... FILE\n"
    "Writes a profile in the format of another tool.\n"
    "\n"
    "  --to FORMAT    one of:\n";
static const char export_help_values[] =
    "  -o OUT         write to OUT ('-': standard output)\n"
    "  --force        replace OUT if it exists\n"
    "  --lines        show the current line of a frame instead of the line of\n"
    "                 its definition\n"
    "  --value VALUE  count this value (default: the first of these that the\n"
    "                 file has; unit in brackets):\n"
    "                  ";
static const char export_help_tail[] =
    "\n"
    "                 pprof, otlp and callgrind files hold all values at "
    "once.\n"
    "  --lua          without machine code, which then counts for the function "
    "that\n"
    "                 made it run, as in reports (default: all frames)\n"
    "  --label KEY=VALUE\n"
    "                 export what has this label; several: all of them; KEY=: "
    "without KEY\n"
    "  --by label:KEY divide all stacks by the value of a label, as their "
    "outermost\n"
    "                 frames\n"
    "  --snapshot N   heapsnapshot: export the Nth snapshot of the file (the "
    "last)\n"
    "  --no-symbols   do not look up names of machine code\n"
    "  --help         show this help\n\n"
    "In text, a stack is written root;...;leaf. The suffix _[j] means "
    "compiled\n"
    "code, _[i] inlined into compiled code, _[k] kernel.\n\n"
    "Exit code: 0 success, 1 failure or no data to export, 2 wrong usage.\n";

const char *ljp_value_name(enum ljp_value_id value)
{
  return export_values[value].name;
}

const char *ljp_value_unit(enum ljp_value_id value)
{
  return export_values[value].unit;
}

bool ljp_value_is_memory(enum ljp_value_id value)
{
  return value >= LJP_VALUE_ALLOC_OBJECTS;
}

/* The value of a row; objects in parts of LJP_OBJECT. */
static uint64_t export_row_value(const struct ljp_profile *p, uint32_t row,
                                 enum ljp_value_id value)
{
  const struct ljp_profile_row *r = &p->rows[row];
  uint8_t kind = p->contexts[r->context].kind;
  const struct ljp_profile_memory *m = r->memory ? &p->memory[r->memory] : NULL;
  bool cpu = !m && kind == LJP_PRODUCER_CPU;
  bool wall = !m && kind == LJP_PRODUCER_WALL;
  switch (value) {
  case LJP_VALUE_SAMPLES:
    return cpu ? r->count : 0;
  case LJP_VALUE_CPU:
    return cpu && !p->recorded_by ? r->weight : 0;
  case LJP_VALUE_WALL_SAMPLES:
    return wall ? r->count : 0;
  case LJP_VALUE_WALL:
    return wall ? r->weight : 0;
  case LJP_VALUE_ALLOC_OBJECTS:
    return m ? m->alloc_objects : 0;
  case LJP_VALUE_ALLOC_SPACE:
    return m ? m->alloc_bytes : 0;
  case LJP_VALUE_INUSE_OBJECTS:
    return m ? m->live_objects : 0;
  case LJP_VALUE_INUSE_SPACE:
    return m ? m->live_bytes : 0;
  case LJP_VALUE_COUNT:
    break;
  }
  return 0;
}

void ljp_export_start(struct ljp_export *e)
{
  /* Half an object: rounds sums as the reports round them. */
  for (unsigned v = 0; v < LJP_VALUE_COUNT; v++)
    e->part[v] = LJP_OBJECT / 2;
}

uint64_t ljp_export_value(struct ljp_export *e, uint32_t row,
                          enum ljp_value_id value)
{
  uint64_t n = export_row_value(e->p, row, value);
  if (value != LJP_VALUE_ALLOC_OBJECTS && value != LJP_VALUE_INUSE_OBJECTS)
    return n;
  n += e->part[value];
  e->part[value] = n % LJP_OBJECT;
  return n / LJP_OBJECT;
}

void ljp_export_find_values(struct ljp_export *e)
{
  for (uint32_t row = 0; row < e->p->row_count; row++)
    for (unsigned v = 0; v < LJP_VALUE_COUNT; v++)
      e->has[v] |= export_row_value(e->p, row, (enum ljp_value_id)v) != 0;
}

static const char *export_value_text(unsigned i)
{
  return export_values[i].name;
}

static const char *export_format_text(unsigned i)
{
  return export_formats[i].name;
}

static void export_unknown(const char *what, const char *wanted, unsigned count,
                           const char *(*name)(unsigned i))
{
  char list[256];
  size_t at = 0;
  for (unsigned i = 0; i < count && at < sizeof list; i++)
    at += (size_t)snprintf(list + at, sizeof list - at, "%s%s",
                           i == 0           ? ""
                           : i == count - 1 ? " or "
                                            : ", ",
                           name(i));
  ljp_command_error("export", "unknown %s '%s': %s expected", what, wanted,
                    list);
}

static int export_choose_value(struct ljp_export *e, const char *file,
                               const char *wanted)
{
  unsigned v = 0;
  while (v < LJP_VALUE_COUNT &&
         (wanted ? strcmp(wanted, export_values[v].name) != 0 : !e->has[v]))
    v++;
  if (v == LJP_VALUE_COUNT) {
    if (wanted)
      export_unknown("value", wanted, LJP_VALUE_COUNT, export_value_text);
    else
      ljp_command_error("export", "%s: has no samples and no memory events%s",
                        file, ljp_damage_hint(e->p));
    return wanted ? LJP_EXIT_USAGE : LJP_EXIT_FAILED;
  }
  if (!e->has[v]) {
    ljp_command_error("export", "%s: has no data for the value '%s'", file,
                      wanted);
    return LJP_EXIT_FAILED;
  }
  e->value = (enum ljp_value_id)v;
  e->asked = wanted != NULL;
  return -1;
}

static int export_write(struct ljp_export *e, unsigned format, const char *to,
                        bool force)
{
  static struct ljp_print out;
  struct ljp_outfile file;
  int code = ljp_outfile_open(&file, "export", to, force);
  if (code >= 0)
    return code;
  ljp_print_begin(&out, file.fd);
  e->out = &out;
  enum ljp_status status = export_formats[format].run(e);
  int error = ljp_print_end(&out);
  const char *text;
  if (status == LJP_ERR_LIMIT) /* The exporter has said why. */
    return ljp_outfile_abort(&file), LJP_EXIT_FAILED;
  for (uint32_t i = 0; e->no_notices && !status && !error &&
                       (text = ljp_profile_notice(e->p, i));
       i++)
    ljp_command_note("export", "%s", text);
  if (!status)
    return ljp_outfile_commit(&file, error);
  ljp_outfile_abort(&file);
  ljp_command_error("export", "%s", ljp_status_text(status));
  return LJP_EXIT_FAILED;
}

/* Chooses the value for the formats of Tarantool's tools, which may hold
** nothing at all: a session without events is not an error there. */
static int export_choose_tarantool(struct ljp_export *e, const char *file,
                                   const char *wanted)
{
  const struct ljp_profile *p = e->p;
  bool samples = e->has[LJP_VALUE_SAMPLES] || e->has[LJP_VALUE_WALL_SAMPLES];
  if (e->ljm ? samples && !p->has_memory : p->has_memory && !samples) {
    ljp_command_error("export", "%s: has no %s: use --to %s", file,
                      e->ljm ? "memory events" : "samples",
                      e->ljm ? "ljp" : "ljm");
    return LJP_EXIT_FAILED;
  }
  if (p->recorded_by) {
    ljp_command_error("export",
                      "%s: was recorded by %s, so it is in this format", file,
                      p->recorded_by);
    return LJP_EXIT_FAILED;
  }
  if (e->ljm && p->source_count > 1) {
    ljp_command_error("export",
                      "%s: holds %u sessions, but an ljm file one heap: "
                      "export the file of each process",
                      file, p->source_count);
    return LJP_EXIT_FAILED;
  }
  if (e->ljm && wanted) {
    ljp_command_error("export", "ljm holds events, not values: do not give "
                                "--value");
    return LJP_EXIT_USAGE;
  }
  if (!e->ljm && (samples || wanted)) {
    int code = export_choose_value(e, file, wanted);
    if (code < 0 && e->value != LJP_VALUE_SAMPLES &&
        e->value != LJP_VALUE_WALL_SAMPLES) {
      ljp_command_error("export",
                        "ljp counts samples: --value is samples or "
                        "wall_samples, not '%s'",
                        wanted);
      return LJP_EXIT_USAGE;
    }
    return code;
  }
  return -1;
}

static void export_tell_renamed(void *ctx, struct ljp_str key, const char *name)
{
  (void)ctx;
  ljp_command_note("export",
                   "the program's label '%.*s' is '%s' in the file: another "
                   "label has that key",
                   (int)key.len, key.data, name);
}

static int export_profile(const char *file, unsigned format, const char *to,
                          bool force, const char *wanted,
                          const struct ljp_profile_options *options,
                          unsigned how)
{
  bool ljm = export_formats[format].run == ljp_export_ljm;
  bool ljp = export_formats[format].run == ljp_export_ljp;
  struct ljp_export e = {.how = how, .renamed = export_tell_renamed};
  struct ljp_profile_options load = *options;
  struct ljp_profile *p;
  char error[LJP_READER_ERROR_BYTES + 64];
  int code;
  if (ljm) {
    load.observe = ljp_ljm_take;
    load.observe_ctx = e.ljm = ljp_ljm_new();
    if (!e.ljm) {
      ljp_command_error("export", "cannot make a temporary file: %s",
                        strerror(errno));
      return LJP_EXIT_FAILED;
    }
  }
  if (ljp_profile_load(file, &load, &p, error)) {
    ljp_command_error("export", "%s: %s", file, error);
    ljp_ljm_free(e.ljm);
    return LJP_EXIT_FAILED;
  }
  e.p = p;
  ljp_export_find_values(&e);
  code = ljm || ljp ? export_choose_tarantool(&e, file, wanted)
                    : export_choose_value(&e, file, wanted);
  if (code < 0 && p->recorded_by &&
      export_formats[format].run == ljp_export_chrome) {
    ljp_command_error("export",
                      "%s: has no times, which a chrome-trace needs; "
                      "try --to collapsed, speedscope or pprof",
                      file);
    code = LJP_EXIT_FAILED;
  }
  if (code < 0)
    code = export_write(&e, format, to, force);
  ljp_profile_free(p);
  ljp_ljm_free(e.ljm);
  return code;
}

/* Formats of heap snapshots need no profile. */
static int export_heap(const char *file, unsigned format, const char *to,
                       bool force, const char *number,
                       const struct ljp_profile_options *options)
{
  static struct ljp_graph graph;
  char *end = NULL;
  unsigned long snapshot = number ? strtoul(number, &end, 10) : 0;
  if (number &&
      (*number < '1' || *number > '9' || *end || snapshot > UINT32_MAX)) {
    ljp_command_error("export",
                      "--snapshot wants a number from 1 to %u, not '%s'",
                      UINT32_MAX, number);
    return LJP_EXIT_USAGE;
  }
  struct ljp_export e = {.graph = &graph,
                         .file = file,
                         .no_symbols = options->no_symbols,
                         .label_key = options->label_key};
  int code = LJP_EXIT_FAILED;
  if (strcmp(file, "-") == 0)
    e.file = "/dev/stdin";
  if (ljp_graph_load(&graph, e.file, (uint32_t)snapshot))
    ljp_command_error("export", "%s: %s", file, graph.error);
  else
    code = export_write(&e, format, to, force);
  ljp_graph_fini(&graph);
  return code;
}

/* Composes the help from the lists of formats and values. NULL: out of
** memory. */
static char *export_make_help(void)
{
  char *text = NULL;
  size_t size;
  FILE *f = open_memstream(&text, &size);
  if (!f)
    return NULL;
  fputs(export_help_head, f);
  for (unsigned i = 0; i < FORMATS; i++)
    fprintf(f, "    %-12s %s\n", export_formats[i].name,
            export_formats[i].help);
  fputs(export_help_values, f);
  for (unsigned v = 0; v < LJP_VALUE_COUNT; v++)
    fprintf(f, "%s%s [%s]",
            v == 0  ? " "
            : v % 2 ? ", "
                    : ",\n                   ",
            export_values[v].name, export_values[v].unit);
  fputs(export_help_tail, f);
  if (fclose(f) == 0)
    return text;
  free(text);
  return NULL;
}

static bool export_is_binary(unsigned format)
{
  return export_formats[format].run == ljp_export_pprof ||
         export_formats[format].run == ljp_export_otlp ||
         export_formats[format].run == ljp_export_ljm ||
         export_formats[format].run == ljp_export_ljp;
}

/* Refuses options that a format does not have: `part` of which profile, or
** `more`. NULL: none is given. */
static bool export_refuses(unsigned format, const char *part, const char *more)
{
  const bool ljm = export_formats[format].run == ljp_export_ljm;
  if (export_formats[format].run == ljp_export_heapsnapshot) {
    const bool by = part && strcmp(part, "--by") == 0;
    if (part && strcmp(part, "--label") == 0)
      ljp_command_error("export", "--label: heap snapshots are exported whole; "
                                  "--by label:KEY puts labels into the stacks "
                                  "that allocated");
    else if (more || (part && !by))
      ljp_command_error("export",
                        "%s: a heap snapshot has no stacks, which this is for",
                        more ? more : part);
    return more || (part && !by);
  }
  if (!part || (!ljm && export_formats[format].run != ljp_export_ljp) ||
      (!ljm && strcmp(part, "--label") == 0))
    return false;
  ljp_command_error("export",
                    strcmp(part, "--lua") == 0
                        ? "%s: the format %s is of Tarantool's tools, which "
                          "choose the frames themselves"
                        : "%s: the format %s is of Tarantool's tools, which "
                          "know no labels",
                    part, export_formats[format].name);
  return true;
}

int ljp_command_export(int argc, char **argv)
{
  const char *file, *to = NULL, *format = NULL, *value = NULL;
  const char *snapshot = NULL;
  struct ljp_label_options labels = {0};
  bool force = false, lines = false, no_symbols = false, lua = false;
  const struct ljp_flag flags[] = {
      {"--to" LJP_EXPORT_LIST(LJP_EXPORT_WORD), NULL, &format},
      {"-o", NULL, &to},
      {"--value" LJP_VALUE_LIST(LJP_EXPORT_WORD), NULL, &value},
      {"--force", &force, NULL},
      {"--lines", &lines, NULL},
      {"--no-symbols", &no_symbols, NULL},
      {"--lua", &lua, NULL},
      {"--snapshot", NULL, &snapshot},
      LJP_LABEL_FLAGS(labels)};
  unsigned f = 0;
  char *help = export_make_help();
  int code = ljp_command_options("export", help ? help : "", argc, argv, flags,
                                 sizeof flags / sizeof *flags, &file);
  free(help);
  if (code >= 0)
    return code;
  while (format && f < FORMATS && strcmp(format, export_formats[f].name) != 0)
    f++;
  if (!format)
    ljp_command_error(
        "export", "no format given (--to FORMAT, see ljprof export --help)");
  else if (f == FORMATS)
    export_unknown("format", format, FORMATS, export_format_text);
  if (!format || f == FORMATS)
    return LJP_EXIT_USAGE;
  const bool heap = export_formats[f].run == ljp_export_heapsnapshot;
  const char *refused = lua                        ? "--lua"
                        : heap && labels.labels[0] ? "--label"
                        : labels.by                ? "--by"
                        : labels.labels[0]         ? "--label"
                                                   : NULL;
  if (export_refuses(f, refused,
                     heap && lines   ? "--lines"
                     : heap && value ? "--value"
                                     : NULL))
    return LJP_EXIT_USAGE;
  if (snapshot && !heap) {
    ljp_command_error("export", "--snapshot is for --to heapsnapshot");
    return LJP_EXIT_USAGE;
  }
  if (!to) {
    ljp_command_error("export", "no output file given (-o OUT)");
    return LJP_EXIT_USAGE;
  }
  if (strcmp(to, "-") == 0 && export_is_binary(f) && isatty(STDOUT_FILENO)) {
    ljp_command_error("export",
                      "cannot write the binary format of %s to a terminal",
                      export_formats[f].name);
    return LJP_EXIT_FAILED;
  }
  struct ljp_profile_options options = {
      .no_symbols = no_symbols, .lua_view = lua, .points = true};
  if ((code = ljp_label_options("export", &labels, &options)))
    return code;
  if (heap)
    return export_heap(file, f, to, force, snapshot, &options);
  return export_profile(file, f, to, force, value, &options,
                        LJP_NAME_SUFFIX | (lines ? LJP_NAME_LINES : 0));
}
