/*
** A limit on the size of files: the stream ends where the limit is, and says so;
** the host gets no SIGXFSZ for what it did not write.
** zoo: cut
** zoo: unclosed
*/
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "test/hosts/zoo/zoo.h"

enum { LIMIT = 12288 };

int main(void)
{
  struct rlimit limit = {LIMIT, LIMIT};
  char text[LIMIT];
  lua_State *L = zoo_vm();
  zoo_need(!setrlimit(RLIMIT_FSIZE, &limit), "setrlimit");
  zoo_say("work %ld", zoo_work(L, ZOO_ROUNDS));
  int file = open("own", O_RDWR | O_CREAT, 0600);
  memset(text, 'x', sizeof text);
  zoo_need(write(file, text, sizeof text) == LIMIT, "write");
  zoo_say("work %ld", zoo_work(L, ZOO_ROUNDS));
  lua_close(L);
  return 0;
}
