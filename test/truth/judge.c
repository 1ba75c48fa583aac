/*
** Compares a profile with the truth: for each part of a program, the share of
** time that the program measured and the share of the samples' weight.
**
**   truth_judge [--samples COUNT] POINTS FILE TABLE
**
** TABLE has a line "part<TAB>seconds<TAB>frame" for each part. A frame matches
** a part if its text begins with the part's `frame`, or lies in it if that is a
** range of addresses ("file+0x1a0..1f4"). A sample belongs to the part that its
** innermost matching frame matches. A sample without a matching frame belongs
** to the last line, whose `frame` is empty. Exit code 1: a share is off by more
** than POINTS percentage points, or the weights (with the time that the stream
** tells of the profiler's own thread) differ from the CPU time by more than
** POINTS percent, or there are fewer than COUNT samples.
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
  const char *name, *frame;
  double seconds;
  uint64_t weight, samples;
};

static struct part truth_parts[PARTS];
static int truth_part_count;

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
    *seconds = *frame = 0;
    part->name = part->line;
    part->seconds = strtod(seconds + 1, NULL);
    part->frame = frame + 1;
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

static struct part *truth_part_of(const struct ljp_reader *reader,
                                  uint64_t stack)
{
  const struct ljp_rec_node *frames[LJP_STACK_MAX_FRAMES];
  unsigned count;
  char text[LINE];
  ljp_model_stack(&reader->model, stack, frames, &count);
  for (unsigned i = 0; i < count; i++) {
    struct ljp_frame_refs view;
    ljp_frame_resolve(&reader->model, frames[i], &view);
    ljp_frame_text(&reader->model, &view, text, sizeof text);
    for (int k = 0; k < truth_part_count - 1; k++)
      if (truth_begins_with(text, truth_parts[k].frame))
        return &truth_parts[k];
  }
  return &truth_parts[truth_part_count - 1];
}

/* own_ns: CPU time of the profiler's thread, a part of the program's. */
static double truth_compare(uint64_t samples, uint64_t own_ns)
{
  double truth = 0, told = 0, worst = 0;
  for (int i = 0; i < truth_part_count; i++) {
    truth += truth_parts[i].seconds;
    told += (double)truth_parts[i].weight / 1e9;
  }
  printf("%-16s %8s %8s %8s %8s\n", "part", "truth %", "told %", "points",
         "samples");
  for (int i = 0; i < truth_part_count; i++) {
    double is = 100 * truth_parts[i].seconds / truth;
    double said =
        told > 0 ? 100 * (double)truth_parts[i].weight / 1e9 / told : 0;
    printf("%-16s %8.2f %8.2f %+8.2f %8" PRIu64 "\n", truth_parts[i].name, is,
           said, said - is, truth_parts[i].samples);
    if (fabs(said - is) > worst)
      worst = fabs(said - is);
  }
  double own = (double)own_ns / 1e9;
  double off = 100 * ((told + own) / truth - 1);
  printf(
      "worst part %.2f points; %.3f s of CPU time, samples stand for %.3f s, "
      "and %.3f s were the profiler's thread's (%+.2f %%); %" PRIu64
      " samples\n",
      worst, truth, told, own, off, samples);
  return fabs(off) > worst ? fabs(off) : worst;
}

int main(int argc, char **argv)
{
  static struct ljp_reader reader;
  const struct ljp_item *event;
  uint64_t samples = 0, own_ns = 0, wanted = 1;
  if (argc > 3 && strcmp(argv[1], "--samples") == 0) {
    wanted = strtoull(argv[2], NULL, 10);
    argv += 2;
    argc -= 2;
  }
  if (argc != 4) {
    fprintf(stderr, "usage: truth_judge [--samples COUNT] POINTS FILE TABLE\n");
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
    struct part *part = truth_part_of(&reader, event->u.sample.stack);
    part->weight += event->u.sample.weight;
    part->samples++;
    samples++;
  }
  if (status) {
    fprintf(stderr, "truth_judge: %s: %s\n", argv[2], reader.error);
    return 1;
  }
  double worst = truth_compare(samples, own_ns);
  ljp_reader_fini(&reader);
  return samples >= wanted && worst <= strtod(argv[1], NULL) ? 0 : 1;
}
