/*
** Compares a profile with the truth: for each part of a program, the share of
** time that the program measured and the share of the samples' weight.
**
**   truth_judge [--samples COUNT] [--looks NS] [--stall NS] POINTS FILE TABLE
**
** TABLE has a line "part<TAB>seconds<TAB>frame[<TAB>thread]" for each part. A
** frame matches a part if its text begins with the part's `frame`, or lies in
** it if that is a range of addresses ("file+0x1a0..1f4"). A sample belongs to
** the part that its innermost matching frame matches. A sample without a
** matching frame belongs to the last line, whose `frame` is empty. Parts with
** the same `thread`, a name of threads, are a group: only samples of these
** threads that match a frame belong to it, and shares are shares of the group.
**
** Exit code 1: a share is off by more than POINTS percentage points, or there
** are fewer than COUNT samples, or the weights (with the time that the stream
** tells of the profiler's own thread) differ from the time by more than POINTS
** percent (not those of a group: the program measures a part of the session).
**
** With --looks, samples are random looks, one in NS ns of each thread. Then
** four standard deviations of a share are added to POINTS, and so is the share
** of the line "ready", the time for which threads of the group were ready to
** run, but had no CPU: the place of such a thread cannot be seen.
**
** With --stall, a sample that stands for more than NS ns shows that the machine
** stood still: clocks ran on, even the thread's CPU clock, but no signal came (a
** virtual machine that has lost its CPU). What such samples stand for beyond NS,
** at most a tenth of the time, is added to POINTS as a share.
*/
#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "parsers/stream/frame_text.h"
#include "parsers/stream/names.h"
#include "parsers/stream/reader.h"

enum { PARTS = 32, LINE = 512 };

struct part {
  char line[LINE];
  const char *name, *frame, *thread; /* thread: "" is any */
  double seconds;
  uint64_t weight, samples, waiting;
};

static struct part truth_parts[PARTS];
static int truth_part_count;
static uint64_t truth_stalled_ns;

static bool truth_read_table(const char *path)
{
  FILE *in = fopen(path, "r");
  if (!in)
    return false;
  while (truth_part_count < PARTS &&
         fgets(truth_parts[truth_part_count].line, LINE, in)) {
    struct part *part = &truth_parts[truth_part_count];
    part->line[strcspn(part->line, "\n")] = 0;
    char *seconds = strchr(part->line, '\t');
    char *frame = seconds ? strchr(seconds + 1, '\t') : NULL;
    if (!frame)
      break;
    char *thread = strchr(frame + 1, '\t');
    *seconds = *frame = 0;
    if (thread)
      *thread = 0;
    part->name = part->line;
    part->seconds = strtod(seconds + 1, NULL);
    part->frame = frame + 1;
    part->thread = thread ? thread + 1 : "";
    truth_part_count++;
  }
  fclose(in);
  return truth_part_count > 1;
}

/* "file:12" does not begin with "file:1". */
static bool truth_begins_with(const char *text, const char *frame)
{
  size_t n = strlen(frame);
  const char *plus = strchr(frame, '+'), *dots = strstr(frame, "..");
  if (plus && dots && dots > plus) {
    char *end;
    uint64_t low = strtoull(plus + 1, NULL, 16);
    uint64_t high = strtoull(dots + 2, NULL, 16);
    uint64_t at = strlen(text) > (size_t)(plus - frame)
                      ? strtoull(text + (plus - frame) + 1, &end, 16)
                      : 0;
    return strncmp(text, frame, (size_t)(plus - frame) + 1) == 0 && at >= low &&
           at < high;
  }
  return strncmp(text, frame, n) == 0 &&
         !(n && isdigit((unsigned char)frame[n - 1]) &&
           isdigit((unsigned char)text[n]));
}

static bool truth_is_ready(const struct part *part)
{
  return strcmp(part->name, "ready") == 0;
}

/* The name of the thread whose samples are in the item's block. */
static const char *truth_thread(const struct ljp_reader *reader,
                                const struct ljp_item *item, char text[LINE])
{
  const struct ljp_rec_producer *producer =
      ljp_model_producer(&reader->model, item->block->head.producer);
  const struct ljp_rec_thread *thread =
      producer ? ljp_model_thread(&reader->model, producer->thread) : NULL;
  snprintf(text, LINE, "%.*s", thread ? (int)thread->name.len : 0,
           thread ? thread->name.data : "");
  return text;
}

/* NULL: a sample of a thread that has no parts. */
static struct part *truth_part_of(const struct ljp_reader *reader,
                                  const struct ljp_item *item)
{
  const struct ljp_rec_node *frames[LJP_STACK_MAX_NODES];
  unsigned count;
  char text[LINE], thread[LINE];
  struct part *rest = NULL;
  truth_thread(reader, item, thread);
  ljp_model_stack(&reader->model, item->u.sample.stack, frames, &count);
  for (unsigned i = 0; i <= count; i++) {
    struct ljp_frame_refs view;
    text[0] = 0;
    if (i < count) {
      ljp_frame_resolve(&reader->model, frames[i], &view);
      ljp_frame_text(&reader->model, &view, text, sizeof text);
    }
    for (int k = 0; k < truth_part_count; k++) {
      struct part *part = &truth_parts[k];
      if (truth_is_ready(part) ||
          (part->thread[0] && strcmp(part->thread, thread) != 0))
        continue;
      if (!part->frame[0])
        rest = part;
      else if (i < count && truth_begins_with(text, part->frame))
        return part;
    }
  }
  return rest;
}

