/*
** Functions: what a frame word's prototype reference or builtin number stands
** for, and the holds that keep freed prototypes describable while a session
** runs (RFC 3, "Prototypes"). Not for handlers, because it takes locks.
*/
#ifndef LJP_GUEST_FUNCTIONS_H
#define LJP_GUEST_FUNCTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/describe.h"

struct ljp_guest_proto {
  uint64_t id; /* never used twice in a process; 0: unknown */
  char chunk[LJP_NAME_BYTES];
  char name[LJP_NAME_BYTES]; /* "" if it was defined without one */
  uint32_t first_line, last_line;
  uint32_t flags; /* LJP_PROTO_* */
  bool alive;     /* false: it has been freed */
};

/* Describes the prototype of the reference in a frame word. False: the
** reference stands for nothing. A reference is used again after its prototype
** was freed, but not while a hold forbids it. */
bool ljp_guest_proto(uint32_t ref, struct ljp_guest_proto *out);
/* The same for a reference that was valid when `newest` was the largest id.
** False: by now it stands for another prototype, or for nothing. */
bool ljp_guest_proto_of(uint32_t ref, uint64_t newest,
                        struct ljp_guest_proto *out);

/* A session's claim that its writer may ask about freed prototypes. The session
** owns the memory, but reads only the ticket, by which its writer names the
** hold. */
struct ljp_guest_hold {
  struct ljp_guest_hold *next;
  uint64_t ticket;
  int pid;                          /* its rounds count here; 0: not ready */
  uint64_t marked, drained, passed; /* deaths */
  uint32_t cursor;                  /* the last one that the writer was given */
  uint64_t unnamed;
  void (*crowded)(void);
};

/* crowded: called when many entries wait for the writer; on a VM's thread in
** its collector, under no lock of this folder. */
void ljp_guest_protos_hold(struct ljp_guest_hold *hold, void (*crowded)(void));
/* From now on the session pushes only references that a walk has just found or
** whose prototypes are alive. Called again in the child of a fork(). */
void ljp_guest_protos_ready(struct ljp_guest_hold *hold);
/* The writer's part, as in describe.h. These do nothing for a hold that has
** been released. */
void ljp_guest_protos_round(uint64_t ticket);
size_t ljp_guest_protos_gone(uint64_t ticket, uint32_t *refs, size_t room);
void ljp_guest_protos_end(uint64_t ticket);
void ljp_guest_protos_release(struct ljp_guest_hold *hold);
/* Number of functions that got no name since the hold began. */
uint64_t ljp_guest_protos_unnamed(const struct ljp_guest_hold *hold);

/* Name of a builtin ("table.sort"), or NULL if no builtin has that number. */
const char *ljp_guest_builtin(uint32_t ffid);

#endif
