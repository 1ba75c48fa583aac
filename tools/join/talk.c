/*
** See talk.h.
*/
#include "tools/join/talk.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "src/base/join.h"
#include "tools/join/examine.h"
#include "tools/join/knock.h"
#include "tools/shared/command.h"

#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif
#ifndef SYS_pidfd_getfd
#define SYS_pidfd_getfd 438
#endif

static uint64_t talk_now_ms(void)
{
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

int ljp_talk_goal(const char *command, const char *text, struct ljp_goal *goal)
{
  char *end;
  errno = 0;
  long number = text ? strtol(text, &end, 10) : 0;
  *goal = (struct ljp_goal){.pid = (pid_t)number};
  if (text && *text >= '0' && *text <= '9' && !*end && !errno && number > 0 &&
      number <= INT32_MAX)
    return -1;
  *goal = (struct ljp_goal){.door = text};
  if (text && strchr(text, '/'))
    return -1;
  if (text && !access(text, F_OK))
    ljp_command_error(command,
                      "-p is '%s', but must be the number of a process, or the "
                      "path of a socket with a '/': type './%s'",
                      text, text);
  else if (text)
    ljp_command_error(command,
                      "-p is '%s', but must be the number of a process, or the "
                      "path of a socket with a '/'",
                      text);
  else
    ljp_command_error(command, "-p PID is missing (see ljprof %s --help)",
                      command);
  return LJP_EXIT_USAGE;
}

/* -- Messages -------------------------------------------------------------- */
int ljp_talk_send(struct ljp_talk *talk, struct ljp_join_message *m)
{
  m->serial = ++talk->serial;
  return ljp_join_send(talk->socket, m);
}

/* LJP_HEARD_NONE: there is no message yet. */
static enum ljp_heard talk_receive(struct ljp_talk *talk)
{
  enum { MOST_PINGS = 100 }; /* without a look at the time */
  const char *wrong;
  for (int i = 0; i < MOST_PINGS; i++) {
    int error = ljp_join_receive(talk->socket, LJP_JOIN_SIDE_T, talk->room,
                                 &talk->message, &wrong);
    if (error == EAGAIN)
      return LJP_HEARD_NONE;
    if (error == EPROTO)
      return LJP_HEARD_WRONG;
    if (error)
      return LJP_HEARD_END;
    if (talk->message.type != LJP_JOIN_PING)
      return LJP_HEARD;
  }
  return LJP_HEARD_NONE;
}

enum ljp_heard ljp_talk_hear(struct ljp_talk *talk, int timeout_ms, int extra)
{
  uint64_t until = talk_now_ms() + (uint64_t)(timeout_ms < 0 ? 0 : timeout_ms);
  for (;;) {
    struct pollfd fds[3] = {{.fd = talk->socket, .events = POLLIN},
                            {.fd = talk->pidfd, .events = POLLIN},
                            {.fd = extra, .events = POLLIN}};
    uint64_t now = talk_now_ms();
    int left = timeout_ms < 0 ? -1 : now < until ? (int)(until - now) : 0;
    int n = poll(fds, extra >= 0 ? 3 : 2, left);
    if (n < 0 && errno != EINTR)
      return LJP_HEARD_END;
    enum ljp_heard heard = talk_receive(talk);
    if (heard != LJP_HEARD_NONE)
      return heard;
    if (n > 0 && fds[1].revents)
      return LJP_HEARD_END;
    if (n < 0 || (n > 0 && extra >= 0 && fds[2].revents))
      return LJP_HEARD_NONE; /* a signal, or what the caller waits for */
    if (timeout_ms >= 0 && talk_now_ms() >= until)
      return LJP_HEARD_NONE;
  }
}

int ljp_talk_ended(struct ljp_talk *talk, enum ljp_heard heard)
{
  struct ljp_proc_status s;
  if (heard == LJP_HEARD_WRONG)
    ljp_command_error(talk->command,
                      "%s does not answer as a library of ours does",
                      talk->name);
  else if (ljp_proc_status(talk->pid, 0, &s) && s.state == 'T')
    ljp_command_error(talk->command,
                      "%s does not answer: it is stopped by a signal",
                      talk->name);
  else if (heard == LJP_HEARD_NONE)
    ljp_command_error(talk->command, "%s does not answer", talk->name);
  else if (ljp_proc_status(talk->pid, 0, &s) && !strchr("ZX", s.state))
    ljp_command_error(talk->command,
                      "%s has become another program (%s), or our thread there "
                      "has ended",
                      talk->name, s.comm);
  else
    ljp_command_error(talk->command, "%s has ended", talk->name);
  return LJP_EXIT_FAILED;
}

/* An error that nobody asked for is said of what has been sent last. */
static bool talk_answers(const struct ljp_talk *talk)
{
  const struct ljp_join_message *m = &talk->message;
  return m->serial == talk->serial || (m->type == LJP_JOIN_ERROR && !m->serial);
}

int ljp_talk_answer(struct ljp_talk *talk, enum ljp_join_type type,
                    int timeout_ms)
{
  char text[1024];
  enum ljp_heard heard;
  uint64_t until = talk_now_ms() + (uint64_t)timeout_ms;
  do {
    uint64_t now = talk_now_ms();
    heard = ljp_talk_hear(talk, now < until ? (int)(until - now) : 0, -1);
    if (heard == LJP_HEARD && !talk_answers(talk))
      heard = LJP_HEARD_NONE;
  } while (heard == LJP_HEARD_NONE && talk_now_ms() < until);
  if (heard != LJP_HEARD)
    return ljp_talk_ended(talk, heard);
  if (talk->message.type == type)
    return -1;
  if (talk->message.type != LJP_JOIN_ERROR)
    return ljp_talk_ended(talk, LJP_HEARD_WRONG);
  ljp_join_text(&talk->message, 0, text, sizeof text);
  ljp_command_error(talk->command, "%s: %s", talk->name, text);
  return LJP_EXIT_FAILED;
}

/* -- Joining --------------------------------------------------------------- */
/* The door waits for a client for a short time only. */
enum { TALK_LATE = -2 };

/* Takes the socket. The door may have gone meanwhile, and the program may use the
** number for a file of its own: then that is let go. Returns 0 or an errno. */
static int talk_take_socket(struct ljp_talk *talk,
                            const struct ljp_join_place *note, int number)
{
  struct ljp_join_state state;
  int type = 0, error = 0;
  socklen_t bytes = sizeof type;
  int fd = (int)syscall(SYS_pidfd_getfd, talk->pidfd, number, 0);
  if (fd < 0)
    return errno;
  if (!ljp_memory_get(talk->memory, note->state, &state, sizeof state) ||
      state.door != LJP_JOIN_DOOR_READY || state.fd != number ||
      getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &bytes) ||
      type != SOCK_SEQPACKET)
    error = EBADF;
  if (error)
    close(fd);
  else
    talk->socket = fd;
  return error;
}

