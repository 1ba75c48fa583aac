/*
** A host built with ThreadSanitizer, which uses our library as any other host
** does.
**
** tsan_host signals: shows why no CPU profiler can run there. TSan has handlers
** of its own. It delays a signal until the thread is in one of TSan's
** interceptors, then calls the program's handler with all signals blocked and
** with the context of the moment when the signal came:
**   - our walk would read the stack of that context, which the thread has
**     overwritten since;
**   - our loads that may fault (src/base/saferead.h) would end the process,
**     because the kernel kills a thread that faults while the fault's signal is
**     blocked. We have seen it: SIGSEGV in ljp_saferead_word, below
**     __tsan::ProcessPendingSignals.
** What this prints shows the blocking, without any code of ours.
**
** tsan_host start: prints what our interfaces answer.
*/
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>
#include <ucontext.h>

#include "lua.h"
#include "lauxlib.h"
#include "lualib.h"

static atomic_int signals, blocked;

static void on_signal(int number, siginfo_t *info, void *context)
{
  const ucontext_t *u = context;
  sigset_t now;
  (void)number, (void)info;
  sigprocmask(SIG_SETMASK, NULL, &now);
  atomic_fetch_add(&blocked, sigismember(&now, SIGSEGV) &&
                                 !sigismember(&u->uc_sigmask, SIGSEGV));
  atomic_fetch_add(&signals, 1);
}

static int show_signals(void)
{
  enum { WANTED = 50 };
  struct itimerval often = {{0, 1000}, {0, 1000}}, never = {{0, 0}, {0, 0}};
  struct sigaction action = {.sa_flags = SA_SIGINFO | SA_RESTART};
  char text[64];
  action.sa_sigaction = on_signal;
  if (sigaction(SIGPROF, &action, NULL) || setitimer(ITIMER_PROF, &often, NULL))
    return 1;
  while (atomic_load(&signals) < WANTED)
    snprintf(text, sizeof text, "%d", atomic_load(&signals));
  setitimer(ITIMER_PROF, &never, NULL);
  printf("SIGSEGV blocked in a handler for another: %s\n",
         atomic_load(&blocked) ? "yes" : "no");
  return 0;
}

static int run(const char *code)
{
  lua_State *L = luaL_newstate();
  if (!L)
    return 1;
  luaL_openlibs(L);
  int failed = luaL_dostring(L, code);
  if (failed)
    printf("%s\n", lua_tostring(L, -1));
  lua_close(L);
  return failed;
}

int main(int argc, char **argv)
{
  if (argc == 2 && strcmp(argv[1], "signals") == 0)
    return show_signals();
  if (argc == 2 && strcmp(argv[1], "start") == 0)
    return run("print(misc.sysprof.start{path = 'cpu.ljp'})\n"
               "print(misc.profile.start{path = 'both.ljp'})\n"
               "assert(misc.memprof.start{path = 'mem.ljp', every = true})\n"
               "local t = {}\n"
               "for i = 1, 1009 do t[i] = {i} end\n"
               "print(misc.memprof.stop())");
  return 2;
}
