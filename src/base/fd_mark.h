/*
** Marks a descriptor's open file description, which every open() makes anew.
** A descriptor without the mark is not the one that was marked: the host has
** closed it and opened something else by its number. Device and inode alone do
** not tell: the number of a removed file's inode is given to the next file.
**
** The mark is the signal that would report asynchronous input and output, which
** nobody asks for here, and for which no program chooses SIGKILL. It works on
** every file system and lives as long as the description. Never mark a
** descriptor of the host.
*/
#ifndef LJP_FD_MARK_H
#define LJP_FD_MARK_H

#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>

static inline bool ljp_fd_marked(int fd)
{
  return fcntl(fd, F_GETSIG) == SIGKILL;
}

/* False: a sandbox does not permit it. */
static inline bool ljp_fd_mark(int fd)
{
  return fcntl(fd, F_SETSIG, SIGKILL) == 0 && ljp_fd_marked(fd);
}

#endif
