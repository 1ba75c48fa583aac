/*
** A host that puts descriptors of its own at fixed numbers by dup2(), whatever
** was there, as shells and supervisors do. The stream ends there.
** zoo: unclosed
*/
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "test/hosts/zoo/zoo.h"

enum { FIRST = 3, LAST = 40 };

int main(void)
{
  struct stat st;
  lua_State *L = zoo_vm();
  zoo_say("work %ld", zoo_work(L, ZOO_ROUNDS / 2));
  int log = open("log", O_RDWR | O_CREAT | O_TRUNC, 0600);
  zoo_need(log >= 0, "open");
  int base = fcntl(log, F_DUPFD, LAST + 1);
  zoo_need(base >= 0, "fcntl");
  for (int i = FIRST; i <= LAST; i++)
    zoo_need(dup2(base, i) == i, "dup2");
  for (int turn = 0; turn < 10; turn++) {
    zoo_work(L, ZOO_ROUNDS / 10);
    for (int i = FIRST; i <= LAST; i++)
      zoo_need(write(i, "line\n", 5) == 5, "write");
  }
  zoo_say("thread %ld", zoo_result(zoo_worker(1)));
  zoo_need(!fstat(base, &st), "fstat");
  zoo_say("%lld bytes in the log", (long long)st.st_size);
  for (int i = FIRST; i <= LAST; i++)
    zoo_need(fcntl(i, F_GETFD) >= 0 && !close(i), "close");
  lua_close(L);
  return 0;
}
