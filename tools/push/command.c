/*
** ljprof push: sends profiles to Pyroscope, Parca, or what takes OTLP profiles.
**
** What a server takes whole or not at all is one request: a file, or for Pyroscope a
** profile of it. With a spool, a request is on disk before it is sent, and its outcome before the next
** one goes.
*/
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>

#include "tools/push/options.h"
#include "tools/shared/identity.h"

/* Puts requests into the spool; those that it has, from a start that was ended in
** between, are left out. Returns 0 or an errno. */
static int push_keep(struct ljp_push *push, struct ljp_push_requests *requests)
{
  int error = 0;
  for (unsigned i = 0; i < requests->count && !error; i++) {
    struct ljp_request *r = &requests->list[i];
    if (ljp_journal_find(&push->spool->journal, r->id))
      continue;
    error = ljp_spool_add(push->spool, r);
    if (error == EFBIG) {
      ljp_command_error("push", "%s: is larger than the budget of the spool",
                        r->source);
      error = 0;
    }
  }
  return error;
}

bool ljp_push_take(struct ljp_push *push, const char *file, const char *shown,
                   const uint8_t id[16], struct ljp_push_requests *out)
{
  int error = 0;
  switch (ljp_push_encode(push, file, shown, id, out)) {
  case LJP_ENCODED_GROWING:
    return false;
  case LJP_ENCODED_EMPTY:
    push->empty++;
    if (push->spool)
      error = ljp_journal_add(&push->spool->journal, id, 0, LJP_JOURNAL_EMPTY);
    break;
  case LJP_ENCODED_FAILED:
    push->unreadable++;
    break;
  case LJP_ENCODED:
    if (!push->spool)
      return true;
    error = push_keep(push, out);
    ljp_push_free(out);
  }
  if (error)
    push->error = error;
  return true;
}

void ljp_push_tell_drops(struct ljp_push *push)
{
  struct ljp_spool *s = push->spool;
  if (s && s->dropped > push->told_drops)
    ljp_command_error("push",
                      "the spool is full: %" PRIu64 " requests (%" PRIu64
                      " bytes) were dropped, the oldest first",
                      s->dropped, s->dropped_bytes);
  if (s)
    push->told_drops = s->dropped;
}

/* Sends one request, with retries until the time to give up. */
static void push_direct(struct ljp_push *push, struct ljp_request *r,
                        uint64_t until)
{
  uint64_t wait;
  while (!push->wrong && (wait = ljp_push_send(push, r)) != 0) {
    if (ljp_push_now_ms() + wait > until || !ljp_push_sleep(wait)) {
      push->unsent++;
      ljp_command_error("push", "%s: not sent", r->source);
      break;
    }
  }
}

static void push_spooled(struct ljp_push *push, uint64_t until)
{
  while (!push->wrong && !push->error) {
    ljp_push_send_due(push);
    if (!push->next_send_ms || push->next_send_ms > until ||
        !ljp_push_sleep(push->next_send_ms - ljp_push_now_ms()))
      break;
  }
}

static void push_file(struct ljp_push *push, const char *file, uint64_t until)
{
  struct ljp_push_requests requests = {.count = 0};
  uint8_t id[LJP_IDENTITY_BYTES];
  /* So that nothing is dropped while the server takes what waits. */
  ljp_push_send_due(push);
  int error = ljp_identify(file, id);
  push->files++;
  if (error) {
    ljp_command_error("push", "%s: %s", file, ljp_errno_text(error));
    push->unreadable++;
  } else if (push->spool && ljp_journal_find(&push->spool->journal, id)) {
    push->known++;
  } else if (!ljp_push_take(push, file, file, id, &requests)) {
    ljp_command_error("push", "%s: is still being recorded", file);
    push->unreadable++;
  } else {
    for (unsigned i = 0; i < requests.count; i++)
      push_direct(push, &requests.list[i], until);
    ljp_push_free(&requests);
  }
}

