/*
** See knock.h. Who listens is what the kernel says; in another namespace of
** processes it has no number here, and goes by its path.
*/
#include "tools/join/knock.h"

#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "tools/shared/command.h"

#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif

static int knock_refuse(const struct ljp_talk *talk, const char *text)
{
  ljp_command_error(talk->command, "%s: %s", talk->door, text);
  return LJP_EXIT_FAILED;
}

/* The path may not be used. */
static int knock_refuse_user(const struct ljp_talk *talk)
{
  char text[200];
  struct stat st;
  if (stat(talk->door, &st) || st.st_uid == geteuid())
    return knock_refuse(talk, strerror(EACCES));
  const struct passwd *owner = getpwuid(st.st_uid);
  snprintf(text, sizeof text,
           "the program belongs to %s (user %u): join it as that user, or with "
           "sudo",
           owner ? owner->pw_name : "another user", (unsigned)st.st_uid);
  return knock_refuse(talk, text);
}

static int knock_refuse_error(const struct ljp_talk *talk, int error)
{
  switch (error) {
  case ENOENT:
    return knock_refuse(talk, "there is no such socket: the program makes it "
                              "when it starts with LJPROF_LISTEN, or calls "
                              "misc.profile.listen()");
  case ECONNREFUSED:
    return knock_refuse(talk, "no program listens there any more");
  case EPROTOTYPE:
    return knock_refuse(talk, "the program that listens there does not answer "
                              "as a library of ours does");
  case EAGAIN:
    return knock_refuse(talk, "the program that listens there lets nobody in: "
                              "it is stopped, or too many clients are waiting");
  case EACCES:
    return knock_refuse_user(talk);
  default:
    return knock_refuse(talk, strerror(error));
  }
}

static int knock_connect(struct ljp_talk *talk)
{
  enum { PATIENCE_S = 5 };
  struct sockaddr_un at = {.sun_family = AF_UNIX};
  struct stat st;
  size_t len = strlen(talk->door);
  if (len >= sizeof at.sun_path)
    return knock_refuse(talk, "the path is longer than that of a socket can be "
                              "(107 bytes): type a shorter one, in another "
                              "folder");
  memcpy(at.sun_path, talk->door, len);
  if (stat(talk->door, &st))
    return knock_refuse_error(talk, errno);
  if (!S_ISSOCK(st.st_mode))
    return knock_refuse(talk, "this is not a socket");
  talk->socket = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  if (talk->socket < 0)
    return knock_refuse(talk, strerror(errno));
  /* Others may stand in line. */
  const struct timeval patience = {.tv_sec = PATIENCE_S};
  setsockopt(talk->socket, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
  int error =
      connect(talk->socket, (struct sockaddr *)&at, sizeof at) ? errno : 0;
  if (!error)
    return -1;
  close(talk->socket);
  talk->socket = -1;
  return knock_refuse_error(talk, error);
}

int ljp_knock(struct ljp_talk *talk)
{
  struct ucred peer = {.pid = 0};
  struct ljp_proc_status status;
  socklen_t bytes = sizeof peer;
  int code = knock_connect(talk);
  if (code >= 0)
    return code;
  if (talk->pidfd >= 0)
    close(talk->pidfd);
  getsockopt(talk->socket, SOL_SOCKET, SO_PEERCRED, &peer, &bytes);
  talk->pid = peer.pid > 0 ? peer.pid : 0;
  talk->pidfd = talk->pid ? (int)syscall(SYS_pidfd_open, talk->pid, 0) : -1;
  if (!talk->pid || !ljp_proc_status(talk->pid, 0, &status)) {
    talk->pid = 0;
    snprintf(talk->name, sizeof talk->name, "the program behind %s",
             talk->door);
    return -1;
  }
  snprintf(talk->comm, sizeof talk->comm, "%s", status.comm);
  snprintf(talk->name, sizeof talk->name, "process %d (%s)", (int)talk->pid,
           talk->comm);
  return -1;
}
