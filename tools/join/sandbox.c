/*
** See sandbox.h. Which thread runs a VM is not known from outside, so one thread
** in a sandbox is enough. A thread that enters one later is not seen.
*/
#include "tools/join/sandbox.h"

#include <string.h>

#include "tools/join/process.h"
#include "tools/shared/command.h"

int ljp_sandbox_refuse(const struct ljp_talk *talk)
{
  enum { THREADS = 1 << 16 };
  static pid_t tids[THREADS];
  struct ljp_proc_status s;
  unsigned count = talk->door ? 0 : ljp_proc_threads(talk->pid, tids, THREADS);
  for (unsigned i = 0; i < count; i++) {
    if (!ljp_proc_status(talk->pid, tids[i], &s) || s.seccomp <= 0 ||
        talk->visit.filters == LJP_FILTERS_HARMLESS || strchr("ZX", s.state))
      continue;
    ljp_command_error(
        talk->command,
        "%s: its thread %d is in a sandbox (seccomp), which may end the "
        "program for what the profiler does: %sstart the program with "
        "LJPROF_LISTEN=/PATH, and type '-p /PATH'",
        talk->name, (int)tids[i], ljp_filters_hint(talk->visit.filters));
    return LJP_EXIT_FAILED;
  }
  return -1;
}
