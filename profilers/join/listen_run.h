/*
** The thread of a door that stays; see listen_run.c. For listen.c only.
*/
#ifndef LJP_JOIN_LISTEN_RUN_H
#define LJP_JOIN_LISTEN_RUN_H

#include <stdatomic.h>
#include <stdint.h>
#include <sys/types.h>

#include "profilers/join/door_socket.h"

struct ljp_listener {
  pid_t pid;
  char path[LJP_DOOR_PATH_BYTES];
  /* By the thread, until it is ready. */
  struct ljp_door_socket socket;
  enum ljp_status status;
  struct ljp_failure why;
  _Atomic bool shares_table; /* with the program */
  _Atomic uint32_t ready, unwanted, ended;
  _Atomic bool removed; /* somebody has removed the file, or does so */
  _Atomic uint32_t users;
};

/* The thread's function; its argument is a listener. */
void *ljp_listener_main(void *listener);
/* Removes the socket's file, once. */
void ljp_listener_remove(struct ljp_listener *l);
/* The last user frees it. */
void ljp_listener_leave(struct ljp_listener *l);

#endif
