/*
** Joined: a running program as the source of the view (RFC 8, section 6). Its
** session writes to a file without a name, which the worker reads as it grows,
** and frees from the front.
**
** The process that was started joins the program, before the terminal is
** touched, and is the client: when it dies, the session ends. Only the worker
** keeps the socket, so the session also ends when the worker dies.
*/
#ifndef LJP_TOOLS_TOP_JOINED_H
#define LJP_TOOLS_TOP_JOINED_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "tools/join/nameless.h"
#include "tools/record/record.h"
#include "tools/top/keep.h"

#define LJP_TOP_ROOM_BYTES (UINT64_C(256) << 20)

/* How long the screen waits, at the end of the view, until the worker has left
** the program. */
enum { LJP_TOP_LEAVE_MS = 3000 };

struct ljp_talk;

struct ljp_top_joined {
  struct ljp_talk *talk; /* For joined.c only. */
  int socket;            /* Its. */
  pid_t pid;             /* 0: it has none in this namespace. */
  char name[256];        /* "process 4711 (app)" */
  struct ljp_nameless file;
  struct ljp_keep keep;
  /* As the program has told, or its end. */
  bool ended, gone, dead, halted;
  uint64_t gone_ms; /* when nobody answered any more */
  char why[600];    /* the session has ended by this error; "": by none */
};

/* Joins the program and begins a session. -1: done; else the exit code after
** reporting why not. */
int ljp_top_join(struct ljp_top_joined *joined, struct ljp_record_plan *plan);

/* In the worker, now and then, until the program is dead: hears what it
** tells. */
void ljp_top_joined_turn(struct ljp_top_joined *joined);
/* Does the program still write? */
bool ljp_top_joined_writes(const struct ljp_top_joined *joined);
/* What it does at the moment. done: the recording was read to its end. */
const char *ljp_top_joined_state(const struct ljp_top_joined *joined,
                                 bool done);
/* Ends the session and leaves the program. May wait for ever, if the program is
** stopped: the screen does not wait so long, and this process ends with it. */
void ljp_top_joined_leave(struct ljp_top_joined *joined);

#endif
