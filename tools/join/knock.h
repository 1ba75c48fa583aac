/*
** Knock: comes to a program by the socket at which it listens (LJPROF_LISTEN),
** where ptrace is not possible.
*/
#ifndef LJP_TOOLS_KNOCK_H
#define LJP_TOOLS_KNOCK_H

#include "tools/join/talk.h"

/* What may be typed for a program that cannot be joined by its number; to be put
** behind a message. */
#define LJP_KNOCK_HINT                                                         \
  "or start it with LJPROF_LISTEN=/PATH, and type '-p /PATH'"

/* Connects talk->socket to talk->door, and finds out who is there. -1: done;
** else the exit code after reporting why not. */
int ljp_knock(struct ljp_talk *talk);

#endif
