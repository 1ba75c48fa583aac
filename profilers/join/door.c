/*
** Door: a thread that lives for as long as a client needs to come in. It makes
** a pair of sockets in the program's table of descriptors, where the client can
** take its end (pidfd_getfd), and a helper, which has a table of its own. When
** the client has said hello, the door closes both ends again, so the program
** has no descriptor of ours while it is joined.
**
** There is one door at a time: a client begins no attach before the last door
** has gone. The door's words are in ljp_join_state.
*/
#include "profilers/join/door.h"

#include <errno.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "profilers/join/entry.h"
#include "profilers/join/passage.h"
#include "profilers/session/host.h"
#include "src/base/open_file.h"
#include "src/session/session.h"

enum { DOOR_STACK_BYTES = 64 << 10 };

static void *door_main(void *unused)
{
  struct ljp_join_state *s = &ljp_join_state;
  struct ljp_passage *p = NULL;
  struct ljp_open_file ends[2];
  int fd[2] = {-1, -1};
  (void)unused;
  prctl(PR_SET_NAME, "ljprof-door");
  ljp_host_pin();
  int error =
      socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fd) ? errno : 0;
  for (int i = 0; i < 2; i++) {
    ends[i] = (struct ljp_open_file){.fd = error ? -1 : fd[i]};
    if (!error)
      ljp_open_file_note(&ends[i], false);
  }
  ljp_join_step("paired");
  if (!error)
    error = ljp_passage_make(&p, fd[1]);
  if (error) {
    s->error = error;
  } else {
    s->fd = fd[0];
    /* Release: whoever sees the door sees the number. */
    __atomic_store_n(&s->door, LJP_JOIN_DOOR_READY, __ATOMIC_RELEASE);
    ljp_passage_await(p);
  }
  /* The program may have closed them by now, and use the numbers itself. */
  ljp_open_file_close(&ends[0]);
  ljp_open_file_close(&ends[1]);
  ljp_session_helper(-1);
  __atomic_store_n(&s->door, error ? LJP_JOIN_DOOR_FAILED : LJP_JOIN_DOOR_GONE,
                   __ATOMIC_RELEASE);
  return NULL;
}

int ljp_door_start(void)
{
  return ljp_passage_thread(DOOR_STACK_BYTES, door_main, NULL);
}
