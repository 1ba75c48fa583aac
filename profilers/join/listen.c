/*
** Listen: begins and ends the door that stays; see listen.h. Its thread, in
** listen_run.c, has all signals blocked, never keeps the process from ending, and
** has a table of descriptors of its own.
**
** A child of fork() has no such thread, and forgets its parent's door. In a copy
** by a raw clone(), for which no handler runs, the door's words say that they are
** of another process.
*/
#include "profilers/join/listen.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "profilers/join/listen_run.h"
#include "profilers/join/passage.h"
#include "src/base/cancel.h"
#include "src/base/clock.h"
#include "src/base/futex.h"
#include "src/session/session.h"

enum { DOOR_STACK_BYTES = 64 << 10, PATTERN_BYTES = 2 * LJP_DOOR_PATH_BYTES };

static struct {
  /* The process of which a thread begins or ends a door, or reads these words; 0:
  ** none. */
  _Atomic uint32_t busy;
  struct ljp_listener *_Atomic door; /* in a copy: the parent's */
  /* For children of fork(); written before the first fork that needs it. */
  char pattern[PATTERN_BYTES];
  void (*_Atomic child_refused)(const char *text); /* NULL: no door for them */
  _Atomic bool watches_forks;
} listen_words;

enum { LISTEN_PAUSE_NS = 50000000 };

static bool listen_lock_for(unsigned pauses)
{
  const uint32_t me = (uint32_t)getpid();
  uint32_t was = 0;
  ljp_cancel_off();
  /* A thread of the parent is not here: it cannot be waited for. */
  while (!atomic_compare_exchange_strong(&listen_words.busy, &was, me)) {
    if (was == me && !pauses--) {
      ljp_cancel_on();
      return false;
    }
    if (was == me) {
      ljp_futex_wait(&listen_words.busy, me, LISTEN_PAUSE_NS);
      was = 0;
    }
  }
  return true;
}

static void listen_lock(void)
{
  while (!listen_lock_for(UINT_MAX))
    ;
}

static void listen_unlock(void)
{
  atomic_store(&listen_words.busy, 0);
  ljp_futex_call(&listen_words.busy, FUTEX_WAKE_PRIVATE, INT_MAX, NULL);
  ljp_cancel_on();
}

/* The door of this process. Locked. */
static struct ljp_listener *listen_door(void)
{
  struct ljp_listener *door = atomic_load(&listen_words.door);
  return door && door->pid == getpid() && !atomic_load(&door->ended) ? door
                                                                     : NULL;
}

/* -- Begin ----------------------------------------------------------------- */
/* False: there is no room. */
static bool listen_expand(char out[LJP_DOOR_PATH_BYTES], const char *pattern)
{
  size_t at = 0;
  for (const char *p = pattern; *p && at < LJP_DOOR_PATH_BYTES; p++) {
    if (p[0] == '%' && p[1] == 'p') {
      at += (size_t)snprintf(out + at, LJP_DOOR_PATH_BYTES - at, "%ld",
                             (long)getpid());
      p++;
    } else {
      out[at++] = *p;
    }
  }
  if (at >= LJP_DOOR_PATH_BYTES)
    return false;
  out[at] = '\0';
  return true;
}

static enum ljp_status listen_begin(const char *pattern,
                                    struct ljp_failure *why)
{
  enum { PATIENCE_S = 10, WAIT_NS = 100000000 };
  struct ljp_listener *door = listen_door();
  if (door)
    return ljp_fail(why, LJP_ERR_RUN, EBUSY,
                    "this program listens at %s already: end that first",
                    door->path);
  door = calloc(1, sizeof *door);
  if (!door)
    return ljp_fail(why, LJP_ERR_MEM, ENOMEM, "out of memory");
  door->pid = getpid();
  atomic_store(&door->users, 2);
  int error = listen_expand(door->path, pattern) ? 0 : ENAMETOOLONG;
  if (error) {
    ljp_fail(why, LJP_ERR_USE, error,
             "%.200s: the path of a socket can have no more than %d bytes",
             pattern, LJP_DOOR_PATH_BYTES - 1);
  } else if ((error = ljp_passage_thread(DOOR_STACK_BYTES, ljp_listener_main,
                                         door)) != 0) {
    ljp_fail(why, LJP_ERR_MEM, error, "%s: no thread can be made: %s",
             door->path, strerror(error));
  }
  if (error) {
    free(door);
    return error == ENAMETOOLONG ? LJP_ERR_USE : LJP_ERR_MEM;
  }
  uint64_t until = ljp_clock_ns() + PATIENCE_S * UINT64_C(1000000000);
  while (!atomic_load_explicit(&door->ready, memory_order_acquire) &&
         ljp_clock_ns() < until)
    ljp_futex_wait(&door->ready, 0, WAIT_NS);
  enum ljp_status status = LJP_OK;
  if (!atomic_load_explicit(&door->ready, memory_order_acquire)) {
    atomic_store(&door->unwanted, 1);
    status = ljp_fail(why, LJP_ERR_IO, ETIMEDOUT,
                      "%s: the socket could not be made within %d seconds",
                      door->path, PATIENCE_S);
  } else if (door->status) {
    status = ljp_fail(why, door->status, door->why.error, "%s", door->why.text);
  }
  struct ljp_listener *old =
      status ? door : atomic_exchange(&listen_words.door, door);
  /* A door that has ended by itself, or, in a copy, the parent's. */
  if (old && old->pid == getpid())
    ljp_listener_leave(old);
  return status;
}

