/*
** Figures in Prometheus' text format. Names end with their base unit, those of
** counters with _total.
*/
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tools/exporter/exporter.h"
#include "tools/join/running.h"

/* Why events were lost, as a label. */
static const char *const text_losses[LJP_LOSS_COUNT] = {"unknown",
#define LJP_X(name, number, text) [number] = #name,
                                                        LJP_LOSS_LIST(LJP_X)
#undef LJP_X
};

static void text_head(struct ljp_print *out, const char *name, const char *type,
                      const char *help)
{
  ljp_print_format(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

/* The name of a program's file as a label's value. Its arguments may be secret. */
static void text_program_name(struct ljp_print *out, const char *command)
{
  const char *end = command + strcspn(command, " "), *at = end;
  while (at > command && at[-1] != '/')
    at--;
  for (; at < end; at++) {
    unsigned char c = (unsigned char)*at;
    if (c == '"' || c == '\\')
      ljp_print_raw(out, "\\", 1);
    ljp_print_raw(out, c < ' ' || c > '~' ? "?" : at, 1);
  }
}

/* 1234567890 ns as 1.23456789. */
static void text_seconds(struct ljp_print *out, uint64_t ns)
{
  ljp_print_format(out, "%" PRIu64 ".%09" PRIu64, ns / 1000000000,
                   ns % 1000000000);
}

static void text_labels(struct ljp_print *out, const char *name,
                        const struct ljp_exporter_session *s)
{
  ljp_print_format(
      out, "%s{service=\"%s\",pid=\"%" PRIu64 "\",session=\"%016" PRIx64 "\"",
      name, s->service, s->pid, s->stream);
}

enum text_unit { COUNT, SECONDS };

/* One figure of each session. pick returns it; *none: it is not known. */
static void
text_each(const struct ljp_exporter *e, struct ljp_print *out, const char *name,
          const char *type, const char *help, enum text_unit unit,
          uint64_t (*pick)(const struct ljp_exporter_session *s, bool *none))
{
  bool begun = false;
  for (size_t i = 0; i < e->count; i++) {
    const struct ljp_exporter_session *s = e->sessions[i];
    bool none = false;
    uint64_t n = s->shown ? pick(s, &none) : 0;
    if (!s->shown || none)
      continue;
    if (!begun)
      text_head(out, name, type, help);
    begun = true;
    text_labels(out, name, s);
    ljp_print_str(out, "} ");
    if (unit == SECONDS)
      text_seconds(out, n);
    else
      ljp_print_dec(out, n);
    ljp_print_str(out, "\n");
  }
}

/* Sessions: name, type, unit, help, figure, when it is not known. */
#define TEXT_FIGURES(_)                                                        \
  _(session_running, gauge, COUNT,                                             \
    "Whether the session's process is alive and records.", !s->ended_s, false) \
  _(session_start_time_seconds, gauge, COUNT,                                  \
    "When the session began, in seconds since 1970.", s->start_s, false)       \
  _(samples_total, counter, COUNT, "Samples of CPU or elapsed time.",          \
    s->now.samples, false)                                                     \
  _(memory_events_total, counter, COUNT,                                       \
    "Events of memory: sampled allocations, reallocations, frees.",            \
    s->now.memory_events, false)                                               \
  _(process_cpu_seconds_total, counter, SECONDS,                               \
    "CPU time that the process used during the session.",                      \
    s->now.sum[LJP_SUM_CPU_NS], false)                                         \
  _(sampled_cpu_seconds_total, counter, SECONDS,                               \
    "CPU time that samples stand for.", s->now.sum[LJP_SUM_SAMPLED_NS], false) \
  _(unsampled_cpu_seconds_total, counter, SECONDS,                             \
    "CPU time of the program that no sample stands for.",                      \
    s->now.sum[LJP_SUM_UNSAMPLED_NS], false)                                   \
  _(gc_cpu_seconds_total, counter, SECONDS,                                    \
    "CPU time of samples in the garbage collector; its share is that of "      \
    "ljprof_sampled_cpu_seconds_total.",                                       \
    s->now.sum[LJP_SUM_GC_NS], false)                                          \
  _(overhead_threads_cpu_seconds_total, counter, SECONDS,                      \
    "CPU time of the profiler's own threads.", s->now.sum[LJP_SUM_THREADS_NS], \
    false)                                                                     \
  _(overhead_hooks_cpu_seconds_total, counter, SECONDS,                        \
    "CPU time of samples in the profiler's hooks.",                            \
    s->now.sum[LJP_SUM_HOOKS_NS], false)                                       \
  _(heap_bytes, gauge, COUNT,                                                  \
    "Lua heaps of the process, at the last phase of each collector.",          \
    s->now.heap_bytes, !s->now.vms || s->ended_s)                              \
  _(sample_interval_seconds, gauge, SECONDS,                                   \
    "Time between two samples of CPU time; it grows if the overhead is too "   \
    "large.",                                                                  \
    s->now.interval_ns, !s->now.interval_ns || s->ended_s)                     \
  _(damaged_places_total, counter, COUNT,                                      \
    "Damaged places in the session's files.", s->now.sum[LJP_SUM_DAMAGE],      \
    false)

#define LJP_X(name, type, unit, help, figure, unknown)                         \
  static uint64_t text_##name(const struct ljp_exporter_session *s,            \
                              bool *none)                                      \
  {                                                                            \
    *none = (unknown);                                                         \
    return (figure);                                                           \
  }
TEXT_FIGURES(LJP_X)
#undef LJP_X

static void text_losses_of(const struct ljp_exporter *e, struct ljp_print *out)
{
  static const char name[] = "ljprof_lost_events_total";
  char word[32];
  text_head(out, name, "counter", "Samples and events that were lost.");
  for (size_t i = 0; i < e->count; i++)
    for (int k = 0; e->sessions[i]->shown && k < LJP_LOSS_COUNT; k++) {
      const struct ljp_exporter_session *s = e->sessions[i];
      /* One is always there, so that a rate is known from the beginning on. */
      if (!s->now.lost[k] && k != LJP_LOSS_RING_FULL)
        continue;
      size_t n = 0;
      for (const char *p = text_losses[k]; *p && n + 1 < sizeof word; p++)
        word[n++] = *p >= 'A' && *p <= 'Z' ? (char)(*p + 32) : *p;
      word[n] = '\0';
      text_labels(out, name, s);
      ljp_print_format(out, ",reason=\"%s\"} %" PRIu64 "\n", word,
                       s->now.lost[k]);
    }
}

/* -- The store -------------------------------------------------------------- */

static void text_stores(const struct ljp_exporter *e, struct ljp_print *out,
                        const char *name, const char *help, bool bytes)
{
  const struct ljp_store *store = &e->store;
  text_head(out, name, "gauge", help);
  for (size_t i = 0; i < store->count;) {
    const char *service = store->segments[i].made.service;
    uint64_t sum = 0;
    for (; i < store->count &&
           strcmp(store->segments[i].made.service, service) == 0;
         i++)
      sum += bytes ? store->segments[i].bytes : 1;
    if (*service)
      ljp_print_format(out, "%s{service=\"%s\"} %" PRIu64 "\n", name, service,
                       sum);
  }
}

/* -- Programs, as in ljprof list -------------------------------------------- */

struct text_programs {
  struct ljp_print *out;
  int figure; /* 0: VMs, 1: sessions. */
};

static void text_session(struct ljp_print *out, const struct ljp_running *r,
                         const char *kind, bool runs)
{
  ljp_print_format(out, "ljprof_program_sessions{pid=\"%d\",program=\"",
                   (int)r->pid);
  text_program_name(out, r->command);
  ljp_print_format(out, "\",kind=\"%s\"} %d\n", kind, runs);
}

static void text_program(void *ctx, const struct ljp_running *r)
{
  const struct text_programs *t = ctx;
  if (!r->known)
    return;
  if (t->figure) {
    text_session(t->out, r, "cpu", r->sessions & LJP_SHOWN_CPU);
    text_session(t->out, r, "memory", r->sessions & LJP_SHOWN_MEMORY);
    return;
  }
  ljp_print_format(t->out, "ljprof_program_vms{pid=\"%d\",program=\"",
                   (int)r->pid);
  text_program_name(t->out, r->command);
  ljp_print_format(t->out, "\"} %" PRIu32 "\n", r->vms);
}

void ljp_exporter_put_text(const struct ljp_exporter *e, struct ljp_print *out)
{
  unsigned hidden;
#define LJP_X(name, type, unit, help, figure, unknown)                         \
  text_each(e, out, "ljprof_" #name, #type, help, unit, text_##name);
  TEXT_FIGURES(LJP_X)
#undef LJP_X
  text_losses_of(e, out);
  text_stores(e, out, "ljprof_store_bytes",
              "Bytes of the service's files in the store.", true);
  text_stores(e, out, "ljprof_store_files", "The service's files in the store.",
              false);
  text_head(out, "ljprof_store_unreadable_files", "gauge",
            "Files in the store that cannot be read.");
  ljp_print_format(out, "ljprof_store_unreadable_files %" PRIu64 "\n",
                   e->unreadable);
  struct text_programs t = {.out = out};
  text_head(out, "ljprof_program_vms", "gauge",
            "VMs of a program that runs the library, recorded or not.");
  ljp_running_each(text_program, &t, &hidden);
  t.figure = 1;
  text_head(out, "ljprof_program_sessions", "gauge",
            "Whether a session of this kind runs in the program.");
  ljp_running_each(text_program, &t, &hidden);
}
