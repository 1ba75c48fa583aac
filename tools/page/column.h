/*
** Column: numbers as LEB128 varints in base64, in double quotes, as the page
** of `ljprof flame` reads them (doc/reference/page-data.md). One at a time per output.
*/
#ifndef LJP_TOOLS_COLUMN_H
#define LJP_TOOLS_COLUMN_H

#include "tools/shared/print.h"

struct ljp_column {
  struct ljp_print *out;
  uint64_t last;     /* Of a column of differences. */
  uint8_t bytes[48]; /* Not yet written; a multiple of 3. */
  unsigned len;
};

/* Writes ,"name":" first: a column is never the first member of its object. */
void ljp_column_begin(struct ljp_column *column, struct ljp_print *out,
                      const char *name);
void ljp_column_put(struct ljp_column *column, uint64_t number);
/* The difference to the number before, which is not larger. */
void ljp_column_put_sum(struct ljp_column *column, uint64_t number);
/* The same, zigzag: numbers in any order, below 2^52. */
void ljp_column_put_signed(struct ljp_column *column, uint64_t number);
void ljp_column_end(struct ljp_column *column);

#endif