/* -- Children of fork() ---------------------------------------------------- */
static void *listen_late(void *unused)
{
  enum { PAUSE_US = 250000 };
  struct ljp_failure why;
  (void)unused;
  prctl(PR_SET_NAME, "ljprof-door");
  /* A child that executes another program at once needs no socket, and would
  ** leave it behind. */
  usleep(PAUSE_US);
  void (*refused)(const char *) = atomic_load(&listen_words.child_refused);
  listen_lock();
  if (!listen_door() && listen_begin(listen_words.pattern, &why))
    refused(why.text);
  listen_unlock();
  ljp_session_helper(-1);
  return NULL;
}

static void listen_forked(void)
{
  struct ljp_listener *door = atomic_exchange(&listen_words.door, NULL);
  void (*refused)(const char *) = atomic_load(&listen_words.child_refused);
  atomic_store(&listen_words.busy, 0);
  /* Without a table of its own the child has the parent's socket. */
  if (door && atomic_load(&door->shares_table) && !atomic_load(&door->ended))
    ljp_open_file_close(&door->socket.open);
  if (refused && ljp_passage_thread(DOOR_STACK_BYTES, listen_late, NULL))
    refused("no thread can be made");
}

/* Locked. */
static void listen_watch_forks(void)
{
  /* Ours follow: in a child the count of our threads is right by then. */
  ljp_session_watch_forks();
  if (!atomic_exchange(&listen_words.watches_forks, true))
    pthread_atfork(NULL, NULL, listen_forked);
}

enum ljp_status ljp_listen_start(const char *path,
                                 void (*child_refused)(const char *text),
                                 struct ljp_failure *why)
{
  listen_lock();
  listen_watch_forks();
  enum ljp_status status = listen_begin(path, why);
  if (!status && child_refused && strstr(path, "%p")) {
    snprintf(listen_words.pattern, sizeof listen_words.pattern, "%s", path);
    atomic_store(&listen_words.child_refused, child_refused);
  }
  listen_unlock();
  return status;
}

/* -- End ------------------------------------------------------------------- */
/* The thread waits for clients, with descriptors that this thread does not have:
** comes as one. If that fails, it looks within a second. */
static void listen_knock(struct ljp_listener *door)
{
  enum { WAIT_NS = 100000000 };
  struct sockaddr_un at = {.sun_family = AF_UNIX};
  if (strlen(door->socket.path) >= sizeof at.sun_path ||
      !ljp_door_socket_stands(&door->socket))
    return;
  memcpy(at.sun_path, door->socket.path, strlen(door->socket.path));
  int fd = ljp_fd_not_standard(
      socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (fd < 0)
    return;
  if (connect(fd, (struct sockaddr *)&at, sizeof at) == 0)
    ljp_futex_wait(&door->ended, 0, WAIT_NS);
  close(fd);
}

enum ljp_status ljp_listen_stop(struct ljp_failure *why)
{
  enum { WAIT_NS = 100000000, WAITS = 30 };
  enum ljp_status status = LJP_OK;
  listen_lock();
  struct ljp_listener *door = listen_door();
  if (!door) {
    status = ljp_fail(why, LJP_ERR_RUN, EINVAL, "this program does not listen");
  } else {
    atomic_store(&listen_words.child_refused, NULL);
    atomic_store(&door->unwanted, 1);
    listen_knock(door);
    for (int i = 0; i < WAITS && !atomic_load(&door->ended); i++)
      ljp_futex_wait(&door->ended, 0, WAIT_NS);
    if (!atomic_load(&door->ended)) /* It is stopped, or hands a client on. */
      ljp_listener_remove(door);
    atomic_store(&listen_words.door, NULL);
    ljp_listener_leave(door);
  }
  listen_unlock();
  return status;
}

bool ljp_listen_path(char out[LJP_DOOR_PATH_BYTES])
{
  /* Nobody has asked for a door: this needs no lock. */
  if (!atomic_load(&listen_words.door))
    return false;
  listen_lock();
  const struct ljp_listener *door = listen_door();
  if (door)
    memcpy(out, door->path, LJP_DOOR_PATH_BYTES);
  listen_unlock();
  return door != NULL;
}

/* exit(). The process is not there much longer. Another thread may hold the lock
** for longer than that: if it ends the door, it removes the file as well. */
__attribute__((destructor)) static void listen_at_exit(void)
{
  enum { PAUSES = 4 };
  if (!atomic_load(&listen_words.door) || !listen_lock_for(PAUSES))
    return;
  struct ljp_listener *door = atomic_load(&listen_words.door);
  if (door && door->pid == getpid()) {
    atomic_store(&door->unwanted, 1);
    ljp_listener_remove(door);
  }
  listen_unlock();
}
