/*
** Serve, for `ljprof dump-stacks`: STACKS, then PLACE for each thread that the
** client stops, then TELL.
*/
#include <unistd.h>

#include "profilers/join/serve.h"
#include "profilers/join/stacks.h"
#include "src/base/clock.h"

static void stacks_answer(struct ljp_serve *serve,
                          const struct ljp_join_message *asked,
                          enum ljp_join_type type, uint64_t first,
                          uint64_t second)
{
  const struct ljp_join_message m = {
      .type = type, .serial = asked->serial, .number = {first, second}};
  ljp_join_send(serve->socket, &m);
}

static void stacks_refuse(struct ljp_serve *serve,
                          const struct ljp_join_message *asked,
                          const char *text)
{
  struct ljp_join_message m = {.type = LJP_JOIN_ERROR, .serial = asked->serial};
  ljp_join_set_text(&m, 0, text);
  ljp_join_send(serve->socket, &m);
}

void ljp_serve_stacks_end(struct ljp_serve *serve)
{
  if (!serve->stacks)
    return;
  ljp_stacks_free(serve->stacks);
  close(serve->stacks_output);
  serve->stacks = NULL;
}

static void stacks_begin(struct ljp_serve *serve, struct ljp_join_message *m)
{
  struct ljp_failure why;
  ljp_serve_stacks_end(serve);
  if (m->number[0] & ~(uint64_t)LJP_JOIN_STACKS_LOCALS) {
    stacks_refuse(serve, m,
                  "the program's library does not know what is asked "
                  "of it: it is older than this ljprof");
    return;
  }
  if (ljp_stacks_new(&serve->stacks, m->fd[0],
                     m->number[0] & LJP_JOIN_STACKS_LOCALS, &why)) {
    serve->stacks = NULL;
    stacks_refuse(serve, m, why.text);
    return;
  }
  serve->stacks_output = m->fd[0];
  m->fds = 0;
  stacks_answer(serve, m, LJP_JOIN_READY, 0, 0);
}

/* Until its stacks are told, functions that the program frees are kept. */
void ljp_serve_stacks_turn(struct ljp_serve *serve)
{
  const uint64_t patience_ns = UINT64_C(15000000000);
  if (serve->stacks && ljp_clock_ns() - serve->stacks_ns > patience_ns)
    ljp_serve_stacks_end(serve);
}

void ljp_serve_stacks(struct ljp_serve *serve, struct ljp_join_message *m)
{
  struct ljp_failure why;
  uint64_t sums[2];
  serve->stacks_ns = ljp_clock_ns();
  if (m->type == LJP_JOIN_STACKS) {
    stacks_begin(serve, m);
  } else if (!serve->stacks) {
    stacks_refuse(serve, m, "no stacks were asked for");
  } else if (m->type == LJP_JOIN_PLACE) {
    stacks_answer(
        serve, m, LJP_JOIN_PLACED,
        ljp_stacks_place(serve->stacks, (int)m->number[0], &m->number[1]), 0);
  } else {
    enum ljp_status status = ljp_stacks_tell(serve->stacks, sums, &why);
    ljp_serve_stacks_end(serve);
    if (status)
      stacks_refuse(serve, m, why.text);
    else
      stacks_answer(serve, m, LJP_JOIN_TOLD, sums[0], sums[1]);
  }
}
