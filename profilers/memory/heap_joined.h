/*
** A heap snapshot that a client asks for, of a VM that runs (RFC 8, section 5).
** On the helper's thread, whose table of descriptors is its own.
*/
#ifndef LJP_MEMORY_HEAP_JOINED_H
#define LJP_MEMORY_HEAP_JOINED_H

#include <stdbool.h>
#include <stdint.h>

#include "profilers/session/failure.h"
#include "src/session/snapshot.h"

struct ljp_heap_joined {
  uint32_t vm;
  uint32_t text_limit; /* bytes of each string */
  bool gc;             /* collect all garbage first */
  int output;          /* the client's */
  int client;          /* its pidfd: with its end the copy ends */
  /* Called when the copy has been made: the program goes on. */
  void (*begun)(void *ctx);
  void *ctx;
};

/* Returns when the file is whole. */
enum ljp_status ljp_heap_joined(const struct ljp_heap_joined *request,
                                struct ljp_snapshot_result *result,
                                struct ljp_failure *why);

#endif
