/*
** Judges the storm of traces: no sample may name a function of a generation
** that was not running at that time, nor a chain of callers that the program
** cannot have.
**
**   traces_judge SAMPLES FILE LOG
**
** LOG has a line "letter number began ended" (ns) for each run of a generation.
** Only one generation of each letter runs at a time. Its functions are
** LETTER_leaf_NUMBER, LETTER_mid_NUMBER and LETTER_outer_NUMBER. Only mid calls
** leaf, and only outer calls mid. A trace may begin in each of them. The exit
** code is also 1 if fewer than SAMPLES samples name such a function, or if no
** sample is in a trace.
*/
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "parsers/stream/frame_text.h"
#include "parsers/stream/names.h"
#include "parsers/stream/reader.h"

enum { LETTERS = 2, TEXT = 512, SHOWN = 10 };

struct run {
  uint64_t number, began, ended;
};
static struct run *runs[LETTERS];
static size_t run_count[LETTERS], run_room[LETTERS];

static bool traces_read_log(const char *path)
{
  FILE *in = fopen(path, "r");
  struct run run;
  char letter;
  if (!in)
    return false;
  while (fscanf(in, " %c %" SCNu64 " %" SCNu64 " %" SCNu64, &letter,
                &run.number, &run.began, &run.ended) == 4) {
    unsigned k = letter == 'b';
    if (run_count[k] == run_room[k]) {
      run_room[k] = run_room[k] ? run_room[k] * 2 : 1024;
      runs[k] = realloc(runs[k], run_room[k] * sizeof *runs[k]);
      if (!runs[k])
        exit(1);
    }
    runs[k][run_count[k]++] = run;
  }
  fclose(in);
  return run_count[0] && run_count[1];
}

/* The generation that ran at this time, or NULL. */
static const struct run *traces_run_at(unsigned k, uint64_t time_ns)
{
  size_t low = 0, high = run_count[k];
  while (low < high) {
    size_t mid = (low + high) / 2;
    if (runs[k][mid].ended < time_ns)
      low = mid + 1;
    else
      high = mid;
  }
  if (low == run_count[k] || runs[k][low].began > time_ns)
    return NULL;
  return &runs[k][low];
}

/* A function of a generation. */
struct named {
  unsigned letter;
  uint64_t number;
  int level; /* 0 leaf, 1 mid, 2 outer */
};

static bool traces_parse_name(struct ljp_str name, struct named *named)
{
  static const char *const levels[] = {"_leaf_", "_mid_", "_outer_"};
  char text[64], *end;
  if (name.len < 8 || name.len >= sizeof text)
    return false;
  memcpy(text, name.data, name.len);
  text[name.len] = '\0';
  if (*text != 'a' && *text != 'b')
    return false;
  for (int i = 0; i < 3; i++)
    if (strncmp(text + 1, levels[i], strlen(levels[i])) == 0) {
      named->letter = *text == 'b';
      named->level = i;
      named->number = strtoull(text + 1 + strlen(levels[i]), &end, 10);
      return *end == '\0';
    }
  return false;
}

static uint64_t samples, with_names, in_traces, inexact, unknown, stale, wrong;

static void traces_print_stack(const struct ljp_reader *reader,
                               const struct ljp_rec_node *const *frames,
                               unsigned count, uint64_t time_ns,
                               const char *what)
{
  char text[TEXT];
  if (stale + wrong > SHOWN)
    return;
  printf("%s at %" PRIu64 ":\n", what, time_ns);
  for (unsigned i = 0; i < count; i++) {
    struct ljp_frame_refs view;
    ljp_frame_resolve(&reader->model, frames[i], &view);
    ljp_frame_text(&reader->model, &view, text, sizeof text);
    printf("  %s (flags %u)\n", text, frames[i]->flags);
  }
}

static void traces_check_sample(const struct ljp_reader *reader,
                                const struct ljp_rec_sample *sample,
                                uint64_t time_ns)
{
  const struct ljp_rec_node *frames[LJP_STACK_MAX_NODES];
  unsigned count;
  struct named last[LETTERS] = {{.level = -1}, {.level = -1}};
  bool any = false, trace = false, loose = false, old = false, odd = false;
  ljp_model_stack(&reader->model, sample->stack, frames, &count);
  for (unsigned i = 0; i < count; i++) {
    struct ljp_frame_refs view;
    const struct ljp_rec_proto *proto;
    struct named named;
    ljp_frame_resolve(&reader->model, frames[i], &view);
    proto = view.proto;
    if (view.trace)
      proto = ljp_model_proto(&reader->model, view.trace->proto);
    if (frames[i]->kind == LJP_FRAME_LUA_INLINED && !frames[i]->ref)
      unknown++;
    if (!proto || !traces_parse_name(proto->name, &named))
      continue;
    const struct run *run = traces_run_at(named.letter, time_ns);
    any = true;
    loose |= (frames[i]->flags & LJP_FRAME_EXACT_MASK) != 0;
    old |= !run || run->number != named.number;
    if (view.trace) {
      trace = true;
      continue;
    }
    struct named *before = &last[named.letter];
    odd |= before->level >= 0 &&
           (before->number != named.number || before->level + 1 != named.level);
    *before = named;
  }
  for (unsigned k = 0; k < LETTERS; k++)
    odd |= last[k].level >= 0 && last[k].level != 2;
  samples++;
  with_names += any;
  in_traces += trace;
  inexact += loose;
  stale += old;
  wrong += odd;
  if (old || odd)
    traces_print_stack(reader, frames, count, time_ns,
                       old ? "stale name" : "wrong chain");
}

int main(int argc, char **argv)
{
  static struct ljp_reader reader;
  const struct ljp_item *event;
  uint64_t made = 0, flushed = 0, given_up = 0;
  if (argc != 4) {
    fprintf(stderr, "usage: traces_judge SAMPLES FILE LOG\n");
    return 2;
  }
  if (!traces_read_log(argv[3])) {
    fprintf(stderr, "traces_judge: %s is no log of both VMs\n", argv[3]);
    return 2;
  }
  enum ljp_status status = ljp_reader_open(&reader, argv[2]);
  while (!status && !(status = ljp_reader_next(&reader, &event)) &&
         event->what != LJP_ITEM_FINISH) {
    if (event->what == LJP_REC_SAMPLES)
      traces_check_sample(&reader, &event->u.sample, event->time_ns);
    if (event->what == LJP_REC_TRACE_EVENT) {
      made += event->u.trace_event.action == LJP_TRACE_STOP;
      flushed += event->u.trace_event.action == LJP_TRACE_FLUSH;
      given_up += event->u.trace_event.action == LJP_TRACE_ABORT;
    }
  }
  if (status) {
    fprintf(stderr, "traces_judge: %s: %s\n", argv[2], reader.error);
    return 1;
  }
  printf("%zu runs of generations, %" PRIu64 " traces made, %" PRIu64
         " given up, %" PRIu64 " flushes; samples %" PRIu64
         ", with names %" PRIu64 ", in their traces %" PRIu64
         ", less exact %" PRIu64 ", inlined functions not known %" PRIu64
         "; stale names %" PRIu64 ", wrong chains %" PRIu64 "\n",
         run_count[0] + run_count[1], made, given_up, flushed, samples,
         with_names, in_traces, inexact, unknown, stale, wrong);
  ljp_reader_fini(&reader);
  return stale || wrong || !in_traces || !made ||
         with_names < strtoull(argv[1], NULL, 10);
}
