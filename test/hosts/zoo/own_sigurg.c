/*
** A host that is told of urgent data on its sockets by SIGURG, and prints how
** often its handler was called: once for each byte. The handler is installed
** before there is a VM, or afterwards. In the second case the handler may be
** called for a short time without any data, as SIGURG's handlers must expect;
** that ends soon.
** zoo: cases early late
*/
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "test/hosts/zoo/zoo.h"

enum { BYTES = 7 };

static _Atomic int seen;

static void count(int number)
{
  (void)number;
  atomic_fetch_add(&seen, 1);
}

static void install(void)
{
  struct sigaction action = {.sa_handler = count, .sa_flags = SA_RESTART};
  zoo_need(!sigaction(SIGURG, &action, NULL), "sigaction");
}

/* Works until the handler has not been called for 40 ms of CPU time, which is
** many periods of any timer. */
static void settle(lua_State *L)
{
  clock_t till = clock() + CLOCKS_PER_SEC / 25;
  for (int before = atomic_load(&seen); clock() < till; zoo_work(L, 1))
    if (atomic_load(&seen) != before) {
      before = atomic_load(&seen);
      till = clock() + CLOCKS_PER_SEC / 25;
    }
  atomic_store(&seen, 0);
}

/* A connection to itself: pair[0] sends to pair[1]. */
static void join(int pair[2])
{
  struct sockaddr_in at = {.sin_family = AF_INET,
                           .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t size = sizeof at;
  int server = socket(AF_INET, SOCK_STREAM, 0);
  zoo_need(!bind(server, (void *)&at, size) && !listen(server, 1) &&
               !getsockname(server, (void *)&at, &size),
           "listen");
  pair[0] = socket(AF_INET, SOCK_STREAM, 0);
  zoo_need(!connect(pair[0], (void *)&at, size), "connect");
  pair[1] = accept(server, NULL, NULL);
  zoo_need(pair[1] >= 0 && !fcntl(pair[1], F_SETOWN, getpid()), "accept");
  close(server);
}

int main(int argc, char **argv)
{
  bool early = argc > 1 && !strcmp(argv[1], "early");
  int pair[2];
  char byte;
  if (early)
    install();
  lua_State *L = zoo_vm();
  if (!early) {
    install();
    settle(L);
  }
  join(pair);
  for (int i = 1; i <= BYTES; i++) {
    zoo_need(send(pair[0], "u", 1, MSG_OOB) == 1, "send");
    while (atomic_load(&seen) < i)
      zoo_work(L, 1);
    zoo_need(recv(pair[1], &byte, 1, MSG_OOB) == 1, "recv");
  }
  zoo_say("work %ld", zoo_work(L, ZOO_ROUNDS));
  zoo_say("%d signals for %d bytes", atomic_load(&seen), BYTES);
  lua_close(L);
  return 0;
}