/* Prints a group's figures. own: seconds of the profiler's thread, a part of
** the program's CPU time; look: seconds between two looks, or 0. Returns how
** far the worst part is off, beyond what is due to chance. */
static double truth_compare(const char *thread, double own, double look)
{
  double truth = 0, told = 0, worst = 0, ready = 0;
  uint64_t samples = 0;
  for (int i = 0; i < truth_part_count; i++) {
    if (strcmp(truth_parts[i].thread, thread) != 0)
      continue;
    if (truth_is_ready(&truth_parts[i])) {
      ready = truth_parts[i].seconds;
      continue;
    }
    truth += truth_parts[i].seconds;
    told += (double)truth_parts[i].weight / 1e9;
    samples += truth_parts[i].samples;
  }
  printf("%-16s %8s %8s %8s %8s %8s %8s\n", thread[0] ? thread : "part",
         "truth %", "told %", "points", "chance", "samples", "waiting %");
  for (int i = 0; i < truth_part_count; i++) {
    if (strcmp(truth_parts[i].thread, thread) != 0 ||
        truth_is_ready(&truth_parts[i]))
      continue;
    double is = truth_parts[i].seconds / truth;
    double said = told > 0 ? (double)truth_parts[i].weight / 1e9 / told : 0;
    double off = 100 * fabs(said - is);
    double chance = 100 * sqrt(is * (1 - is) * look / truth);
    printf("%-16s %8.2f %8.2f %+8.2f %8.2f %8" PRIu64 " %8.2f\n",
           truth_parts[i].name, 100 * is, 100 * said, 100 * (said - is), chance,
           truth_parts[i].samples,
           told > 0 ? 100 * (double)truth_parts[i].waiting / 1e9 / told : 0);
    if (look > 0)
      off -= 4 * chance + 100 * ready / truth;
    off -= 100 * fmin((double)truth_stalled_ns / 1e9 / truth, 0.1);
    worst = off > worst ? off : worst;
  }
  printf("ready %.2f %% ", 100 * ready / truth);
  double off = 100 * ((told + own) / truth - 1);
  printf("worst part %.2f points beyond chance; %.3f s, samples stand for %.3f "
         "s, and %.3f s "
         "were the profiler's thread's (%+.2f %%); %" PRIu64 " samples\n",
         worst, truth, told, own, off, samples);
  if (truth_stalled_ns)
    printf("for %.3f s the machine stood still\n",
           (double)truth_stalled_ns / 1e9);
  return !thread[0] && fabs(off) > worst ? fabs(off) : worst;
}

/* The worst of all groups. */
static double truth_compare_all(double own, double look)
{
  double worst = 0;
  for (int i = 0; i < truth_part_count; i++) {
    bool first = true;
    for (int k = 0; k < i; k++)
      first &= strcmp(truth_parts[k].thread, truth_parts[i].thread) != 0;
    double off = first ? truth_compare(truth_parts[i].thread, own, look) : 0;
    worst = off > worst ? off : worst;
  }
  return worst;
}

int main(int argc, char **argv)
{
  static struct ljp_reader reader;
  const struct ljp_item *event;
  uint64_t samples = 0, own_ns = 0, wanted = 1;
  uint64_t stall_ns = UINT64_MAX;
  double look_ns = 0;
  while (argc > 3 && argv[1][0] == '-') {
    if (strcmp(argv[1], "--samples") == 0)
      wanted = strtoull(argv[2], NULL, 10);
    else if (strcmp(argv[1], "--looks") == 0)
      look_ns = strtod(argv[2], NULL);
    else if (strcmp(argv[1], "--stall") == 0)
      stall_ns = strtoull(argv[2], NULL, 10);
    argv += 2;
    argc -= 2;
  }
  if (argc != 4) {
    fprintf(stderr, "usage: truth_judge [--samples COUNT] [--looks NS] "
                    "[--stall NS] POINTS FILE TABLE\n");
    return 2;
  }
  if (!truth_read_table(argv[3])) {
    fprintf(stderr, "truth_judge: %s is no table\n", argv[3]);
    return 2;
  }
  enum ljp_status status = ljp_reader_open(&reader, argv[2]);
  while (!status && !(status = ljp_reader_next(&reader, &event)) &&
         event->what != LJP_ITEM_FINISH) {
    if (event->what == LJP_REC_UNSAMPLED &&
        event->u.unsampled.why == LJP_UNSAMPLED_WRITER)
      own_ns += event->u.unsampled.ns;
    if (event->what != LJP_REC_SAMPLES)
      continue;
    struct part *part = truth_part_of(&reader, event);
    if (!part)
      continue;
    part->weight += event->u.sample.weight;
    part->samples++;
    if (event->u.sample.weight > stall_ns)
      truth_stalled_ns += event->u.sample.weight - stall_ns;
    if (event->u.sample.state == LJP_VMSTATE_WAITING)
      part->waiting += event->u.sample.weight;
    samples++;
  }
  if (status) {
    fprintf(stderr, "truth_judge: %s: %s\n", argv[2], reader.error);
    return 1;
  }
  double worst = truth_compare_all((double)own_ns / 1e9, look_ns / 1e9);
  ljp_reader_fini(&reader);
  return samples >= wanted && worst <= strtod(argv[1], NULL) ? 0 : 1;
}
