/*
** For fuzz targets that print: keeps the beginning of what was printed, and
** checks JSON that is whole.
*/
#ifndef LJP_TEST_FUZZ_PRINT_H
#define LJP_TEST_FUZZ_PRINT_H

#include <string.h>

#include "test/support/json.h"
#include "test/support/must.h"
#include "tools/shared/print.h"

static struct ljp_print fuzz_print;
static char fuzz_text[1 << 22];
static size_t fuzz_len;

static void fuzz_print_keep(void *ctx, const char *data, size_t len)
{
  (void)ctx;
  if (len > sizeof fuzz_text - fuzz_len)
    len = sizeof fuzz_text - fuzz_len;
  memcpy(fuzz_text + fuzz_len, data, len);
  fuzz_len += len;
}

static inline void fuzz_print_begin(void)
{
  fuzz_len = 0;
  ljp_print_begin(&fuzz_print, -1);
  fuzz_print.sink = fuzz_print_keep;
}

/* json: what was printed must be one object, on any number of lines. */
static inline void fuzz_print_end(bool json)
{
  ljp_print_end(&fuzz_print);
  if (!json || fuzz_len == sizeof fuzz_text)
    return;
  for (size_t i = 0; i + 1 < fuzz_len; i++)
    if (fuzz_text[i] == '\n')
      fuzz_text[i] = ' ';
  MUST(json_lines_valid(fuzz_text, fuzz_len));
}

#endif
