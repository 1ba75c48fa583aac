/*
** The state file: a line for each session with the sums of its complete segments.
** A word and its value in turn; unknown words are passed over.
*/
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/exporter/exporter.h"

static const char state_head[] = "ljprof-exporter 1";

static const char *const state_sums[] = {
#define LJP_X(id, name) name,
    LJP_EXPORTER_SUMS(LJP_X)
#undef LJP_X
};

static void state_put(struct ljp_print *out, const char *word, uint64_t n)
{
  if (n)
    ljp_print_format(out, " %s %" PRIu64, word, n);
}

void ljp_exporter_put_state(const struct ljp_exporter *e, struct ljp_print *out)
{
  char word[32];
  ljp_print_format(out, "%s\n", state_head);
  for (size_t i = 0; i < e->count; i++) {
    const struct ljp_exporter_session *s = e->sessions[i];
    ljp_print_format(out, "session %" PRIu64 " service %s", s->stream,
                     *s->service ? s->service : "x");
    state_put(out, "pid", s->pid);
    state_put(out, "start", s->start_s);
    state_put(out, "ended", s->ended_s);
    state_put(out, "next", s->done.next_seq);
    state_put(out, "samples", s->done.samples);
    state_put(out, "memory_events", s->done.memory_events);
    state_put(out, "heap_bytes", s->done.heap_bytes);
    state_put(out, "vms", s->done.vms);
    state_put(out, "interval_ns", s->done.interval_ns);
    for (int k = 0; k < LJP_SUM_COUNT; k++)
      state_put(out, state_sums[k], s->done.sum[k]);
    for (int k = 0; k < LJP_LOSS_COUNT; k++) {
      snprintf(word, sizeof word, "lost.%d", k);
      state_put(out, word, s->done.lost[k]);
    }
    ljp_print_str(out, "\n");
  }
}

/* Digits only, and within 64 bits. */
static bool state_number(const char *text, uint64_t *n)
{
  *n = 0;
  for (const char *p = text; *p; p++) {
    if (*p < '0' || *p > '9' || *n > (UINT64_MAX - 9) / 10)
      return false;
    *n = *n * 10 + (uint64_t)(*p - '0');
  }
  return *text != '\0';
}

/* Where the number of this word belongs; NULL: nowhere. */
static uint64_t *state_place(struct ljp_exporter_session *s, const char *word)
{
  struct ljp_exporter_sums *d = &s->done;
  const struct {
    const char *word;
    uint64_t *place;
  } places[] = {{"pid", &s->pid},
                {"start", &s->start_s},
                {"ended", &s->ended_s},
                {"next", &d->next_seq},
                {"samples", &d->samples},
                {"memory_events", &d->memory_events},
                {"heap_bytes", &d->heap_bytes},
                {"vms", &d->vms},
                {"interval_ns", &d->interval_ns}};
  for (size_t i = 0; i < sizeof places / sizeof *places; i++)
    if (strcmp(word, places[i].word) == 0)
      return places[i].place;
  for (int k = 0; k < LJP_SUM_COUNT; k++)
    if (strcmp(word, state_sums[k]) == 0)
      return &d->sum[k];
  uint64_t reason;
  return strncmp(word, "lost.", 5) == 0 && state_number(word + 5, &reason) &&
                 reason < LJP_LOSS_COUNT
             ? &d->lost[reason]
             : NULL;
}

static bool state_line(struct ljp_exporter *e, char *line)
{
  struct ljp_exporter_session *s = NULL;
  char *save = NULL, *word;
  uint64_t n;
  for (word = strtok_r(line, " ", &save); word;
       word = strtok_r(NULL, " ", &save)) {
    const char *value = strtok_r(NULL, " ", &save);
    if (!value || (!s && strcmp(word, "session") != 0))
      return false;
    if (s && strcmp(word, "service") == 0) {
      if (!ljp_store_service_valid(value))
        return false;
      ljp_store_service_copy(s->service, value);
      continue;
    }
    if (!state_number(value, &n) || (!s && !n))
      return false;
    if (!s) {
      s = ljp_exporter_session(e, n);
      if (!s || *s->service) /* There are too many, or it is there twice. */
        return false;
      continue;
    }
    uint64_t *place = state_place(s, word);
    if (place)
      *place = n;
  }
  return s && *s->service;
}

bool ljp_exporter_parse_state(struct ljp_exporter *e, char *text)
{
  char *save = NULL, *line = strtok_r(text, "\n", &save);
  bool good = line && strcmp(line, state_head) == 0;
  while (good && (line = strtok_r(NULL, "\n", &save)) != NULL)
    good = state_line(e, line);
  if (!good)
    ljp_exporter_forget(e);
  return good;
}
