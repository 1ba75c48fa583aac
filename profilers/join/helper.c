/*
** Helper: a thread of ours in a joined program. It answers one client, and stops
** the session that this client has begun when the client ends or leaves.
**
** It has a table of descriptors of its own, and shares it with the threads that
** it makes: the writer, the watcher, the stopper. So the program never meets a
** descriptor of ours. The rule: in a session that a client has begun, only
** these threads touch descriptors. The helper opens no file for a client: the
** client sends descriptors.
*/
#include "profilers/join/helper.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "profilers/join/serve.h"
#include "src/base/clock.h"
#include "src/base/join.h"
#include "src/session/session.h"

#ifndef SYS_close_range
#define SYS_close_range 436
#endif

enum { HELPERS = 4, CLOSE_RANGE_OWN = 2 /* CLOSE_RANGE_UNSHARE */ };

/* Of this process: a child of fork() has no helper. */
static _Atomic unsigned helper_count;
static _Atomic pid_t helper_pid;

/* -- The table of descriptors ---------------------------------------------- */
/* From here on this thread has its own table, with this descriptor only. False:
** the kernel is too old. */
static bool helper_own_table(unsigned keep)
{
  if (syscall(SYS_close_range, keep + 1, ~0u, CLOSE_RANGE_OWN))
    return false;
  if (keep)
    syscall(SYS_close_range, 0u, keep - 1, 0);
  return true;
}

/* Gives the descriptor another number: in a table of our own, one behind the
** standard streams; in the program's, one so high that programs do not get it. */
static int helper_move(int fd, bool own)
{
  int copy = fcntl(fd, F_DUPFD_CLOEXEC, own ? STDERR_FILENO + 1 : 512);
  if (own && copy >= 0)
    close(fd);
  return copy;
}

/* What is written to standard error must not land in a file of ours. */
static void helper_fill_standard(void)
{
  int fd;
  while ((fd = eventfd(0, EFD_CLOEXEC)) >= 0 && fd <= STDERR_FILENO)
    ;
  if (fd >= 0)
    close(fd);
}

/* -- The client ------------------------------------------------------------ */
static void helper_close_fds(struct ljp_join_message *m)
{
  while (m->fds)
    close(m->fd[--m->fds]);
}

static bool helper_wait(int socket, int client, int timeout_ms, bool *readable)
{
  struct pollfd fds[2] = {{.fd = socket, .events = POLLIN},
                          {.fd = client, .events = POLLIN}};
  int n = poll(fds, client >= 0 ? 2 : 1, timeout_ms);
  *readable = n > 0 && fds[0].revents & POLLIN;
  /* A client that has ended says nothing more. */
  return n >= 0 || errno == EINTR
             ? !(n > 0 && (fds[1].revents ||
                           (fds[0].revents && !(fds[0].revents & POLLIN))))
             : false;
}

static int helper_refuse(int socket, uint32_t serial, const char *text)
{
  struct ljp_join_message m = {.type = LJP_JOIN_ERROR, .serial = serial};
  ljp_join_set_text(&m, 0, text);
  return ljp_join_send(socket, &m);
}

/* Waits for the client's first message. Returns its pidfd, or -1. */
static int helper_meet(int socket, uint64_t *pid, uint32_t *serial)
{
  char room[LJP_JOIN_MESSAGE_BYTES];
  struct ljp_join_message m;
  const char *wrong;
  bool readable;
  uint64_t until = ljp_clock_ns() + LJP_JOIN_PATIENCE_MS * UINT64_C(1000000);
  do {
    uint64_t now = ljp_clock_ns();
    if (now >= until ||
        !helper_wait(socket, -1, (int)((until - now) / 1000000) + 1, &readable))
      return -1;
  } while (!readable);
  if (ljp_join_receive(socket, LJP_JOIN_SIDE_C, room, &m, &wrong))
    return -1;
  if (m.type != LJP_JOIN_HELLO) {
    helper_close_fds(&m);
    return -1;
  }
  *pid = m.number[0];
  *serial = m.serial;
  return m.fd[0];
}

/* -- The conversation ------------------------------------------------------ */
static bool helper_answer(struct ljp_serve *serve)
{
  char room[LJP_JOIN_MESSAGE_BYTES];
  struct ljp_join_message m;
  const char *wrong;
  int error =
      ljp_join_receive(serve->socket, LJP_JOIN_SIDE_C, room, &m, &wrong);
  if (error == EAGAIN)
    return true;
  if (error == EPROTO)
    helper_refuse(serve->socket, 0, wrong);
  if (error)
    return false;
  bool stays = ljp_serve(serve, &m);
  helper_close_fds(&m);
  return stays;
}

/* A client that was stopped for long has not read what came each second. The
** socket keeps room for what it must not miss: the end of its session. */
static bool helper_has_read(int socket)
{
  enum { UNREAD_BYTES = 16 << 10 };
  int unread = 0;
  return ioctl(socket, SIOCOUTQ, &unread) || unread < UNREAD_BYTES;
}

static void helper_talk(struct ljp_serve *serve)
{
  enum { PING_NS = 1000000000, TURN_MS = 200, IDLE_MS = 1000 };
  const struct ljp_join_message ping = {.type = LJP_JOIN_PING};
  uint64_t pinged = ljp_clock_ns();
  bool readable, stays = true;
  while (stays &&
         helper_wait(serve->socket, serve->client,
                     ljp_serve_records(serve) ? TURN_MS : IDLE_MS, &readable)) {
    if (readable)
      stays = helper_answer(serve);
    ljp_serve_turn(serve);
    uint64_t now = ljp_clock_ns();
    if (now - pinged < PING_NS)
      continue;
    pinged = now;
    int error = helper_has_read(serve->socket)
                    ? ljp_join_send(serve->socket, &ping)
                    : 0;
    if ((error && error != EAGAIN) || ljp_session_deserted())
      break;
  }
}

void ljp_helper_run(int socket, void (*opened)(void *ctx), void *ctx)
{
  struct ljp_serve serve = {.socket = socket};
  uint32_t serial = 0;
  ljp_session_watch_forks();
  if (atomic_exchange(&helper_pid, getpid()) != getpid())
    atomic_store(&helper_count, 0);
  bool own = helper_own_table((unsigned)socket);
  int moved = helper_move(socket, own);
  if (own)
    helper_fill_standard();
  ljp_join_step("table");
  serve.socket = moved;
  int client = moved < 0 ? -1 : helper_meet(moved, &serve.client_pid, &serial);
  serve.client = client;
  bool room = client >= 0 && atomic_fetch_add(&helper_count, 1) < HELPERS;
  opened(ctx);
  if (room) {
    ljp_serve_welcome(&serve, serial);
    ljp_join_step("welcomed");
    helper_talk(&serve);
    ljp_serve_end(&serve);
  } else if (client >= 0) {
    helper_refuse(moved, serial,
                  "four clients have joined this program already");
  }
  if (client >= 0) {
    atomic_fetch_sub(&helper_count, 1);
    close(client);
  }
  if (moved >= 0)
    close(moved);
}
