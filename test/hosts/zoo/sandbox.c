/*
** A sandbox: from some moment on, a seccomp filter refuses (with EPERM) system
** calls that the program does not need itself. "late" begins it after the first
** VM, "early" before, "files" also refuses to open files, "all" covers all
** threads. "kills" kills the program instead, and for a new period of a perf
** event, too; its thread works long enough for the profiler to draw new
** periods. "kills_all" does that in all threads.
** zoo: cases late early files all kills kills_all
** zoo: may-refuse early
*/
#include <errno.h>
#include <linux/filter.h>
#include <linux/perf_event.h>
#include <linux/seccomp.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "test/hosts/zoo/zoo.h"

static const int refused[] = {
    SYS_perf_event_open, SYS_timer_create,     SYS_timer_settime,
#ifdef __GLIBC__ /* musl makes it for a thread, so the program needs it. */
    SYS_membarrier,
#endif
    SYS_tgkill,          SYS_rt_sigqueueinfo,  SYS_rt_tgsigqueueinfo,
    SYS_ptrace,          SYS_process_vm_readv, SYS_memfd_create,
    SYS_getrusage,       SYS_sched_getaffinity};
static const int files[] = {SYS_open,     SYS_openat, SYS_rename,
                            SYS_renameat, SYS_unlink, SYS_readlink};

static void enter(bool with_files, bool kill, unsigned flags)
{
  struct sock_filter code[64];
  struct sock_fprog filter = {0, code};
  size_t n = sizeof refused / sizeof *refused;
#define ADD(...) code[filter.len++] = (struct sock_filter)__VA_ARGS__
  ADD(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)));
  for (size_t i = 0; i < n + (with_files ? sizeof files / sizeof *files : 0);
       i++) {
    unsigned number = (unsigned)(i < n ? refused[i] : files[i - n]);
    ADD(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1));
    ADD(BPF_STMT(BPF_RET | BPF_K,
                 kill ? SECCOMP_RET_KILL_PROCESS : SECCOMP_RET_ERRNO | EPERM));
  }
  if (kill) {
    ADD(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_ioctl, 0, 3));
    ADD(BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
                 offsetof(struct seccomp_data, args[1])));
    ADD(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, PERF_EVENT_IOC_PERIOD, 0, 1));
    ADD(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS));
  }
  ADD(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
#undef ADD
  zoo_need(!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "prctl");
  zoo_need(!syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &filter),
           "seccomp");
}

int main(int argc, char **argv)
{
  const char *which = argc > 1 ? argv[1] : "";
  if (ZOO_SANITIZED)
    zoo_skip("the sanitizer needs what the sandbox refuses");
  bool with_files = !strcmp(which, "files"),
       all = !strcmp(which, "all") || !strcmp(which, "kills_all"),
       longer = !strncmp(which, "kills", 5);
  /* One more filter for all threads is not noticed. */
  bool kills = longer && !(all && prctl(PR_GET_SECCOMP, 0, 0, 0, 0) > 0);
  unsigned flags = all ? SECCOMP_FILTER_FLAG_TSYNC : 0;
  if (!strcmp(which, "early"))
    enter(false, false, flags);
  lua_State *L = zoo_vm();
  zoo_say("work %ld", zoo_work(L, ZOO_ROUNDS / 2));
  if (strcmp(which, "early"))
    enter(with_files, kills, flags);
  zoo_say("work %ld", zoo_work(L, longer ? 2 * ZOO_ROUNDS : ZOO_ROUNDS / 2));
  pthread_t thread = zoo_worker(ZOO_ROUNDS / 2);
  zoo_say("thread %ld", zoo_result(thread));
  lua_close(L);
  return 0;
}
