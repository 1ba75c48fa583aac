/*
** A session whose writer thread is apart from the program: the thread has its own
** descriptor table, so it alone opens and closes files and folders. Descriptors that
** other threads open for it (the frames of a heap snapshot) come through a pair of
** sockets, whose ends stay in the program's table until the session is freed.
*/
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "src/base/own_table.h"
#include "src/session/session_impl.h"

static bool apart_note(struct ljp_open_file *end, int fd)
{
  end->fd = ljp_fd_not_standard(fd);
  return end->fd >= 0 && ljp_open_file_note(end, true);
}

void ljp_session_close_passage(struct ljp_session *s)
{
  ljp_open_file_close(&s->outlet);
  ljp_open_file_close(&s->inlet);
  s->apart = s->own_table = false;
}

/* In a child of fork(), a heap snapshot may have come before the sockets exist. */
static bool apart_has_heap_locked(const struct ljp_session *s)
{
  for (const struct ljp_message *m = s->inbox; m; m = m->next)
    if (m->type == LJP_MSG_HEAP)
      return true;
  return false;
}

void ljp_session_part(struct ljp_session *s)
{
  int ends[2];
  if (!s->options.apart || ljp_own_table_is_risky())
    return;
  /* A fork() waits for the lock, so a child knows both ends or has none. */
  pthread_mutex_lock(&s->mutex);
  if (!apart_has_heap_locked(s) &&
      !socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends)) {
    s->apart = apart_note(&s->outlet, ends[0]);
    s->apart &= apart_note(&s->inlet, ends[1]);
    if (!s->apart)
      ljp_session_close_passage(s);
  }
  pthread_mutex_unlock(&s->mutex);
  s->own_table = s->apart && ljp_own_table_enter(s->inlet.fd, true);
}

void ljp_session_leave_standard(struct ljp_session *s)
{
  if (s->own_table)
    ljp_own_table_leave_standard();
}

union apart_control {
  char bytes[CMSG_SPACE(sizeof(int))];
  struct cmsghdr header;
};

int ljp_session_pass_locked(struct ljp_session *s, int fd)
{
  union apart_control control = {.header = {.cmsg_level = SOL_SOCKET,
                                            .cmsg_type = SCM_RIGHTS,
                                            .cmsg_len = CMSG_LEN(sizeof fd)}};
  char byte = 0;
  struct iovec part = {&byte, sizeof byte};
  const struct msghdr message = {.msg_iov = &part,
                                 .msg_iovlen = 1,
                                 .msg_control = control.bytes,
                                 .msg_controllen = sizeof control.bytes};
  int error = ljp_open_file_check(&s->outlet);
  if (error)
    return error;
  memcpy(CMSG_DATA(&control.header), &fd, sizeof fd);
  return sendmsg(s->outlet.fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL) == 1
             ? 0
             : errno;
}

int ljp_session_receive(struct ljp_session *s)
{
  union apart_control control;
  char byte;
  int fd = -1;
  struct iovec part = {&byte, sizeof byte};
  struct msghdr message = {.msg_iov = &part,
                           .msg_iovlen = 1,
                           .msg_control = control.bytes,
                           .msg_controllen = sizeof control.bytes};
  if (ljp_open_file_check(&s->inlet) ||
      recvmsg(s->inlet.fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC) != 1)
    return -1;
  const struct cmsghdr *header = CMSG_FIRSTHDR(&message);
  if (header && header->cmsg_level == SOL_SOCKET &&
      header->cmsg_type == SCM_RIGHTS &&
      header->cmsg_len == CMSG_LEN(sizeof fd))
    memcpy(&fd, CMSG_DATA(header), sizeof fd);
  return ljp_fd_not_standard(fd);
}
