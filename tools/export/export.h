/*
** Export: shared by the exporters. An exporter writes a finished profile to
** out. The values in its output add up to the totals of the reports. One
** thread.
*/
#ifndef LJP_TOOLS_EXPORT_H
#define LJP_TOOLS_EXPORT_H

#include "parsers/profile/frame_name.h"
#include "tools/shared/print.h"

/* Values: name, unit. export.c says what a row counts in each. */
#define LJP_VALUE_LIST(_)                                                      \
  _(SAMPLES, "samples", "count")                                               \
  _(CPU, "cpu", "nanoseconds")                                                 \
  _(WALL_SAMPLES, "wall_samples", "count")                                     \
  _(WALL, "wall", "nanoseconds")                                               \
  _(ALLOC_OBJECTS, "alloc_objects", "count")                                   \
  _(ALLOC_SPACE, "alloc_space", "bytes")                                       \
  _(INUSE_OBJECTS, "inuse_objects", "count")                                   \
  _(INUSE_SPACE, "inuse_space", "bytes")

enum ljp_value_id {
#define LJP_X(name, text, unit) LJP_VALUE_##name,
  LJP_VALUE_LIST(LJP_X)
#undef LJP_X
      LJP_VALUE_COUNT
};

struct ljp_graph;

/* What is known of the process besides its profile: "service.name" ... */
struct ljp_export_fact {
  const char *key, *value;
};

struct ljp_export {
  const struct ljp_profile *p;   /* NULL for formats of heap snapshots. */
  const struct ljp_graph *graph; /* Of heap snapshots, else NULL. */
  const char *file;              /* The input. */
  struct ljp_ljm *ljm;           /* Of the format ljm; else NULL. */
  struct ljp_print *out;
  enum ljp_value_id value; /* As requested, or the first there is. */
  bool asked;
  bool no_notices; /* Set by a format without a place for them:
                                  ** they go to stderr. If it is set before
                                  ** the export, formats add no notes. */
  bool own_labels; /* Samples get the program's labels only:
                                  ** no thread, VM, state or type. */
  bool apart;      /* pprof: no values but those that are there; what is
                                  ** in use, alone, has no duration. */
  bool plain_keys; /* pprof: keys of labels are plain. */
  /* pprof: the keys of the series, which no label of a sample may have; who is told
  ** that a label of the program gets another key (NULL: nobody). */
  const char *const *series_keys;
  unsigned series_key_count;
  void (*renamed)(void *ctx, struct ljp_str key, const char *name);
  void *renamed_ctx;
  const struct ljp_export_fact *facts; /* Of the format otlp; so the id. */
  unsigned fact_count;
  const uint8_t *id;              /* Of the profile, 16 bytes; NULL: none. */
  bool no_symbols;                /* For heap snapshots, as the next. */
  const char *label_key;          /* Puts its values into stacks. NULL: none. */
  unsigned how;                   /* Flags for ljp_frame_name(). */
  bool has[LJP_VALUE_COUNT];      /* Values that the profile has. */
  uint64_t part[LJP_VALUE_COUNT]; /* Parts of an object not returned yet. */
};

const char *ljp_value_name(enum ljp_value_id value);
const char *ljp_value_unit(enum ljp_value_id value);
bool ljp_value_is_memory(enum ljp_value_id value);

/* The value of a row. Memory is counted in parts of objects; only whole
** objects are returned and the rest is carried over to the next row, so that
** the sum over all rows is right. Call it once for each row, in order, after
** ljp_export_start(). */
uint64_t ljp_export_value(struct ljp_export *e, uint32_t row,
                          enum ljp_value_id value);
void ljp_export_start(struct ljp_export *e);

/* The exporters: name, format, help. They return LJP_ERR_MEM; errors of
** writing are in out. */
#define LJP_EXPORT_LIST(_)                                                     \
  _(collapsed, "collapsed", "stacks as lines of text, for flame graph tools")  \
  _(pprof, "pprof", "for go tool pprof and compatible tools (gzip)")           \
  _(speedscope, "speedscope", "for speedscope.app (JSON)")                     \
  _(callgrind, "callgrind", "for KCachegrind and callgrind_annotate")          \
  _(perf, "perf-script", "the output format of 'perf script'")                 \
  _(chrome, "chrome-trace", "for chrome://tracing and Perfetto (JSON)")        \
  _(ljm, "ljm", "memory events, for Tarantool's memprof tools")                \
  _(ljp, "ljp", "samples, for Tarantool's sysprof tools")                      \
  _(otlp, "otlp", "OTLP profiles, for OpenTelemetry (protobuf)")               \
  _(heapsnapshot, "heapsnapshot", "heap snapshot, for Chrome DevTools (JSON)")
#define LJP_X(name, text, help)                                                \
  enum ljp_status ljp_export_##name(struct ljp_export *e);
LJP_EXPORT_LIST(LJP_X)
#undef LJP_X

/* -- Labels: frames that are written alike
** ---------------------------------- */

struct ljp_labels {
  uint32_t *of_frame; /* The label of each frame. */
  uint32_t *frame;    /* One frame of each label. */
  uint32_t count;
};

enum ljp_status ljp_labels_make(struct ljp_labels *labels,
                                const struct ljp_export *e);
void ljp_labels_free(struct ljp_labels *labels);

/* The stack tree with nodes of the same parent and label joined. */
struct ljp_folded {
  struct ljp_labels labels;
  uint32_t *of_node; /* The folded node of each node; [0] is 0. */
  uint32_t *parent, *label;
  uint32_t count;
};

enum ljp_status ljp_fold(struct ljp_folded *folded, const struct ljp_export *e);
void ljp_folded_free(struct ljp_folded *folded);

/* Finds out which values the profile has. */
void ljp_export_find_values(struct ljp_export *e);

/* A key as a name of letters, digits and '_', to be freed; NULL: no memory. */
char *ljp_export_key(struct ljp_str key);

/* A copy in UTF-8 without hidden characters; data is NULL if there is no memory,
** else to be freed. */
struct ljp_str ljp_export_plain(struct ljp_str text);

/* Writes each notice of the profile between two strings. */
void ljp_export_notices(struct ljp_export *e, const char *before,
                        const char *behind);

/* Nodes from the root to a node, outermost first. The limit exceeds
** LJP_STACK_MAX_FRAMES because inlined functions are nodes, too. */
#define LJP_EXPORT_DEPTH (LJP_STACK_MAX_FRAMES * 4)
void ljp_export_path(const struct ljp_profile *p, uint32_t node,
                     uint32_t path[LJP_EXPORT_DEPTH], uint32_t *count);

#endif
