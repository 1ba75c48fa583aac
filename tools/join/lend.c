/*
** See lend.h. The file system is mounted nowhere. It has the processes of the
** program's namespace and nothing else, cannot be written to, and no way leads
** from it to another folder, as one would from a folder of ours.
*/
#include "tools/join/lend.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/join/process.h"

/* Of Linux 5.2, which not every libc knows. */
enum {
  FSOPEN = 430,
  FSCONFIG,
  FSMOUNT,
  CLOSE_ON_EXEC = 1,
  SET_STRING = 1,         /* FSCONFIG_SET_STRING */
  CREATE = 6,             /* FSCONFIG_CMD_CREATE */
  NO_HARM = 1 | 2 | 4 | 8 /* MOUNT_ATTR_: RDONLY, NOSUID, NODEV, NOEXEC */
};

static bool lend_differs(pid_t pid, const char *name)
{
  char theirs[256], ours[256];
  ljp_proc_link(pid, name, theirs, sizeof theirs);
  ljp_proc_link(getpid(), name, ours, sizeof ours);
  return *theirs && *ours && strcmp(theirs, ours) != 0;
}

static int lend_namespace(pid_t pid)
{
  char path[64];
  snprintf(path, sizeof path, "/proc/%d/ns/pid", (int)pid);
  return open(path, O_RDONLY | O_CLOEXEC);
}

/* A proc file system of this process's namespace. */
static int lend_make(void)
{
  int made = -1, fs = (int)syscall(FSOPEN, "proc", CLOSE_ON_EXEC);
  if (fs < 0)
    return -1;
  /* Linux before 5.8 does not know the option. */
  syscall(FSCONFIG, fs, SET_STRING, "subset", "pid", 0);
  if (!syscall(FSCONFIG, fs, CREATE, NULL, NULL, 0))
    made = (int)syscall(FSMOUNT, fs, CLOSE_ON_EXEC, NO_HARM);
  close(fs);
  return made;
}

/* The same of another one. Only a child of this process can be in it, which has
** the same table of descriptors. */
static int lend_make_in(int theirs, int own)
{
  int made = -1, told[2];
  if (pipe2(told, O_CLOEXEC))
    return -1;
  pid_t child = -1;
  if (!setns(theirs, CLONE_NEWPID)) {
    child = (pid_t)syscall(SYS_clone, CLONE_FILES | SIGCHLD, 0, 0, 0, 0);
    if (child == 0) {
      made = lend_make();
      _exit(write(told[1], &made, sizeof made) != sizeof made);
    }
    setns(own, CLONE_NEWPID);
  }
  while (child > 0 && waitpid(child, NULL, 0) < 0 && errno == EINTR)
    ;
  close(told[1]);
  if (child < 0 || read(told[0], &made, sizeof made) != sizeof made)
    made = -1;
  close(told[0]);
  return made;
}

void ljp_lend_proc(struct ljp_talk *talk)
{
  struct ljp_join_message m = {.type = LJP_JOIN_PROC, .fds = 1};
  if (!talk->pid ||
      !(lend_differs(talk->pid, "root") || lend_differs(talk->pid, "ns/mnt") ||
        lend_differs(talk->pid, "ns/pid")))
    return;
  int own = lend_namespace(getpid()), theirs = lend_namespace(talk->pid);
  m.fd[0] = own >= 0 && theirs >= 0 ? lend_make_in(theirs, own) : -1;
  if (m.fd[0] >= 0) {
    ljp_talk_send(talk, &m);
    close(m.fd[0]);
  }
  if (own >= 0)
    close(own);
  if (theirs >= 0)
    close(theirs);
}
