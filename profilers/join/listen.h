/*
** Listen: a door that stays: a thread that lets clients in by a socket at a
** path, for places where ptrace is not possible (RFC 8, section 3). Only for
** programs that ask for it. At most one in a process; it lasts until it is ended
** or the process ends, whatever becomes of the VM that asked for it.
**
** Ordinary code, any thread.
*/
#ifndef LJP_JOIN_LISTEN_H
#define LJP_JOIN_LISTEN_H

#include <stdbool.h>

#include "profilers/join/door_socket.h"

/* Begins. Each "%p" in the path becomes the process's number. child_refused: if
** the path has a "%p", children of fork() listen, too, and this is called in a
** child that cannot; NULL: children do not listen. */
enum ljp_status ljp_listen_start(const char *path,
                                 void (*child_refused)(const char *text),
                                 struct ljp_failure *why);
/* Ends it: the socket is gone. Clients that have joined stay. */
enum ljp_status ljp_listen_stop(struct ljp_failure *why);
/* The path of the socket. False: this process does not listen. */
bool ljp_listen_path(char out[LJP_DOOR_PATH_BYTES]);

#endif
