/* Fuzz target: any text as the exporter's state. What is accepted is written again,
** and then read as the same. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tools/exporter/exporter.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct text {
  char bytes[1 << 20];
  size_t len;
};

static void take(void *ctx, const char *data, size_t len)
{
  struct text *t = ctx;
  if (t->len + len >= sizeof t->bytes)
    len = sizeof t->bytes - 1 - t->len;
  memcpy(t->bytes + t->len, data, len);
  t->len += len;
}

static void write_state(const struct ljp_exporter *e, struct text *t)
{
  static struct ljp_print out;
  ljp_print_begin(&out, -1);
  out.sink = take;
  out.ctx = t;
  t->len = 0;
  ljp_exporter_put_state(e, &out);
  ljp_print_end(&out);
  t->bytes[t->len] = '\0';
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  static struct text first, second, copy;
  struct ljp_exporter e = {0}, again = {0};
  if (size >= 1 << 16)
    return 0;
  memcpy(copy.bytes, data, size);
  copy.bytes[size] = '\0';
  if (ljp_exporter_parse_state(&e, copy.bytes)) {
    write_state(&e, &first);
    copy = first;
    if (!ljp_exporter_parse_state(&again, copy.bytes))
      abort();
    write_state(&again, &second);
    if (again.count != e.count || strcmp(first.bytes, second.bytes) != 0)
      abort();
  } else if (e.count) {
    abort();
  }
  ljp_exporter_forget(&e);
  ljp_exporter_forget(&again);
  return 0;
}
