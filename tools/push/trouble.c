/*
** What is said about a server that does not take requests: a line when that begins,
** one now and then while it lasts, and one when it is over. Lines for short troubles
** that follow each other are far apart, too.
*/
#include <inttypes.h>

#include "tools/push/push.h"

/* In first waits: with the default of --retry, a minute and ten minutes. */
enum { APART = 60, REPEAT = 600 };

void ljp_push_tell_trouble(struct ljp_push *push, const char *text, bool wrong)
{
  struct ljp_push_trouble *t = &push->trouble;
  const uint64_t now_ms = ljp_push_now_ms();
  const uint64_t quiet_ms = t->told_ms ? now_ms - t->told_ms : UINT64_MAX;
  const uint64_t first_ms = push->options.first_wait_ms;
  if (!t->attempts++)
    t->since_ms = now_ms;
  if (wrong && !t->wrong)
    ljp_command_error("push", "%s: %s; trying again, with long pauses",
                      push->http.url, text);
  else if (!t->told && quiet_ms >= APART * first_ms)
    ljp_command_note("push", "%s: %s; trying again", push->http.url, text);
  else if (t->told && quiet_ms >= REPEAT * first_ms)
    ljp_command_note(
        "push",
        "%s: %s; still trying, after %" PRIu64 " attempts in %" PRIu64 " s",
        push->http.url, text, t->attempts, (now_ms - t->since_ms) / 1000);
  else
    return;
  t->told = true;
  t->wrong |= wrong;
  t->told_ms = now_ms;
}

void ljp_push_tell_recovery(struct ljp_push *push)
{
  struct ljp_push_trouble *t = &push->trouble;
  if (t->told)
    ljp_command_note(
        "push",
        "%s: takes profiles again, after %" PRIu64 " attempts in %" PRIu64 " s",
        push->http.url, t->attempts, (ljp_push_now_ms() - t->since_ms) / 1000);
  *t = (struct ljp_push_trouble){.told_ms = t->told_ms};
}
