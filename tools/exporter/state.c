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

/* Before each word of the sums up to the file that was being written. */
static const char state_part[] = "part.";

static void state_put(struct ljp_print *out, const char *word, uint64_t n)
{
  if (n)
    ljp_print_format(out, " %s %" PRIu64, word, n);
}

/* prefix: of each word. */
static void state_put_sums(struct ljp_print *out, const char *prefix,
                           const struct ljp_exporter_sums *sums)
{
  char word[64];
  const struct {
    const char *word;
    uint64_t n;
  } counts[] = {{"next", sums->next_seq},
                {"samples", sums->samples},
                {"memory_events", sums->memory_events},
                {"heap_bytes", sums->heap_bytes},
                {"vms", sums->vms},
                {"interval_ns", sums->interval_ns}};
  for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
    snprintf(word, sizeof word, "%s%s", prefix, counts[i].word);
    state_put(out, word, counts[i].n);
  }
  for (int k = 0; k < LJP_SUM_COUNT; k++) {
    snprintf(word, sizeof word, "%s%s", prefix, state_sums[k]);
    state_put(out, word, sums->sum[k]);
  }
  for (int k = 0; k < LJP_LOSS_COUNT; k++) {
    snprintf(word, sizeof word, "%slost.%d", prefix, k);
    state_put(out, word, sums->lost[k]);
  }
}

void ljp_exporter_put_state(const struct ljp_exporter *e, struct ljp_print *out)
{
  ljp_print_format(out, "%s\n", state_head);
  for (size_t i = 0; i < e->count; i++) {
    const struct ljp_exporter_session *s = e->sessions[i];
    ljp_print_format(out, "session %" PRIu64 " service %s", s->stream,
                     *s->service ? s->service : "x");
    state_put(out, "pid", s->pid);
    state_put(out, "start", s->start_s);
    state_put(out, "ended", s->ended_s);
    state_put_sums(out, "", &s->done);
    if (s->part_from) {
      state_put(out, "part_from", s->part_from);
      state_put_sums(out, state_part, &s->part);
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
static uint64_t *state_sums_place(struct ljp_exporter_sums *d, const char *word)
{
  const struct {
    const char *word;
    uint64_t *place;
  } places[] = {{"next", &d->next_seq},
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

static uint64_t *state_place(struct ljp_exporter_session *s, const char *word)
{
  const size_t part = sizeof state_part - 1;
  if (strcmp(word, "pid") == 0)
    return &s->pid;
  if (strcmp(word, "start") == 0)
    return &s->start_s;
  if (strcmp(word, "ended") == 0)
    return &s->ended_s;
  if (strcmp(word, "part_from") == 0)
    return &s->part_from;
  return strncmp(word, state_part, part) == 0
             ? state_sums_place(&s->part, word + part)
             : state_sums_place(&s->done, word);
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
