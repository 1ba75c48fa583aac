/*
** Heap snapshots on their way into a session's stream: see session.h. What a
** copy of the process has written comes as a message; the writer thread appends
** a bounded piece of it in each round, after the drain, so that events do not
** wait.
** Invariant: a snapshot is appended only after a drain that began after it came,
** so everything that was pushed before it is in the stream.
*/
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "src/base/open_file.h"
#include "src/session/session_impl.h"
#include "src/writer/heap_frames.h"

#ifdef LJP_DEBUG
enum { PIECE_BYTES = 8 << 10 };
#else
enum { PIECE_BYTES = 2 << 20 };
#endif

struct ljp_heap_pending {
  struct ljp_heap_pending *next;
  struct ljp_session_heap heap;
  struct ljp_open_file file; /* The program may close it. */
  struct ljp_heap_append append;
  bool settled;
};

/* -- The caller ------------------------------------------------------------ */

uint64_t ljp_session_next_snapshot(struct ljp_session *s)
{
  pthread_mutex_lock(&s->mutex);
  uint64_t number = ++s->next_snapshot;
  pthread_mutex_unlock(&s->mutex);
  return number;
}

/* The folder of the session's file. */
static char *heap_folder(struct ljp_session *s)
{
  char *folder = NULL;
  pthread_mutex_lock(&s->mutex);
  const char *path = s->sink ? s->sink->path : NULL;
  const char *slash = path ? strrchr(path, '/') : NULL;
  if (slash)
    folder = strndup(path, slash == path ? 1 : (size_t)(slash - path));
  pthread_mutex_unlock(&s->mutex);
  return folder;
}

int ljp_session_open_scratch(struct ljp_session *s, int *fd)
{
  char *folder = heap_folder(s);
  *fd = ljp_fd_not_standard(
      open(folder ? folder : "/tmp", O_RDWR | O_TMPFILE | O_CLOEXEC, 0600));
  int error = errno;
  free(folder);
  /* Some file systems have no files without a name. */
  if (*fd < 0 && error != EMFILE && error != ENFILE && error != ENOSPC &&
      error != EDQUOT) {
    *fd = ljp_fd_not_standard(memfd_create("ljprof-heap", MFD_CLOEXEC));
    error = errno;
  }
  return *fd < 0 ? error : 0;
}

enum ljp_status ljp_session_append_heap(struct ljp_session *s,
                                        const struct ljp_session_heap *heap)
{
  struct ljp_message *m = ljp_message_new(LJP_MSG_HEAP, NULL, NULL);
  struct ljp_heap_pending *pending = calloc(1, sizeof *pending);
  uint8_t *buffer = malloc(LJP_HEAP_FRAMES_BYTES);
  bool passed = false;
  enum ljp_status status = m && pending && buffer ? LJP_OK : LJP_ERR_MEM;
  if (!status) {
    pending->heap = *heap;
    pending->file.fd = heap->fd;
    if (!ljp_open_file_note(&pending->file, true))
      status = LJP_ERR_IO;
    pending->append = (struct ljp_heap_append){
        .fd = heap->fd, .end = heap->bytes, .buffer = buffer};
    m->heap = pending;
  }
  if (!status) {
    pthread_mutex_lock(&s->mutex);
    if (s->state != LJP_SESSION_RUNNING || !s->writer_alive)
      status = ljp_session_refusal_locked(s);
    else if (s->apart && ljp_session_pass_locked(s, heap->fd))
      status = LJP_ERR_IO;
    else
      ljp_message_post_locked(s, m);
    passed = !status && s->apart;
    pthread_mutex_unlock(&s->mutex);
  }
  if (status) {
    free(m);
    free(pending);
    free(buffer);
    return status;
  }
  if (passed) /* The writer thread has a copy. */
    close(heap->fd);
  ljp_session_wake(s);
  return LJP_OK;
}

/* -- The writer thread ----------------------------------------------------- */

void ljp_session_take_heap(struct ljp_session *s,
                           struct ljp_heap_pending *pending)
{
  struct ljp_heap_pending **end = &s->heaps;
  while (*end)
    end = &(*end)->next;
  *end = pending;
  if (!s->apart)
    return;
  int fd = ljp_session_receive(s);
  pending->heap.fd = pending->append.fd = pending->file.fd = fd;
  if (fd >= 0)
    ljp_open_file_note(&pending->file, true);
}

void ljp_session_settle_heaps(struct ljp_session *s)
{
  for (struct ljp_heap_pending *p = s->heaps; p; p = p->next)
    p->settled = true;
}

static void heap_free(struct ljp_heap_pending *p)
{
  ljp_open_file_close(&p->file);
  free(p->append.buffer);
  free(p);
}

static void heap_done(struct ljp_session *s, int error)
{
  struct ljp_heap_pending *p = s->heaps;
  const struct ljp_session_heap heap = p->heap;
  s->heaps = p->next;
  heap_free(p);
  heap.done(heap.ctx, error);
}

void ljp_session_append_heaps(struct ljp_session *s)
{
  struct ljp_heap_pending *p = s->heaps;
  if (!p || !p->settled)
    return;
  const uint64_t from = p->append.at;
  int error = ljp_open_file_check(&p->file);
  enum ljp_status status = error ? LJP_ERR_IO
                                 : ljp_writer_append_heap(s->writer, &p->append,
                                                          PIECE_BYTES, &error);
  if (status)
    ljp_writer_note(s->writer, LJP_NOTE_ERROR,
                    "a heap snapshot is incomplete: it could not be read "
                    "back: %s",
                    strerror(error));
  else /* Its blocks are in the stream now. Where that fails, they stay. */
    fallocate(p->heap.fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
              (off_t)from, (off_t)(p->append.at - from));
  if (status || p->append.at == p->append.end)
    heap_done(s, error);
}

void ljp_session_drop_heaps(struct ljp_session *s, int error)
{
  while (s->heaps)
    heap_done(s, error ? error : ECANCELED);
}

/* -- fork() ---------------------------------------------------------------- */

void ljp_session_forget_heaps(struct ljp_session *s)
{
  /* The thread that forked may have another table of descriptors. */
  for (struct ljp_message *m = s->inbox; m; m = m->next)
    if (m->type == LJP_MSG_HEAP)
      ljp_open_file_close(&m->heap->file);
  /* The writer may have been at work on the list: leave its memory. */
  for (struct ljp_heap_pending *p = s->heaps; p; p = p->next)
    ljp_open_file_close(&p->file);
  s->heaps = NULL;
  s->next_snapshot = 0;
}