static void push_tell(const struct ljp_push *push)
{
  const struct ljp_spool *s = push->spool;
  const struct {
    uint64_t count;
    const char *text;
  } parts[] = {{push->known, "were known already"},
               {push->empty, "had nothing to push"},
               {push->refused, "were refused"},
               {push->doubtful, "may have been sent"},
               {push->unreadable, "could not be read"},
               {push->aside, "were set aside"},
               {push->unsent, "were not sent"},
               {push->gone, "were gone"},
               {s ? s->dropped : 0, "were dropped"},
               {s ? s->damaged : 0, "were damaged in the spool"},
               {s ? s->count : 0, "wait in the spool"}};
  char text[512];
  int at = snprintf(text, sizeof text, "%" PRIu64 " sent (%" PRIu64 " bytes)",
                    push->sent, push->sent_bytes);
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
    if (parts[i].count)
      at += snprintf(text + at, sizeof text - (size_t)at, ", %" PRIu64 " %s",
                     parts[i].count, parts[i].text);
  fprintf(stderr, "ljprof push: %s\n", text);
}

static int push_run(struct ljp_push *push, const struct ljp_push_command *c)
{
  int code = LJP_EXIT_OK;
  uint64_t until = ljp_push_now_ms() + push->options.give_up_ms;
  ljp_push_catch_signals();
  push->follows = c->follow != NULL;
  if (c->follow)
    code = ljp_push_follow(push, c->follow, c->look_ms);
  for (unsigned i = 0; i < c->file_count && (push->spool || !push->wrong) &&
                       !push->error && !ljp_push_stopped();
       i++)
    push_file(push, c->files[i], until);
  if (push->spool && !c->follow)
    push_spooled(push, until);
  const struct ljp_spool *s = push->spool;
  ljp_push_tell_drops(push);
  if (push->error && s)
    ljp_command_error("push", "the spool '%s': %s", s->path,
                      ljp_errno_text(push->error));
  uint64_t failed = push->refused + push->doubtful + push->unreadable +
                    push->unsent + (s ? s->dropped + s->damaged : 0);
  if (push->wrong || push->error || (!c->follow && s && s->count) ||
      (!c->follow && failed) || (!c->follow && ljp_push_stopped()))
    code = LJP_EXIT_FAILED;
  push_tell(push);
  return code;
}

static int push_with_spool(struct ljp_push *push,
                           const struct ljp_push_command *c)
{
  static struct ljp_spool spool;
  char why[256], *path = NULL;
  int code = LJP_EXIT_FAILED;
  if (!c->spool && c->follow && asprintf(&path, "%s/.push", c->follow) < 0)
    path = NULL;
  const char *dir = c->spool ? c->spool : path;
  if (!dir && !c->follow)
    return push_run(push, c);
  if (dir && !ljp_spool_open(&spool, dir, c->budget, push->options.engine, why,
                             sizeof why)) {
    ljp_command_error("push", "the spool '%s': %s", dir, why);
  } else if (dir) {
    push->spool = &spool;
    spool.strict = push->options.skip_doubtful;
    if (spool.journal.damaged)
      ljp_command_note("push",
                       "the journal of '%s' has %" PRIu64
                       " damaged records: files may be sent twice",
                       dir, spool.journal.damaged);
    code = push_run(push, c);
    ljp_spool_close(&spool);
  }
  free(path);
  return code;
}

static void push_look_at_token(const struct ljp_push *push)
{
  struct stat st;
  const char *file = push->http.token_file;
  if (file && !stat(file, &st) && S_ISREG(st.st_mode) && st.st_mode & S_IROTH)
    ljp_command_note("push",
                     "the token file '%s' can be read by all users: it should "
                     "have mode 600",
                     file);
}

int ljp_command_push(int argc, char **argv)
{
  static struct ljp_push push;
  struct ljp_push_command c = {0};
  const char *why;
  int code = ljp_push_options(argc, argv, &push, &c);
  if (code < 0 && getrandom(&push.seed, sizeof push.seed, 0) < 0)
    push.seed = ljp_push_now_ms();
  push.seed |= 1;
  if (code < 0 && !ljp_http_open(&push.http, &why)) {
    ljp_command_error("push", "'%s': %s", c.url, why);
    code = LJP_EXIT_USAGE;
  } else if (code < 0) {
    push_look_at_token(&push);
    code = push_with_spool(&push, &c);
    ljp_http_close(&push.http);
  }
  free((void *)c.words);
  return code;
}
