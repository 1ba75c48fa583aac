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
#include <linux/sockios.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "profilers/join/serve.h"
#include "profilers/join/table.h"
#include "src/base/clock.h"
#include "src/base/join.h"
#include "src/base/own_table.h"
#include "src/session/session.h"

enum { HELPERS = 4 };

/* The number of clients, and above it the process that has them: a child of
** fork() has no helper. */
static _Atomic uint64_t helper_clients;

/* One client more. False: there are as many as there may be. */
static bool helper_enter(void)
{
  const uint64_t here = (uint64_t)getpid() << 32;
  uint64_t now = atomic_load(&helper_clients), more;
  do {
    uint64_t count = now >> 32 == here >> 32 ? now & UINT32_MAX : 0;
    if (count == HELPERS)
      return false;
    more = here | (count + 1);
  } while (!atomic_compare_exchange_weak(&helper_clients, &now, more));
  return true;
}

/* -- The client ------------------------------------------------------------ */
static void helper_close_fds(struct ljp_join_message *m)
{
  while (m->fds)
    close(m->fd[--m->fds]);
}

/* Descriptors come with the lowest free numbers, which the program expects to get
** itself if the table is its own. */
static void helper_move_fds(struct ljp_join_message *m)
{
  for (unsigned i = 0; i < m->fds; i++) {
    int moved = ljp_table_move(m->fd[i], false);
    if (moved < 0)
      continue;
    close(m->fd[i]);
    m->fd[i] = moved;
  }
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
static int helper_meet(int socket, bool own, uint64_t *pid, uint32_t *serial)
{
  char room[LJP_JOIN_MESSAGE_BYTES];
  struct ljp_join_message m;
  const char *wrong = "";
  bool readable;
  uint64_t until = ljp_clock_ns() + LJP_JOIN_PATIENCE_MS * UINT64_C(1000000);
  do {
    uint64_t now = ljp_clock_ns();
    if (now >= until ||
        !helper_wait(socket, -1, (int)((until - now) / 1000000) + 1, &readable))
      return -1;
  } while (!readable);
  int error = ljp_join_receive(socket, LJP_JOIN_SIDE_C, room, &m, &wrong);
  if (!error && m.type != LJP_JOIN_HELLO) {
    helper_close_fds(&m);
    wrong = "a message before the first one";
    error = EPROTO;
  } else if (!error && (!m.number[0] || m.number[0] > INT32_MAX)) {
    /* A session of process 0 would be one of the program itself. */
    helper_close_fds(&m);
    wrong = "a client without a number of a process";
    error = EPROTO;
  }
  if (error == EPROTO)
    helper_refuse(socket, 0, wrong);
  if (error)
    return -1;
  if (!own)
    helper_move_fds(&m);
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
  if (!serve->own)
    helper_move_fds(&m);
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
  enum { PING_NS = 1000000000 };
  const struct ljp_join_message ping = {.type = LJP_JOIN_PING};
  uint64_t pinged = ljp_clock_ns();
  bool readable, stays = true;
  while (stays && helper_wait(serve->socket, serve->client,
                              ljp_serve_pause_ms(serve), &readable)) {
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
  bool own = ljp_own_table_enter(socket, false);
  int moved = ljp_table_move(socket, own);
  if (own)
    ljp_own_table_leave_standard();
  ljp_join_step("table");
  serve.socket = moved;
  serve.own = own;
  int client =
      moved < 0 ? -1 : helper_meet(moved, own, &serve.client_pid, &serial);
  serve.client = client;
  bool room = client >= 0 && helper_enter();
  opened(ctx);
  if (room) {
    ljp_serve_welcome(&serve, serial);
    ljp_join_step("welcomed");
    helper_talk(&serve);
    ljp_serve_end(&serve);
    atomic_fetch_sub(&helper_clients, 1);
  } else if (client >= 0) {
    helper_refuse(moved, serial,
                  "four clients have joined this program already");
  }
  if (client >= 0)
    close(client);
  if (moved >= 0)
    close(moved);
}