/* The limit that the program has reached. prlimit changes those of a program
** that runs. */
static const char *talk_limit(int error)
{
  return error == EMFILE   ? " (its limit of descriptors: ulimit -n)"
         : error == EAGAIN ? " (a limit of threads or memory: ulimit -u, -v, "
                             "-d, or its control group's)"
                           : "";
}

/* The thread has made the door: waits for the socket. -1: taken; TALK_LATE; or
** the exit code. */
static int talk_take(struct ljp_talk *talk, const struct ljp_join_place *note)
{
  enum { PATIENCE_MS = 10000, LOOK_US = 50 };
  struct ljp_join_state state;
  uint64_t until = talk_now_ms() + PATIENCE_MS;
  for (;;) {
    if (!ljp_memory_get(talk->memory, note->state, &state, sizeof state))
      return ljp_talk_ended(talk, LJP_HEARD_END);
    if (state.door != LJP_JOIN_DOOR_COMING)
      break;
    if (talk_now_ms() > until)
      return ljp_talk_ended(talk, LJP_HEARD_NONE);
    usleep(LOOK_US);
  }
  ljp_join_step("ready");
  int error = state.door == LJP_JOIN_DOOR_READY
                  ? talk_take_socket(talk, note, state.fd)
                  : state.error;
  if (talk->socket >= 0)
    return -1;
  if (state.door == LJP_JOIN_DOOR_GONE || error == EBADF)
    return TALK_LATE;
  if (error == ESRCH && state.door == LJP_JOIN_DOOR_READY)
    return ljp_talk_ended(talk, LJP_HEARD_END);
  ljp_command_error(talk->command, "%s: %s: %s%s", talk->name,
                    state.door == LJP_JOIN_DOOR_FAILED
                        ? "it has no room for what joining takes"
                        : "its socket cannot be taken",
                    strerror(error),
                    error == ENOSYS ? " (this needs Linux 5.6), " LJP_KNOCK_HINT
                    : state.door == LJP_JOIN_DOOR_FAILED ? talk_limit(error)
                                                         : "");
  return LJP_EXIT_FAILED;
}

/* The other side has closed its end without a word. If it has done so before it
** read ours, that error comes first. */
static bool talk_is_closed(int socket)
{
  char byte;
  ssize_t n = recv(socket, &byte, sizeof byte, MSG_PEEK | MSG_DONTWAIT);
  if (n < 0 && errno == ECONNRESET)
    n = recv(socket, &byte, sizeof byte, MSG_PEEK | MSG_DONTWAIT);
  return n == 0 || (n < 0 && errno != EAGAIN);
}

