/*
** ljprof heap -p: a snapshot of a running program.
*/
#ifndef LJP_TOOLS_HEAP_JOINED_H
#define LJP_TOOLS_HEAP_JOINED_H

#include <stdbool.h>

/* As the user wrote them; NULL: not given. */
struct ljp_heap_joined_options {
  const char *pid, *output, *vm, *string_bytes;
  bool gc, force;
};

/* -1: the options are good, or there are none and no program; else the exit code
** after reporting what is wrong. files: files or options for files are given,
** too. */
int ljp_heap_joined_check(const struct ljp_heap_joined_options *options,
                          bool files);

/* Takes the snapshots, and calls show for the file of each. Returns the exit
** code. */
int ljp_heap_joined(const struct ljp_heap_joined_options *options, bool json,
                    int (*show)(void *ctx, const char *path), void *ctx);

#endif
