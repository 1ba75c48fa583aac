/*
** Lines of src/base/join_stacks.h on their way into the client's file, in a
** buffer. The first error is remembered.
*/
#ifndef LJP_JOIN_STACKS_OUT_H
#define LJP_JOIN_STACKS_OUT_H

#include <stddef.h>
#include <stdint.h>

#include "src/base/join_stacks.h"

struct ljp_stacks_out {
  int fd, error; /* an errno */
  uint64_t bytes;
  size_t length;
  char buffer[16384];
};

void ljp_stacks_out_begin(struct ljp_stacks_out *out, int fd);
/* A line: its name, then its fields by the ljp_stacks_put_*() below, then its
** end. */
void ljp_stacks_put(struct ljp_stacks_out *out, enum ljp_join_stacks_line line);
void ljp_stacks_put_text(struct ljp_stacks_out *out, const char *text);
void ljp_stacks_put_number(struct ljp_stacks_out *out, uint64_t number);
void ljp_stacks_put_address(struct ljp_stacks_out *out, uint64_t address);
void ljp_stacks_put_end(struct ljp_stacks_out *out);
/* Writes what is left. Returns the first errno, or 0. */
int ljp_stacks_out_end(struct ljp_stacks_out *out);

#endif
