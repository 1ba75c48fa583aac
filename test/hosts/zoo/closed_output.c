/*
** A host that is started without standard input and error, or closes them: its
** writes there must fail, and must not go into a file that has got the number.
** zoo: cases early late
*/
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "test/hosts/zoo/zoo.h"

static void close_both(void)
{
  close(0);
  close(2);
}

int main(int argc, char **argv)
{
  bool early = argc > 1 && !strcmp(argv[1], "early");
  if (early)
    close_both();
  lua_State *L = zoo_vm();
  if (!early)
    close_both();
  for (int turn = 0; turn < 5; turn++) {
    char byte;
    ssize_t put, got;
    int error, tries = 100;
    zoo_say("work %ld", zoo_work(L, ZOO_ROUNDS / 5));
    /* A profiler may have such a number only for a moment, while it reads a
    ** file of /proc or moves a descriptor. On a busy machine the moment takes
    ** as long as the profiler's thread waits for a CPU. */
    do {
      if (tries < 100)
        usleep(2000);
      put = write(2, "an error of the host\n", 21);
      error = put < 0 ? errno : 0;
      got = read(0, &byte, 1);
    } while ((put >= 0 || got >= 0 || errno != EBADF) && --tries);
    zoo_say("write %zd (%s), read %zd (%s)", put, strerror(error), got,
            got < 0 ? strerror(errno) : "");
    /* Daemons expect the lowest number. */
    int lowest = -1;
    for (int i = 0; i < 100 && lowest; i++) {
      if (i)
        usleep(2000);
      lowest = open("/dev/null", O_RDWR);
      close(lowest);
    }
    zoo_say("the next descriptor is %d", lowest);
  }
  lua_close(L);
  return 0;
}
