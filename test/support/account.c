/*
** The accounting: checks that each stream that has its END adds up to what the
** process itself counted. CPU time: the weights of all samples, the time
** without samples and the time of lost samples are the CPU time of the process,
** within 2 % or 20 ms. Elapsed time: the weights of a thread's samples and its
** time without samples are the time that the thread was in the session, within
** 2 % or 20 ms; that is not longer than the session. Memory: if every event is
** recorded, the growth that each VM reports for its heap is the sum of that
** VM's events, to the byte. (This does not apply if events were lost, or if a
** NOTE says that the program has replaced an allocator.)
**
** Usage: account PATH...; folders are searched for streams. Prints a line for
** each stream that has figures of its process. Exit code 1: a stream does not
** add up.
*/
#include <ftw.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "parsers/stream/balance.h"
#include "parsers/stream/elapsed.h"
#include "parsers/stream/growth.h"

static struct {
  unsigned streams, wrong;
} counts;

/* Whether a file begins as a stream does. */
static bool account_is_stream(const char *path)
{
  static const unsigned char sync[] = {0x89, 'L', 'J', 'P'};
  unsigned char begin[sizeof sync];
  FILE *f = fopen(path, "rb");
  bool is = f && fread(begin, sizeof begin, 1, f) == 1 &&
            memcmp(begin, sync, sizeof sync) == 0;
  if (f)
    fclose(f);
  return is;
}

/* Whether the reader came to the end of a whole session. (A file segment tells
** of a part.) */
static bool account_is_whole(const struct ljp_reader *reader)
{
  const struct ljp_finish *f = &reader->finish;
  return f->clean && f->closed == LJP_CLOSED_END && !f->status && !f->gaps &&
         !f->bad_records;
}

static void account_cpu_time(const char *path, const struct ljp_balance *b)
{
  char text[LJP_BALANCE_TEXT_BYTES], used[LJP_BALANCE_TIME_BYTES];
  int64_t ns = ljp_balance_difference(b);
  if (!b->told)
    return;
  counts.streams++;
  printf("account: %s: CPU time %s, %s%s (%.1f %%) not explained\n", path,
         ljp_balance_time(b->used_ns, used), ns < 0 ? "-" : "",
         ljp_balance_time((uint64_t)llabs(ns), text),
         b->used_ns ? 100.0 * (double)ns / (double)b->used_ns : 0);
  if (!ljp_balance_off(b))
    return;
  counts.wrong++;
  fprintf(stderr, "FAILED: accounting: %s: %s\n", path,
          ljp_balance_off_text(b, text));
  for (unsigned why = 0; why < LJP_UNSAMPLED_COUNT; why++)
    if (ljp_balance_text(b, LJP_PRODUCER_CPU, why, text))
      fprintf(stderr, "  %s\n", text);
}

/* Prints a line for the thread whose balance is off most. */
static void account_elapsed(const char *path, const struct ljp_elapsed *e)
{
  char lived[LJP_BALANCE_TIME_BYTES], far[LJP_BALANCE_TIME_BYTES];
  uint64_t told = 0, wrong = 0;
  const struct ljp_elapsed_thread *worst = NULL;
  for (uint32_t i = 0; i < e->count; i++) {
    const struct ljp_elapsed_thread *t = &e->threads[i];
    told += t->told;
    wrong += ljp_elapsed_off(t);
    if (t->told && (!worst || llabs(ljp_elapsed_difference(t)) >
                                  llabs(ljp_elapsed_difference(worst))))
      worst = t;
  }
  if (!worst)
    return;
  int64_t ns = ljp_elapsed_difference(worst);
  counts.streams++;
  printf("account: %s: elapsed time of %" PRIu64 " threads: at most %s%s of %s "
         "not explained\n",
         path, told, ns < 0 ? "-" : "",
         ljp_balance_time((uint64_t)llabs(ns), far),
         ljp_balance_time(worst->lived_ns, lived));
  if (!wrong)
    return;
  counts.wrong++;
  fprintf(stderr,
          "FAILED: accounting: %s: %" PRIu64 " threads; thread %" PRIu64
          " was there for %" PRIu64 " ns, its samples tell of %" PRIu64
          " ns, %" PRIu64 " ns were not sampled\n",
          path, wrong, worst->id, worst->lived_ns, worst->sampled_ns,
          worst->unsampled_ns);
}

