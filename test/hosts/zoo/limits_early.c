/*
** Resource limits that stand before the first VM is made. Where they leave no
** room for a session the program runs on without one, and says so.
** zoo: cases NOFILE AS STACK SIGPENDING MEMLOCK CORE
** zoo: may-refuse
*/
#include <fcntl.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "test/hosts/zoo/zoo.h"

static const struct {
  const char *name;
  int resource;
  rlim_t limit;
} limits[] = {
    {"NOFILE", RLIMIT_NOFILE, 3},       {"AS", RLIMIT_AS, 400 << 20},
    {"STACK", RLIMIT_STACK, 128 << 10}, {"SIGPENDING", RLIMIT_SIGPENDING, 0},
    {"MEMLOCK", RLIMIT_MEMLOCK, 0},     {"CORE", RLIMIT_CORE, 0}};

int main(int argc, char **argv)
{
  const char *name = argc > 1 ? argv[1] : "";
  if (ZOO_SANITIZED && !strcmp(name, "AS"))
    zoo_skip("the sanitizer needs more memory");
  for (size_t i = 0; i < sizeof limits / sizeof *limits; i++)
    if (!strcmp(name, limits[i].name)) {
      struct rlimit l = {limits[i].limit, limits[i].limit};
      zoo_need(!setrlimit(limits[i].resource, &l), "setrlimit");
    }
  lua_State *L = zoo_vm();
  zoo_say("work %ld", zoo_work(L, ZOO_ROUNDS));
  zoo_say("thread %ld", zoo_result(zoo_worker(ZOO_ROUNDS / 2)));
  lua_close(L);
  return 0;
}
