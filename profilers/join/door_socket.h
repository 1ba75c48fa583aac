/*
** Door socket: the socket at a path at which a program is to be joined, which
** listen.c accepts from. Only the program's effective user may connect (mode
** 0600, whatever the umask). A socket that nobody listens at any more gives way;
** nothing else does.
*/
#ifndef LJP_JOIN_DOOR_SOCKET_H
#define LJP_JOIN_DOOR_SOCKET_H

#include <stdbool.h>

#include "profilers/session/failure.h"
#include "src/base/open_file.h"

/* With the zero at its end: struct sockaddr_un has no more room. */
enum { LJP_DOOR_PATH_BYTES = 108, LJP_DOOR_ABSOLUTE_BYTES = 4096 };

struct ljp_door_socket {
  struct ljp_open_file open; /* fd -1: none */
  char path[LJP_DOOR_ABSOLUTE_BYTES];
  dev_t dev; /* what we have put at the path */
  ino_t ino;
};

/* Makes the socket, and listens. own: the caller's thread has a table of
** descriptors of its own (table.h). */
enum ljp_status ljp_door_socket_open(struct ljp_door_socket *s,
                                     const char *path, bool own,
                                     struct ljp_failure *why);
/* Removes the file if it is still the socket's. Any thread, as long as the
** socket is open: so long no other file has its inode. */
void ljp_door_socket_remove(const struct ljp_door_socket *s);
/* Does a client that connects to the path come to this socket? */
bool ljp_door_socket_stands(const struct ljp_door_socket *s);

#endif