static void account_memory(const char *path, const struct ljp_growth *g)
{
  const struct ljp_growth_sums sums = ljp_growth_sums(g);
  if (!sums.comparable)
    return;
  counts.streams++;
  printf("account: %s: memory of %" PRIu64 " VMs: %" PRId64 " bytes, %" PRId64
         " by the events\n",
         path, sums.followed, sums.counted, sums.events);
  if (!sums.unequal)
    return;
  counts.wrong++;
  fprintf(stderr,
          "FAILED: accounting: %s: %" PRIu64 " VMs (the first has id %" PRIu64
          ") grew by %" PRId64 " bytes, by their events by %" PRId64 "\n",
          path, sums.unequal, sums.first_unequal, sums.counted, sums.events);
}

/* When the session began, and the elapsed time that lies before that. */
struct before {
  uint64_t began_ns, thread, ns;
};

static void account_take_before(struct before *b, const struct ljp_item *item)
{
  enum { SLACK_NS = 20000000 };
  const struct ljp_rec_elapsed *e = &item->u.elapsed;
  if (item->what == LJP_REC_PROCESS &&
      (!b->began_ns || item->u.process.anchor_mono_ns < b->began_ns))
    b->began_ns = item->u.process.anchor_mono_ns;
  if (item->what != LJP_REC_ELAPSED || !b->began_ns)
    return;
  if (e->ns > b->ns && e->ns > e->time_ns - b->began_ns + SLACK_NS) {
    b->ns = e->ns;
    b->thread = e->thread;
  }
}

static void account_before(const char *path, const struct before *b)
{
  if (!b->ns)
    return;
  counts.wrong++;
  fprintf(stderr,
          "FAILED: accounting: %s: thread %" PRIu64 " was there for %" PRIu64
          " ns, longer than the session\n",
          path, b->thread, b->ns);
}

/* Whether an item says that events may be missing. */
static bool account_excuses(const struct ljp_item *item)
{
  return item->what == LJP_REC_LOSS ||
         (item->what == LJP_REC_NOTE &&
          item->u.note.severity == LJP_NOTE_ERROR);
}

static int account_file(const char *path, const struct stat *st, int type,
                        struct FTW *at)
{
  static struct ljp_reader reader;
  const struct ljp_item *item;
  struct ljp_balance balance;
  struct ljp_growth growth = {0};
  struct ljp_elapsed elapsed = {0};
  struct before before = {0};
  bool excused = false;
  (void)at;
  if (type != FTW_F || !S_ISREG(st->st_mode) || !account_is_stream(path))
    return 0;
  ljp_balance_init(&balance);
  enum ljp_status status = ljp_reader_open(&reader, path);
  while (!status && !(status = ljp_reader_next(&reader, &item)) &&
         item->what != LJP_ITEM_FINISH) {
    excused = excused || account_excuses(item);
    account_take_before(&before, item);
    status = ljp_balance_take(&balance, &reader.model, item, 0);
    status = status ? status : ljp_growth_take(&growth, item);
    status = status ? status : ljp_elapsed_take(&elapsed, &reader.model, item);
  }
  if (!status)
    status = ljp_balance_finish(&balance, &reader.model, 0);
  if (!status && account_is_whole(&reader))
    account_cpu_time(path, &balance);
  if (!status && account_is_whole(&reader))
    account_elapsed(path, &elapsed);
  if (!status && account_is_whole(&reader))
    account_before(path, &before);
  if (!status && account_is_whole(&reader) && !excused)
    account_memory(path, &growth);
  ljp_balance_fini(&balance);
  ljp_growth_fini(&growth);
  ljp_elapsed_fini(&elapsed);
  ljp_reader_fini(&reader);
  return 0;
}

int main(int argc, char **argv)
{
  for (int i = 1; i < argc; i++)
    if (nftw(argv[i], account_file, 16, FTW_PHYS))
      perror(argv[i]);
  return counts.wrong != 0;
}
