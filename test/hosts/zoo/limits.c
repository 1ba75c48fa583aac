/*
** Resource limits, set after the first VM has begun: files, descriptors,
** memory, stacks, pending signals, processes, locked memory, processor time.
** zoo: cases NOFILE AS DATA STACK SIGPENDING NPROC MEMLOCK CPU CORE MSGQUEUE
*/
#include <string.h>
#include <sys/resource.h>

#include "test/hosts/zoo/zoo.h"

static const struct {
  const char *name;
  int resource;
  rlim_t limit;
} limits[] = {{"NOFILE", RLIMIT_NOFILE, 0},
              {"AS", RLIMIT_AS, 400 << 20},
              {"DATA", RLIMIT_DATA, 100 << 20},
              {"STACK", RLIMIT_STACK, 128 << 10},
              {"SIGPENDING", RLIMIT_SIGPENDING, 0},
              {"NPROC", RLIMIT_NPROC, 0},
              {"MEMLOCK", RLIMIT_MEMLOCK, 0},
              {"CPU", RLIMIT_CPU, 100},
              {"CORE", RLIMIT_CORE, 0},
              {"MSGQUEUE", RLIMIT_MSGQUEUE, 0}};

static void limit(const char *name)
{
  for (size_t i = 0; i < sizeof limits / sizeof *limits; i++)
    if (!strcmp(name, limits[i].name)) {
      struct rlimit l = {limits[i].limit, limits[i].limit};
      zoo_need(!setrlimit(limits[i].resource, &l), "setrlimit");
    }
}

int main(int argc, char **argv)
{
  const char *name = argc > 1 ? argv[1] : "";
  if (ZOO_SANITIZED && (!strcmp(name, "AS") || !strcmp(name, "DATA")))
    zoo_skip("the sanitizer needs more memory");
  lua_State *L = zoo_vm();
  zoo_say("work %ld", zoo_work(L, ZOO_ROUNDS / 2));
  limit(name);
  zoo_say("work %ld", zoo_work(L, ZOO_ROUNDS / 2));
  if (strcmp(name, "NPROC"))
    zoo_say("thread %ld", zoo_result(zoo_worker(ZOO_ROUNDS / 2)));
  zoo_say("work alone %ld", zoo_work_alone(ZOO_ROUNDS / 2));
  lua_close(L);
  return 0;
}
