/*
** See lines.h.
*/
#include "src/base/lines.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

/* False: nothing more can be read. One byte is kept for the end of a last line. */
static bool lines_fill(struct ljp_lines *l)
{
  ssize_t n;
  memmove(l->text, l->text + l->start, l->end - l->start);
  l->end -= l->start;
  l->start = 0;
  do
    n = read(l->fd, l->text + l->end, l->room - 1 - l->end);
  while (n < 0 && errno == EINTR);
  l->end += n > 0 ? (size_t)n : 0;
  return n > 0;
}

char *ljp_lines_next(struct ljp_lines *l)
{
  if (l->fd < 0 || l->room < 2)
    return NULL;
  for (;;) {
    char *end = memchr(l->text + l->start, '\n', l->end - l->start);
    bool full = !end && !l->start && l->end == l->room - 1;
    if (!end && !full && lines_fill(l))
      continue;
    if (!end && l->start == l->end)
      return NULL;
    char *line = l->text + l->start;
    bool skip = l->skip;
    l->skip = full;
    if (!end)
      end = l->text + l->end;
    l->start = (size_t)(end - l->text) + (end < l->text + l->end);
    *end = '\0';
    if (!skip)
      return line;
  }
}
