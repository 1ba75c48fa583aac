/*
** What the files of the pprof export share. One thread.
*/
#ifndef LJP_TOOLS_PPROF_H
#define LJP_TOOLS_PPROF_H

#include <tools/export/pprof.pb-c.h> /* Generated. */
#include <zlib.h>

#include "tools/export/export.h"

struct ljp_pprof {
  struct ljp_export *e;
  enum ljp_status status;
  z_stream z;
  int64_t string_count;
  uint32_t function_count, location_count;
  uint32_t *functions; /* Ids; 0: not written yet. By function. */
  uint32_t *locations; /* The same, by the innermost frame. */
  uint64_t *limits;    /* Highest offset used; by module. */
  bool *has_lines;
};

/* Each adds a text and returns its index in the table. _text: of the profile,
** which may be any bytes. _profile_string: once; *place is 0 before. */
int64_t ljp_pprof_add_name(struct ljp_pprof *w, const char *text);
int64_t ljp_pprof_add_text(struct ljp_pprof *w, struct ljp_str text);
int64_t ljp_pprof_profile_string(struct ljp_pprof *w, uint32_t number,
                                 uint32_t *place);

/* -- pprof_labels.c -------------------------------------------------------- */

/* String indexes of label keys and values; 0: not added yet. */
struct ljp_pprof_labels {
  int64_t thread, state, vm, type;
  int64_t states[256], types[256];
  int64_t *threads, *vms;
  uint32_t *strings; /* By string of the profile; NULL: there are no labels. */
  uint32_t *keys;    /* The same for keys, which have names of their own. */
  Ljp__Pprof__Label *labels; /* Of a sample. */
  Ljp__Pprof__Label **list;
};

/* False: no memory; then _free_labels() may still be called. */
bool ljp_pprof_init_labels(const struct ljp_profile *p,
                           struct ljp_pprof_labels *names);
/* Adds the keys of the program's labels. False: no memory. */
bool ljp_pprof_name_keys(struct ljp_pprof *w, struct ljp_pprof_labels *names);
void ljp_pprof_free_labels(struct ljp_pprof_labels *names);

/* Fills names->labels with those of a context. Returns their number. */
size_t ljp_pprof_label_sample(struct ljp_pprof *w,
                              struct ljp_pprof_labels *names, uint32_t context);

#endif
