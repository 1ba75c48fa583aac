/*
** The ways to end a program while a VM is open.
** zoo: cases return exit_in_lua thread main_thread quick abort kill fault _exit
** zoo: unclosed quick abort kill fault _exit
*/
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "test/hosts/zoo/zoo.h"

static pthread_t first;

static int leave(lua_State *L)
{
  exit((int)lua_tointeger(L, 1));
}

static void *end_it(void *vm)
{
  zoo_work(vm, 1);
  exit(5);
}

/* The state of the main thread, as the kernel tells it: Z once it has ended. */
static char main_state(void)
{
  char text[64] = "";
  int fd = open("/proc/self/stat", O_RDONLY);
  zoo_need(fd >= 0 && read(fd, text, sizeof text - 1) > 0, "/proc/self/stat");
  close(fd);
  const char *end = strrchr(text, ')');
  return end ? end[2] : 'Z';
}

static void *after_main(void *vm)
{
  /* ASan of GCC 14 allows no thread to join the main thread. */
  while (ZOO_SANITIZED && main_state() != 'Z')
    usleep(1000);
  if (!ZOO_SANITIZED)
    pthread_join(first, NULL);
  zoo_say("after main %ld", zoo_work(vm, ZOO_ROUNDS / 2));
  exit(4);
}

int main(int argc, char **argv)
{
  struct rlimit none = {0, 0};
  const char *how = argc > 1 ? argv[1] : "";
  if (ZOO_SANITIZED && !strcmp(how, "fault"))
    zoo_skip("the sanitizer takes the fault for one of its own");
  setrlimit(RLIMIT_CORE, &none);
  lua_State *L = zoo_vm();
  lua_register(L, "leave", leave);
  first = pthread_self();
  zoo_say("work %ld", zoo_work(L, ZOO_ROUNDS));
  if (!strcmp(how, "exit_in_lua"))
    return luaL_dostring(L, "table.sort({1, 2, 3}, function() leave(6) end)");
  if (!strcmp(how, "thread"))
    zoo_join(zoo_thread(end_it, zoo_vm(), 0));
  if (!strcmp(how, "main_thread")) {
    zoo_thread(after_main, L, 0);
    pthread_exit(NULL);
  }
  if (!strcmp(how, "quick"))
    quick_exit(3);
  if (!strcmp(how, "_exit"))
    _exit(8);
  if (!strcmp(how, "abort"))
    abort();
  if (!strcmp(how, "kill"))
    kill(getpid(), SIGKILL);
  if (!strcmp(how, "fault"))
    raise(SIGSEGV);
  return 9;
}
