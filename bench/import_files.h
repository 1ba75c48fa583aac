/*
** Files of Tarantool's profilers for bench_import, of 100 MB each: one for each
** kind of program that the reader may meet.
*/
#ifndef LJP_BENCH_IMPORT_FILES_H
#define LJP_BENCH_IMPORT_FILES_H

#include <stdint.h>

struct import_made {
  uint64_t events; /* Without symbols. */
  uint64_t live;   /* Blocks at the end. */
};

struct import_kind {
  const char *name; /* It begins with the magic of the events. */
  void (*make)(void *out);
  uint64_t protos, cfuncs; /* In the symbol table. 0: a few thousand. */
};

/* The kinds, up to one without a name. */
extern const struct import_kind import_kinds[];

/* Writes a file of a kind. An error ends the program. */
struct import_made import_make(const struct import_kind *kind,
                               const char *path);

#endif
