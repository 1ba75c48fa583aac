/*
** Column: numbers as LEB128 varints, in base64 and quotes, as the viewer reads
** them (doc/reference/page-data.md). One column at a time per output.
*/
#ifndef LJP_TOOLS_COLUMN_H
#define LJP_TOOLS_COLUMN_H

#include "tools/shared/print.h"

struct ljp_column {
  struct ljp_print *out;
  uint64_t last;     /* The previous number, for differences. */
  uint8_t bytes[48]; /* Not written yet. The size is a multiple of 3. */
  unsigned len;
};

/* Begins with ,"name":" and therefore must not be the first member of an
** object. */
void ljp_column_begin(struct ljp_column *column, struct ljp_print *out,
                      const char *name);
void ljp_column_put(struct ljp_column *column, uint64_t number);
/* Writes the difference to the previous number, which must not be larger. */
void ljp_column_put_sum(struct ljp_column *column, uint64_t number);
/* Writes the difference in zigzag code: numbers may be in any order, but must
** be below 2^52. */
void ljp_column_put_signed(struct ljp_column *column, uint64_t number);
void ljp_column_end(struct ljp_column *column);

#endif
