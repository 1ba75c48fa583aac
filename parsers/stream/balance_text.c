/*
** Sentences on the balance of CPU time, for people; see balance.h.
*/
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "parsers/stream/balance.h"
#include "parsers/stream/names.h"

enum { THREADS_SHOWN = 6 };

const char *ljp_balance_time(uint64_t ns, char text[LJP_BALANCE_TIME_BYTES])
{
  double ms = (double)ns / 1e6;
  if (ms >= 999.95)
    snprintf(text, LJP_BALANCE_TIME_BYTES, "%.3f s", ms / 1e3);
  else
    snprintf(text, LJP_BALANCE_TIME_BYTES, "%.*f ms", ms < 9.995 ? 2 : 1, ms);
  return text;
}

struct balance_writer {
  char *text;
  size_t at;
};

__attribute__((format(printf, 2, 3))) static void
balance_write(struct balance_writer *w, const char *format, ...)
{
  va_list args;
  va_start(args, format);
  int n =
      vsnprintf(w->text + w->at, LJP_BALANCE_TEXT_BYTES - w->at, format, args);
  va_end(args);
  if (n > 0)
    w->at += (size_t)n;
  if (w->at >= LJP_BALANCE_TEXT_BYTES)
    w->at = LJP_BALANCE_TEXT_BYTES - 1;
}

/* The threads of a reason, the largest first. */
static void balance_write_threads(const struct ljp_balance *b, unsigned kind,
                                  unsigned why, struct balance_writer *w)
{
  char time[LJP_BALANCE_TIME_BYTES];
  const struct ljp_balance_gap *top[THREADS_SHOWN];
  uint32_t shown = 0, count = 0;
  uint64_t rest_ns = 0;
  for (uint32_t i = 0; i < b->gap_count; i++) {
    const struct ljp_balance_gap *gap = &b->gaps[i];
    if (gap->kind != kind || gap->why != why)
      continue;
    if (!gap->thread) {
      rest_ns += gap->ns;
      continue;
    }
    count++;
    uint32_t at = shown < THREADS_SHOWN ? shown++ : THREADS_SHOWN;
    for (; at && top[at - 1]->ns < gap->ns; at--)
      if (at < THREADS_SHOWN)
        top[at] = top[at - 1];
    if (at < THREADS_SHOWN)
      top[at] = gap;
  }
  for (uint32_t i = 0; i < shown; i++) {
    balance_write(w, "%sthread %" PRIu64, i ? ", " : " (", top[i]->thread);
    if (top[i]->name_bytes)
      balance_write(w, " \"%.*s\"", (int)top[i]->name_bytes, top[i]->name);
    balance_write(w, " %s", ljp_balance_time(top[i]->ns, time));
  }
  if (count > shown)
    balance_write(w, " and %" PRIu32 " more", count - shown);
  if (shown && rest_ns && why == LJP_UNSAMPLED_NOT_FOUND)
    balance_write(w, ", %s before the first look or in threads that had ended",
                  ljp_balance_time(rest_ns, time));
  if (shown)
    balance_write(w, ")");
}

/* The time of a reason; *all: all time of its kind that is the program's. */
static uint64_t balance_sum(const struct ljp_balance *b, unsigned kind,
                            unsigned why, uint64_t *all)
{
  uint64_t sum = 0;
  *all = kind == LJP_PRODUCER_CPU ? b->sampled_ns : b->wall_ns;
  for (uint32_t i = 0; i < b->gap_count; i++)
    if (b->gaps[i].kind == kind) {
      *all += b->gaps[i].why == LJP_UNSAMPLED_WRITER ? 0 : b->gaps[i].ns;
      sum += b->gaps[i].why == why ? b->gaps[i].ns : 0;
    }
  return sum;
}

bool ljp_balance_matters(const struct ljp_balance *b, unsigned kind,
                         unsigned why)
{
  uint64_t all, ns = balance_sum(b, kind, why, &all);
  return why != LJP_UNSAMPLED_WRITER && ns &&
         (ns >= UINT64_C(100000000) || ns >= all / 100);
}

const char *ljp_balance_text(const struct ljp_balance *b, unsigned kind,
                             unsigned why, char text[LJP_BALANCE_TEXT_BYTES])
{
  char time[LJP_BALANCE_TIME_BYTES];
  struct balance_writer w = {.text = text};
  const char *reason = ljp_name_unsampled(why);
  uint64_t all, sum = balance_sum(b, kind, why, &all);
  if (!sum)
    return NULL;
  balance_write(&w, "%s of %s time (%.1f %%) not sampled: %s",
                ljp_balance_time(sum, time),
                kind == LJP_PRODUCER_CPU ? "CPU" : "elapsed",
                all ? 100.0 * (double)sum / (double)all : 0,
                reason ? reason : "for a reason that is not known");
  balance_write_threads(b, kind, why, &w);
  return text;
}

const char *ljp_balance_off_text(const struct ljp_balance *b,
                                 char text[LJP_BALANCE_TEXT_BYTES])
{
  char used[LJP_BALANCE_TIME_BYTES], difference[LJP_BALANCE_TIME_BYTES];
  int64_t ns = ljp_balance_difference(b);
  ljp_balance_time(b->used_ns, used);
  ljp_balance_time((uint64_t)(ns < 0 ? -ns : ns), difference);
  if (ns < 0)
    snprintf(
        text, LJP_BALANCE_TEXT_BYTES,
        "the process used %s of CPU time, %s less than the file accounts for",
        used, difference);
  else
    snprintf(text, LJP_BALANCE_TEXT_BYTES,
             "%s of the %s of CPU time that the process used are neither "
             "sampled nor explained",
             difference, used);
  return text;
}
