/*
** Serve, for `ljprof heap -p` and `record -p --snapshot`: which VMs there are, and
** a heap snapshot of one.
*/
#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>

#include "profilers/join/recording.h"
#include "profilers/join/serve.h"
#include "profilers/memory/heap_joined.h"
#include "profilers/session/side_run.h"
#include "src/base/heap_format.h"
#include "src/luajit/vms.h"

struct heap_list {
  uint64_t count;
  size_t length;
  char text[LJP_JOIN_MESSAGE_BYTES - 64];
};

static void heap_list_add(void *ctx, uint32_t number)
{
  struct heap_list *list = ctx;
  size_t room = sizeof list->text - list->length;
  int n = snprintf(list->text + list->length, room, "%s%u",
                   list->length ? " " : "", (unsigned)number);
  list->count++;
  if (n > 0 && (size_t)n < room)
    list->length += (size_t)n;
  else
    list->text[list->length] = '\0';
}

void ljp_serve_vms(struct ljp_serve *serve, const struct ljp_join_message *m)
{
  struct heap_list list = {.count = 0};
  ljp_guest_each_vm(heap_list_add, &list);
  struct ljp_join_message out = {
      .type = LJP_JOIN_VM_LIST, .serial = m->serial, .number = {list.count}};
  ljp_join_set_text(&out, 0, list.text);
  ljp_join_send(serve->socket, &out);
}

struct heap_asked {
  int socket;
  uint32_t serial;
};

static void heap_begun(void *ctx)
{
  const struct heap_asked *asked = ctx;
  const struct ljp_join_message out = {.type = LJP_JOIN_COPIED,
                                       .serial = asked->serial};
  ljp_join_send(asked->socket, &out);
}

static void heap_answer(struct ljp_serve *serve, uint32_t serial,
                        enum ljp_status status,
                        const struct ljp_snapshot_result *r,
                        const struct ljp_failure *why)
{
  struct ljp_join_message m = {.type = LJP_JOIN_ERROR, .serial = serial};
  if (status)
    ljp_join_set_text(&m, 0, why->text);
  else
    m = (struct ljp_join_message){.type = LJP_JOIN_HEAP_DONE,
                                  .serial = serial,
                                  .number = {r->taken, r->pause_ns, r->walk_ns,
                                             r->objects, r->refs, r->bytes,
                                             r->file_bytes, r->unreadable}};
  ljp_join_send(serve->socket, &m);
}

/* Into the session, which goes on meanwhile: the answer comes later. */
static enum ljp_status heap_into_session(struct ljp_serve *serve,
                                         struct ljp_join_message *m,
                                         const struct ljp_heap_joined *request,
                                         struct ljp_failure *why)
{
  if (!serve->records || !(ljp_recording_parts() & LJP_JOIN_SESSION_MEMORY))
    return ljp_fail(why, LJP_ERR_USE, EINVAL,
                    "this client records no memory events");
  if (serve->heap)
    return ljp_fail(why, LJP_ERR_RUN, EBUSY,
                    "another heap snapshot is being written");
  m->fds = 0;
  serve->heap_serial = m->serial;
  return ljp_heap_ask(request, &serve->heap, why);
}

void ljp_serve_heap(struct ljp_serve *serve, struct ljp_join_message *m)
{
  struct heap_asked asked = {serve->socket, m->serial};
  const struct ljp_heap_joined request = {.vm = (uint32_t)m->number[0],
                                          .text_limit = (uint32_t)m->number[1],
                                          .gc = m->number[2] != 0,
                                          .output = m->fd[0],
                                          .client = serve->client,
                                          .begun = heap_begun,
                                          .ctx = &asked};
  struct ljp_snapshot_result r = {0};
  struct ljp_failure why;
  struct stat st;
  bool own = !m->number[3];
  enum ljp_status status = LJP_OK;
  if (m->number[0] > UINT32_MAX || m->number[1] > LJP_HEAP_TEXT_MAX_BYTES ||
      m->number[2] > 1 || m->number[3] > 1 || fstat(m->fd[0], &st) ||
      !S_ISREG(st.st_mode))
    status =
        ljp_fail(&why, LJP_ERR_USE, 0,
                 "the program's library does not know what is asked of it");
  ljp_side_bind();
  if (!status)
    status = own ? ljp_heap_joined(&request, &r, &why)
                 : heap_into_session(serve, m, &request, &why);
  if (status || own)
    heap_answer(serve, m->serial, status, &r, &why);
}

void ljp_serve_heap_turn(struct ljp_serve *serve)
{
  struct ljp_snapshot_result r;
  struct ljp_failure why;
  struct heap_asked asked = {serve->socket, serve->heap_serial};
  enum ljp_status status;
  if (!serve->heap)
    return;
  bool waited = ljp_heap_asked_waits(serve->heap);
  if (ljp_heap_asked_over(serve->heap, &r, &status, &why)) {
    ljp_heap_asked_free(serve->heap, true);
    serve->heap = NULL;
    heap_answer(serve, serve->heap_serial, status, &r, &why);
  } else if (waited && !ljp_heap_asked_waits(serve->heap)) {
    heap_begun(&asked);
  }
}

void ljp_serve_heap_end(struct ljp_serve *serve)
{
  if (serve->heap)
    ljp_heap_asked_free(serve->heap, false);
  serve->heap = NULL;
}
