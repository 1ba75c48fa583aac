/*
** Lines: reads a file line by line without a stream of libc. Each FILE has a lock,
** and exit() waits for the locks of all streams. If one thread calls fork() while
** another thread uses a stream, musl leaves that stream locked in the child, whose
** exit() then never returns. So no code of ours uses streams in a profiled process.
*/
#ifndef LJP_LINES_H
#define LJP_LINES_H

#include <stdbool.h>
#include <stddef.h>

struct ljp_lines {
  int fd;
  char *text; /* the caller's room */
  size_t room, start, end;
  bool skip; /* up to the next line: the beginning has been told */
};

/* Reads from this descriptor, which stays open; -1: there are no lines. */
static inline struct ljp_lines ljp_lines_of(int fd, char *text, size_t room)
{
  return (struct ljp_lines){.fd = fd, .text = text, .room = room};
}

/* The next line, without its end, valid until the next call; NULL: there is none, or
** the file cannot be read. Of a line that does not fit into the room, only what
** fits. */
char *ljp_lines_next(struct ljp_lines *lines);

#endif
