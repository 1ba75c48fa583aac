/*
** Serve: what a client of a joined program can ask for; see serve.c. On the
** helper's thread.
*/
#ifndef LJP_JOIN_SERVE_H
#define LJP_JOIN_SERVE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "src/base/join_message.h"

struct ljp_heap_asked;
struct ljp_stacks;

/* A client. It may begin one session. */
struct ljp_serve {
  int socket;
  int client; /* its pidfd */
  uint64_t client_pid;
  int output;      /* of the session; valid while `records` */
  uint64_t room;   /* that the output has; see options.h */
  uint32_t number; /* of the session; valid while `records` */
  bool records;
  bool dumps; /* the session has a jitdump */
  bool own;   /* the helper has a table of descriptors of its own */
  struct ljp_stacks *stacks; /* NULL: it asks for none now */
  int stacks_output;
  uint64_t stacks_ns; /* of its last message about them */
  /* A heap snapshot on its way into the client's session; NULL: none. */
  struct ljp_heap_asked *heap;
  uint32_t heap_serial;
};

void ljp_serve_welcome(struct ljp_serve *serve, uint32_t serial);
/* Does what the message asks for, and answers. May take its descriptors. False:
** the client leaves. */
bool ljp_serve(struct ljp_serve *serve, struct ljp_join_message *m);
/* The same for STACKS, PLACE and TELL. */
void ljp_serve_stacks(struct ljp_serve *serve, struct ljp_join_message *m);
/* Forgets what was asked for by these. */
void ljp_serve_stacks_end(struct ljp_serve *serve);
/* Now and then: so it does if the client says nothing more. */
void ljp_serve_stacks_turn(struct ljp_serve *serve);
/* The same for VMS and HEAP. Until a snapshot of its own is written, the helper
** does nothing else. */
void ljp_serve_vms(struct ljp_serve *serve, const struct ljp_join_message *m);
void ljp_serve_heap(struct ljp_serve *serve, struct ljp_join_message *m);
/* Now and then: answers when the snapshot is in the session. */
void ljp_serve_heap_turn(struct ljp_serve *serve);
void ljp_serve_heap_end(struct ljp_serve *serve);
/* For how long nothing has to be done without a message. */
int ljp_serve_pause_ms(const struct ljp_serve *serve);
/* Now and then: tells the client if its session has ended by itself. */
void ljp_serve_turn(struct ljp_serve *serve);
/* The client has left: its session ends. */
void ljp_serve_end(struct ljp_serve *serve);

#endif
