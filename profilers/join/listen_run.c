/*
** The thread of a door that stays. It accepts clients, and hands each that says
** something to a helper, with which everything is as if the client had come by
** ptrace. It reads no message itself.
**
** A client that says nothing costs a place in a list of four, and for two seconds
** at most. If a fifth one comes, the one that has been silent longest goes, but
** not within 10 ms: then the fifth one waits outside, where it can speak already.
** A client of ours speaks at once, so no number of silent ones keeps it out.
*/
#include "profilers/join/listen_run.h"

#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#include "profilers/join/passage.h"
#include "profilers/session/host.h"
#include "src/base/clock.h"
#include "src/base/futex.h"
#include "src/base/join.h"
#include "src/base/join_message.h"
#include "src/base/own_table.h"
#include "src/session/session.h"

enum { SILENT = 4, TURN_MS = 1000, SILENT_TURN_MS = 250, SPEAK_MS = 10 };
#define LISTEN_MS UINT64_C(1000000)

/* Clients that have said nothing yet, the oldest first. */
struct silent {
  struct {
    int fd;
    uint64_t since_ns;
  } client[SILENT];
  unsigned count;
};

void ljp_listener_leave(struct ljp_listener *l)
{
  /* Both orders: the last one sees what the other did. */
  if (atomic_fetch_sub_explicit(&l->users, 1, memory_order_acq_rel) == 1)
    free(l);
}

void ljp_listener_remove(struct ljp_listener *l)
{
  /* Acquire: the file is known. */
  if (atomic_load_explicit(&l->ready, memory_order_acquire) && !l->status &&
      !atomic_exchange(&l->removed, true))
    ljp_door_socket_remove(&l->socket);
}

/* -- Clients --------------------------------------------------------------- */
/* What the client may have sent meanwhile is thrown away: with unread bytes in
** it, closing would be an error to the client, before it has read why. */
static void listener_refuse(int fd, const char *text)
{
  struct ljp_join_message m = {.type = LJP_JOIN_ERROR};
  char byte;
  ljp_join_set_text(&m, 0, text);
  ljp_join_send(fd, &m);
  shutdown(fd, SHUT_RDWR);
  while (recv(fd, &byte, sizeof byte, MSG_DONTWAIT) > 0)
    ;
}

static void listener_hand(int fd)
{
  struct ljp_passage *p;
  char text[160];
  int error = ljp_passage_make(&p, fd);
  if (!error) {
    ljp_passage_await(p);
  } else {
    snprintf(text, sizeof text, "there is no room for what joining takes: %s",
             strerror(error));
    listener_refuse(fd, text);
  }
}

/* True: the client has said something, or is gone. */
static bool listener_settle(int fd)
{
  char byte;
  ssize_t n = recv(fd, &byte, sizeof byte, MSG_PEEK | MSG_DONTWAIT);
  if (n < 0 && (errno == EAGAIN || errno == EINTR))
    return false;
  if (n > 0)
    listener_hand(fd);
  return true;
}

/* Those that have spoken, have gone, or have been silent for too long. */
static void listener_turn(struct silent *s, uint64_t now)
{
  unsigned kept = 0;
  for (unsigned i = 0; i < s->count; i++) {
    if (listener_settle(s->client[i].fd) ||
        now - s->client[i].since_ns >= LJP_JOIN_PATIENCE_MS * LISTEN_MS)
      close(s->client[i].fd);
    else
      s->client[kept++] = s->client[i];
  }
  s->count = kept;
}

static bool listener_admits(int fd)
{
  struct ucred peer;
  socklen_t bytes = sizeof peer;
  char text[160];
  if (!getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) &&
      (peer.uid == geteuid() || peer.uid == 0))
    return true;
  snprintf(text, sizeof text,
           "only user %u and root may join this program: join it as that user, "
           "or with sudo",
           (unsigned)geteuid());
  listener_refuse(fd, text);
  return false;
}

static void listener_accept(const struct ljp_listener *l, struct silent *s)
{
  enum { PAUSE_US = 100000 };
  int fd = accept4(l->socket.open.fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (fd < 0) {
    if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED)
      usleep(PAUSE_US); /* no descriptor or memory is left */
    return;
  }
  if (l->unwanted || !listener_admits(fd)) {
    close(fd);
    return;
  }
  if (s->count == SILENT)
    listener_turn(s, ljp_clock_ns());
  if (s->count == SILENT) {
    close(s->client[0].fd);
    memmove(s->client, s->client + 1, --s->count * sizeof *s->client);
  }
  s->client[s->count].fd = fd;
  s->client[s->count++].since_ns = ljp_clock_ns();
}

/* Waits until somebody comes or speaks. True: somebody has come, and there is
** room. */
static bool listener_wait(const struct ljp_listener *l, const struct silent *s)
{
  struct pollfd fds[1 + SILENT];
  bool full = s->count == SILENT &&
              ljp_clock_ns() - s->client[0].since_ns < SPEAK_MS * LISTEN_MS;
  fds[0] =
      (struct pollfd){.fd = full ? -1 : l->socket.open.fd, .events = POLLIN};
  for (unsigned i = 0; i < s->count; i++)
    fds[1 + i] = (struct pollfd){.fd = s->client[i].fd, .events = POLLIN};
  return poll(fds, 1 + s->count,
              full       ? SPEAK_MS
              : s->count ? SILENT_TURN_MS
                         : TURN_MS) > 0 &&
         fds[0].revents;
}

static void listener_run(struct ljp_listener *l)
{
  struct silent silent = {.count = 0};
  uint64_t looked_ns = ljp_clock_ns();
  while (!atomic_load(&l->unwanted) && !ljp_open_file_check(&l->socket.open)) {
    if (listener_wait(l, &silent) && !atomic_load(&l->unwanted))
      listener_accept(l, &silent);
    uint64_t now = ljp_clock_ns();
    listener_turn(&silent, now);
    if (now - looked_ns < TURN_MS * LISTEN_MS)
      continue;
    looked_ns = now;
    if (ljp_session_deserted())
      break;
  }
  while (silent.count)
    close(silent.client[--silent.count].fd);
}

void *ljp_listener_main(void *listener)
{
  struct ljp_listener *l = listener;
  prctl(PR_SET_NAME, "ljprof-door");
  ljp_host_pin();
  bool own = ljp_own_table_enter(-1, false);
  if (own)
    ljp_own_table_leave_standard();
  atomic_store(&l->shares_table, !own);
  l->status = ljp_door_socket_open(&l->socket, l->path, own, &l->why);
  /* Release: whoever sees this sees the result. */
  atomic_store_explicit(&l->ready, 1, memory_order_release);
  ljp_futex_call(&l->ready, FUTEX_WAKE_PRIVATE, INT_MAX, NULL);
  if (!l->status) {
    listener_run(l);
    /* As long as the socket is open, no other file has its inode. */
    ljp_listener_remove(l);
    ljp_open_file_close(&l->socket.open);
  }
  ljp_session_helper(-1);
  atomic_store(&l->ended, 1);
  ljp_futex_call(&l->ended, FUTEX_WAKE_PRIVATE, INT_MAX, NULL);
  ljp_listener_leave(l);
  return NULL;
}