static int talk_hello(struct ljp_talk *talk)
{
  enum { PATIENCE_MS = 10000 };
  struct ljp_join_message m = {
      .type = LJP_JOIN_HELLO, .number = {(uint64_t)getpid()}, .fds = 1};
  m.fd[0] = (int)syscall(SYS_pidfd_open, getpid(), 0);
  int error = m.fd[0] < 0 ? errno : ljp_talk_send(talk, &m);
  if (m.fd[0] >= 0)
    close(m.fd[0]);
  ljp_join_step("hello");
  /* A door that refuses says why, and closes its end. */
  if ((error == EPIPE || error == ECONNRESET) && !talk->door)
    return TALK_LATE;
  if (error && error != EPIPE && error != ECONNRESET) {
    ljp_command_error(talk->command, "%s: %s", talk->name, strerror(error));
    return LJP_EXIT_FAILED;
  }
  /* If the helper waits no more, or the process ends, the socket is closed
  ** without a message. The former calls for another visit. */
  struct pollfd end = {.fd = talk->socket, .events = POLLIN};
  struct ljp_proc_status s;
  bool heard = poll(&end, 1, PATIENCE_MS) > 0;
  if (heard && talk->door && talk_is_closed(talk->socket))
    return TALK_LATE;
  if (heard && !(end.revents & POLLIN) && ljp_proc_status(talk->pid, 0, &s) &&
      !strchr("ZX", s.state))
    return TALK_LATE;
  int code = ljp_talk_answer(talk, LJP_JOIN_WELCOME, PATIENCE_MS);
  if (code >= 0)
    return code;
  talk->vms = talk->message.number[2];
  talk->sessions = talk->message.number[3];
  ljp_join_text(&talk->message, 0, talk->version, sizeof talk->version);
  return -1;
}

/* The socket is there. -1: joined; TALK_LATE; or the exit code. */
static int talk_greet(struct ljp_talk *talk)
{
  int code = talk_hello(talk);
  if (code != -1) {
    close(talk->socket);
    talk->socket = -1;
  }
  return code;
}

/* One visit. -1: joined; TALK_LATE; or the exit code. */
static int talk_visit(struct ljp_talk *talk, const struct ljp_found *found,
                      const struct ljp_maps *maps)
{
  ljp_visit_make(&talk->visit, talk->pid, talk->memory, &found->note, maps);
  if (!talk->visit.good) {
    ljp_command_error(talk->command, "%s", talk->visit.why);
    return LJP_EXIT_FAILED;
  }
  int code = talk_take(talk, &found->note);
  ljp_join_step("taken");
  return code == -1 ? talk_greet(talk) : code;
}

/* Finds the library in a process that has been given by its number, and visits
** it. */
static int talk_come(struct ljp_talk *talk)
{
  enum { VISITS = 3 };
  static struct ljp_found found;
  struct ljp_proc_status status;
  struct ljp_maps maps;
  talk->pidfd = (int)syscall(SYS_pidfd_open, talk->pid, 0);
  int pidfd_error = errno;
  talk->memory = ljp_memory_open(talk->pid);
  int error = errno;
  int code = ljp_examine(talk->command, talk->pid, &status, &maps, &found);
  snprintf(talk->comm, sizeof talk->comm, "%s", status.comm);
  snprintf(talk->name, sizeof talk->name, "process %d (%s)", (int)talk->pid,
           talk->comm);
  if (code < 0 && talk->pidfd < 0) {
    ljp_command_error(talk->command,
                      "%s: %s (this needs Linux 5.6), " LJP_KNOCK_HINT,
                      talk->name, strerror(pidfd_error));
    code = LJP_EXIT_FAILED;
  }
  if (code < 0 && talk->memory < 0) {
    ljp_command_error(
        talk->command,
        "%s: its memory cannot be opened (%s): try sudo, " LJP_KNOCK_HINT,
        talk->name, strerror(error));
    code = LJP_EXIT_FAILED;
  }
  if (code < 0)
    code = TALK_LATE;
  for (int i = 0; code == TALK_LATE && i < VISITS; i++)
    code = talk_visit(talk, &found, &maps);
  ljp_maps_free(&maps);
  return code;
}

/* The same for one that listens. */
static int talk_knock(struct ljp_talk *talk)
{
  enum { KNOCKS = 5, PAUSE_US = 20000 };
  int code = TALK_LATE;
  for (int i = 0; code == TALK_LATE && i < KNOCKS; i++) {
    if (i)
      usleep(PAUSE_US);
    code = ljp_knock(talk);
    if (code < 0)
      code = talk_greet(talk);
  }
  return code;
}

int ljp_talk_join(struct ljp_talk *talk, const char *command,
                  const struct ljp_goal *goal)
{
  *talk = (struct ljp_talk){.command = command,
                            .door = goal->door,
                            .pid = goal->pid,
                            .pidfd = -1,
                            .memory = -1,
                            .socket = -1};
  int code = talk->door ? talk_knock(talk) : talk_come(talk);
  if (code == TALK_LATE) {
    ljp_command_error(command, "%s: %s", talk->name,
                      talk->door
                          ? "it closes the connection without an answer"
                          : "this ljprof came too late: the program waits for "
                            "it for two seconds; try again");
    code = LJP_EXIT_FAILED;
  }
  if (code >= 0)
    ljp_talk_leave(talk);
  return code;
}

void ljp_talk_leave(struct ljp_talk *talk)
{
  struct ljp_join_message bye = {.type = LJP_JOIN_BYE};
  if (talk->socket >= 0) {
    ljp_talk_send(talk, &bye);
    close(talk->socket);
  }
  if (talk->pidfd >= 0)
    close(talk->pidfd);
  if (talk->memory >= 0)
    close(talk->memory);
  talk->socket = talk->pidfd = talk->memory = -1;
}
