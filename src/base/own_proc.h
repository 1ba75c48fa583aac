/*
** Own proc: the kernel's files about this process. They are below /proc/self, but
** a program may have no such folder, since it has left its root (chroot), or one
** that belongs to another namespace of processes. A client that has joined the
** program may lend a proc file system then (RFC 8, section 2).
**
** What is lent has one number, in the tables of descriptors of helpers only: the
** threads of the program have other tables, and read /proc/self. Ordinary code
** of any thread.
*/
#ifndef LJP_OWN_PROC_H
#define LJP_OWN_PROC_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>
#include <sys/types.h>

/* As open(), readlink() and stat() of /proc/self/NAME. */
int ljp_own_proc_open(const char *name, int flags);
ssize_t ljp_own_proc_link(const char *name, char *out, size_t room);
int ljp_own_proc_stat(const char *name, struct stat *st);

/* Takes a copy of the root of a proc file system, for the threads that share this
** thread's table. Anything else is ignored. */
void ljp_own_proc_lend(int fd);

#endif
