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

struct ljp_heap_asked;

struct ljp_heap_joined {
  uint32_t vm;
  uint32_t text_limit; /* bytes of each string */
  bool gc;             /* collect all garbage first */
  int output;          /* the client's */
  /* The rest is for a file of its own. */
  int client; /* its pidfd: with its end the copy ends */
  /* Called when the copy has been made: the program goes on. */
  void (*begun)(void *ctx);
  void *ctx;
};

/* Returns when the file is whole. */
enum ljp_status ljp_heap_joined(const struct ljp_heap_joined *request,
                                struct ljp_snapshot_result *result,
                                struct ljp_failure *why);

/* The same into the memory session that this client has begun: it is only asked
** for, and the caller, who has more to do, comes back. output is taken over, even
** on failure. No snapshot is taken at any moment here: its place among the events
** is the VM's to tell. */
enum ljp_status ljp_heap_ask(const struct ljp_heap_joined *request,
                             struct ljp_heap_asked **out,
                             struct ljp_failure *why);
/* Goes on with it, for a tenth of a second at most while the VM is waited for.
** True: it is over; *status says how. */
bool ljp_heap_asked_over(struct ljp_heap_asked *a,
                         struct ljp_snapshot_result *result,
                         enum ljp_status *status, struct ljp_failure *why);
/* Does it wait for the VM, which must not stand still for long? */
bool ljp_heap_asked_waits(const struct ljp_heap_asked *a);
/* over: as above. Else it is not wanted any more. */
void ljp_heap_asked_free(struct ljp_heap_asked *a, bool over);

#endif
