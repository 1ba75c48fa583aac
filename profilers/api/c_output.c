/*
** Output of the C interface; see c_output.h.
*/
#include "profilers/api/c_output.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct ljp_c_output *ljp_c_output_new(struct ljp_c_output of)
{
  struct ljp_c_output *output = malloc(sizeof *output);
  if (output)
    *output = of;
  return output;
}

/* Calls the writer once. *at: what it leaves in *data. */
static size_t c_output_give(const struct ljp_c_output *o, const void **at,
                            size_t len)
{
  size_t taken = o->writer(at, len, o->ctx);
  return taken > len ? len : taken;
}

size_t ljp_c_output_write(const void **data, size_t len, void *output)
{
  struct ljp_c_output *o = output;
  if (!o->buf || !o->len)
    return c_output_give(o, data, len);
  size_t piece = len < o->len ? len : o->len;
  const void *at = o->buf;
  memcpy(o->buf, *data, piece);
  size_t taken = c_output_give(o, &at, piece);
  /* The program's own memory, which it may have replaced. */
  memcpy(&o->buf, &at, sizeof o->buf);
  if (!at)
    *data = NULL;
  return taken;
}

int ljp_c_output_end(struct ljp_c_output *output, bool left)
{
  struct ljp_c_output was = *output;
  if (!left)
    free(output);
  errno = 0;
  return was.on_stop ? was.on_stop(was.ctx, was.buf) : 0;
}
