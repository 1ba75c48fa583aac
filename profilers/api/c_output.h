/*
** The output of a session of the C interface: the program's writer and its
** buffer. The contract is that of Tarantool's profilers. If the program gives a
** buffer, the writer gets the stream in pieces that lie in it. The writer may
** leave another buffer of the same size in *data: the next piece lies there.
** NULL ends the stream. A writer that returns more than it was given has taken
** everything.
*/
#ifndef LJP_C_OUTPUT_H
#define LJP_C_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ljp_c_output {
  size_t (*writer)(const void **data, size_t len, void *ctx);
  int (*on_stop)(void *ctx, uint8_t *buf);
  void *ctx;
  uint8_t *buf; /* NULL: the writer gets our own memory */
  size_t len;
};

/* A session's own copy; NULL: no memory. */
struct ljp_c_output *ljp_c_output_new(struct ljp_c_output of);

/* A session's callback; its ctx is a struct ljp_c_output. On the thread of the
** session's writer. */
size_t ljp_c_output_write(const void **data, size_t len, void *output);

/* The session has ended: calls on_stop, and frees the output unless the writer's
** thread may still use it (left). Returns what on_stop does, or 0. */
int ljp_c_output_end(struct ljp_c_output *output, bool left);

#endif
