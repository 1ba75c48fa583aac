/*
** What the makers of bench_import's files share. Each maker appends events until
** the file is large enough; the numbers are the same in every run. One thread.
*/
#ifndef LJP_BENCH_IMPORT_OUT_H
#define LJP_BENCH_IMPORT_OUT_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench/import_files.h"
#include "src/base/tarantool.h"
#include "test/support/encode.h"

/* Where functions and prototypes are. */
#define PROTO(n) (UINT64_C(0x7f4bad232b68) + (uint64_t)(n)*176)
#define CFUNC(n) (UINT64_C(0x55ce235d1760) + (uint64_t)(n)*224)

struct out {
  FILE *file;
  uint64_t bytes, events, live;
  struct buf b;
};

/* Ends an event; false: the file is large enough. */
bool import_more(struct out *out);

/* Symbols. head: the byte that says so. */
void import_lfunc(struct buf *b, unsigned head, uint64_t key, uint64_t n);
void import_cfunc(struct buf *b, unsigned head, uint64_t n);

/* import_samples.c. out is a struct out. */
void import_traces(void *out);
void import_stacks(void *out);
void import_varied(void *out);
void import_new(void *out);
void import_deep(void *out);
void import_sections(void *out);
void import_addresses(void *out);
void import_functions(void *out);
void import_symbols(void *out);
void import_loads(void *out);

#endif
