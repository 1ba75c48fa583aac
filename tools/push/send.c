/*
** Sends requests, waits between attempts, and notes the outcomes.
**
** Waits double from attempt to attempt and are random within their upper half, so
** that the pushers of a fleet do not come back at the same moment.
*/
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <time.h>

#include "tools/push/push.h"

#define SEND_WAIT_MOST_MS UINT64_C(60000)

static volatile sig_atomic_t send_stop; /* A signal asks the command to end. */

static void send_signal(int number)
{
  (void)number;
  send_stop = 1;
}

void ljp_push_catch_signals(void)
{
  struct sigaction action = {.sa_handler = send_signal};
  sigemptyset(&action.sa_mask);
  sigaction(SIGTERM, &action, NULL);
  sigaction(SIGINT, &action, NULL);
}

bool ljp_push_stopped(void)
{
  return send_stop;
}

bool ljp_push_sleep(uint64_t ms)
{
  sigset_t all, old;
  struct timespec t = {(time_t)(ms / 1000), (long)(ms % 1000) * 1000000};
  sigemptyset(&all);
  sigaddset(&all, SIGTERM);
  sigaddset(&all, SIGINT);
  /* A signal between the look and the wait must not be missed. */
  sigprocmask(SIG_BLOCK, &all, &old);
  if (!send_stop)
    pselect(0, NULL, NULL, NULL, &t, &old);
  sigprocmask(SIG_SETMASK, &old, NULL);
  return !send_stop;
}

uint64_t ljp_push_now_ms(void)
{
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static uint64_t send_random(struct ljp_push *push)
{
  push->seed ^= push->seed << 13;
  push->seed ^= push->seed >> 7;
  push->seed ^= push->seed << 17;
  return push->seed;
}

/* wrong: it takes a person to mend that, so the waits are long at once. */
static uint64_t send_wait(struct ljp_push *push, uint64_t least_ms, bool wrong)
{
  enum { WRONG = 60 }; /* Times the first wait. */
  uint64_t wait = push->options.first_wait_ms * (wrong ? WRONG : 1);
  for (uint64_t i = 0; !wrong && i < push->waits && wait < SEND_WAIT_MOST_MS;
       i++)
    wait *= 2;
  if (wait > SEND_WAIT_MOST_MS)
    wait = SEND_WAIT_MOST_MS;
  wait = wait / 2 + send_random(push) % (wait / 2 + 1);
  push->waits++;
  if (least_ms)
    wait += least_ms;
  return wait ? wait : 1;
}

/* Notes an outcome; without a spool there is nothing to note. */
static void send_note(struct ljp_push *push, const struct ljp_request *r,
                      enum ljp_journal_what what)
{
  if (push->spool && !push->error)
    push->error = ljp_spool_note(push->spool, r, what);
}

static void send_outcome(struct ljp_push *push, const struct ljp_request *r,
                         const struct ljp_verdict *v)
{
  push->waits = 0;
  switch (v->kind) {
  case LJP_VERDICT_SENT:
    ljp_push_tell_recovery(push);
    push->sent++;
    push->sent_bytes += r->len;
    send_note(push, r, LJP_JOURNAL_SENT);
    return;
  case LJP_VERDICT_REFUSED:
    ljp_push_tell_recovery(push);
    push->refused++;
    ljp_command_error("push", "%s: %s", r->source, v->text);
    send_note(push, r, LJP_JOURNAL_REFUSED);
    return;
  case LJP_VERDICT_UNKNOWN:
    push->doubtful++;
    ljp_command_error("push",
                      "%s: %s; the server may have it, so it is not sent again",
                      r->source, v->text);
    send_note(push, r, LJP_JOURNAL_DOUBTFUL);
    return;
  default:
    push->wrong = true;
    send_note(push, r, LJP_JOURNAL_TAKEN); /* The server has nothing of it. */
    ljp_command_error("push", "%s: %s", push->http.url, v->text);
  }
}

/* Whether a request has kept the others waiting for long enough, although the
** server is there: then it waits in the spool, and the others go. */
static bool send_sets_aside(struct ljp_push *push, const struct ljp_request *r,
                            bool answered, const char *why)
{
  enum { ATTEMPTS = 5 };
  const uint64_t now_ms = ljp_push_now_ms();
  if (!answered || !push->spool) {
    push->answers = 0;
    return false;
  }
  if (!push->answers++)
    push->answered_ms = now_ms;
  bool again = ljp_spool_is_aside(push->spool, r->number);
  if (!again && (push->answers < ATTEMPTS ||
                 now_ms - push->answered_ms < push->options.aside_ms))
    return false;
  if (!again) {
    push->aside++;
    ljp_command_error("push",
                      "%s: %s, %" PRIu64 " times: it is set aside, and "
                      "others go first",
                      r->source, why, push->answers);
  }
  ljp_spool_set_aside(push->spool, r->number, now_ms + push->options.aside_ms);
  push->attempts = push->answers = push->waits = 0;
  return true;
}

uint64_t ljp_push_send(struct ljp_push *push, const struct ljp_request *r)
{
  static struct ljp_answer answer;
  struct timespec now;
  const struct ljp_journal_entry *entry =
      push->spool ? ljp_journal_find(&push->spool->journal, r->id) : NULL;
  bool tried = entry && entry->what == LJP_JOURNAL_TRYING;
  struct ljp_verdict v = {.kind = LJP_VERDICT_UNKNOWN,
                          .text = "an earlier ljprof push was ended while it "
                                  "sent this"};
  /* Of an earlier process: of ours, each attempt has an outcome. */
  if (tried && !push->attempts && push->options.skip_doubtful) {
    send_outcome(push, r, &v);
    return 0;
  }
  if (!tried)
    send_note(push, r, LJP_JOURNAL_TRYING);
  if (push->error)
    return 0;
  push->attempts++;
  ljp_http_send(&push->http, r->body, r->len, &answer);
  clock_gettime(CLOCK_REALTIME, &now);
  v = ljp_answer_judge(&answer, push->options.engine, (int64_t)now.tv_sec);
  const bool wrong = v.kind == LJP_VERDICT_WRONG && push->follows;
  if (wrong || v.kind == LJP_VERDICT_RETRY ||
      (v.kind == LJP_VERDICT_UNKNOWN && !push->options.skip_doubtful)) {
    /* The journal says TRYING only while the server may have it. */
    if (v.kind != LJP_VERDICT_UNKNOWN && !tried)
      send_note(push, r, LJP_JOURNAL_TAKEN);
    if (send_sets_aside(push, r, !wrong && answer.exchange == LJP_EXCHANGE_DONE,
                        v.text))
      return 0;
    ljp_push_tell_trouble(push, v.text, wrong);
    return send_wait(push, v.wait_ms, wrong);
  }
  push->attempts = push->answers = 0;
  send_outcome(push, r, &v);
  return 0;
}

void ljp_push_send_due(struct ljp_push *push)
{
  struct ljp_request r;
  uint64_t wait = 0;
  if (!push->spool || ljp_push_now_ms() < push->next_send_ms)
    return;
  while (!wait && !push->wrong && !push->error && !send_stop &&
         ljp_spool_next(push->spool, ljp_push_now_ms(), &r)) {
    wait = ljp_push_send(push, &r);
    free(r.body);
  }
  push->next_send_ms = wait ? ljp_push_now_ms() + wait : 0;
}
