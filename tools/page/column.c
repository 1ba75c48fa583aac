/*
** Writes columns of numbers into the page's data.
*/
#include "tools/page/column.h"

#include "src/base/assert.h"
#include "src/base/varint.h"

static const char column_digits[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void ljp_column_begin(struct ljp_column *column, struct ljp_print *out,
                      const char *name)
{
  column->out = out;
  column->last = 0;
  column->len = 0;
  ljp_print_str(out, ",\"");
  ljp_print_str(out, name);
  ljp_print_str(out, "\":\"");
}

static void column_flush(struct ljp_column *column)
{
  char text[64];
  unsigned n = 0;
  for (unsigned i = 0; i + 2 < column->len; i += 3) {
    uint32_t x = (uint32_t)column->bytes[i] << 16 |
                 (uint32_t)column->bytes[i + 1] << 8 | column->bytes[i + 2];
    for (int shift = 18; shift >= 0; shift -= 6)
      text[n++] = column_digits[x >> shift & 63];
  }
  ljp_print_raw(column->out, text, n);
  column->len = 0;
}

static void column_put_byte(struct ljp_column *column, uint8_t byte)
{
  ljp_assert(column->len < sizeof column->bytes);
  column->bytes[column->len++] = byte;
  if (column->len == sizeof column->bytes)
    column_flush(column);
}

void ljp_column_put(struct ljp_column *column, uint64_t number)
{
  for (; number >= 128; number >>= 7)
    column_put_byte(column, (uint8_t)(number | 128));
  column_put_byte(column, (uint8_t)number);
}

void ljp_column_put_sum(struct ljp_column *column, uint64_t number)
{
  ljp_assert(number >= column->last);
  ljp_column_put(column, number - column->last);
  column->last = number;
}

void ljp_column_put_signed(struct ljp_column *column, uint64_t number)
{
  ljp_assert(number < UINT64_C(1) << 52);
  ljp_column_put(column, ljp_zigzag((int64_t)(number - column->last)));
  column->last = number;
}

void ljp_column_end(struct ljp_column *column)
{
  unsigned rest = column->len % 3;
  for (unsigned i = rest; i && i < 3; i++)
    column->bytes[column->len++] = 0;
  unsigned whole = column->len;
  if (rest) { /* The last group, with padding. */
    uint8_t a = column->bytes[whole - 3], b = column->bytes[whole - 2];
    char text[4] = {column_digits[a >> 2], column_digits[(a & 3) << 4 | b >> 4],
                    rest == 2 ? column_digits[(b & 15) << 2] : '=', '='};
    column->len -= 3;
    column_flush(column);
    ljp_print_raw(column->out, text, 4);
  } else {
    column_flush(column);
  }
  ljp_print_str(column->out, "\"");
}
