/*
** Judges the memory events of a storm: the file is whole, no event is lost,
** every stack was walked to its root, and for each VM the bytes in use at the
** start, plus the allocated bytes, minus the freed ones, are the bytes in use
** at the end.
**
**   storm_heap [--deep] [--sampled] FILE...
**
** --deep: stacks cut at the depth limit are complete, too. --sampled: the file
** does not have every event, so the sum is not checked.
*/
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "parsers/stream/names.h"
#include "parsers/stream/reader.h"

enum { VMS = 64, CUTS = 256 };

struct heap {
  bool seen;
  uint64_t first, last;
  int64_t sum;
};

struct verdict {
  uint64_t events, torn, wrong, failed;
  uint64_t cut[CUTS];
  struct heap heaps[VMS];
};

static void heap_check_stack(struct verdict *v, const struct ljp_reader *reader,
                             uint64_t id)
{
  const struct ljp_rec_node *frames[LJP_STACK_MAX_NODES];
  unsigned count;
  if (ljp_model_stack(&reader->model, id, frames, &count) == LJP_STACK_LOST)
    v->torn++;
  else if (count && frames[count - 1]->kind == LJP_FRAME_CUT)
    v->cut[frames[count - 1]->value % CUTS]++;
}

static void heap_take_memory(struct verdict *v, const struct ljp_reader *reader,
                             const struct ljp_rec_mem *m)
{
  v->events++;
  if (m->vm >= VMS || !v->heaps[m->vm].seen) {
    v->wrong++;
    return;
  }
  if (!(m->flags & LJP_MEM_SWEPT))
    heap_check_stack(v, reader, m->stack);
  if (m->flags & LJP_MEM_FAILED)
    v->failed++;
  else if (m->op == LJP_MEM_FREE)
    v->heaps[m->vm].sum -= (int64_t)m->size;
  else
    v->heaps[m->vm].sum += (int64_t)m->size - (int64_t)m->old_size;
}

static void heap_take_phase(struct verdict *v, const struct ljp_rec_gc *gc)
{
  struct heap *heap = &v->heaps[gc->vm % VMS];
  if (!heap->seen)
    heap->first = gc->heap_bytes;
  heap->seen = true;
  heap->last = gc->heap_bytes;
}

/* Prints the lost memory events with their reasons; returns their number. */
static uint64_t heap_print_losses(const struct ljp_reader *reader)
{
  uint64_t sum = 0;
  for (size_t i = 0; i < reader->tally.loss_count; i++) {
    const struct ljp_tally_loss *loss = &reader->tally.losses[i];
    const struct ljp_rec_producer *producer =
        ljp_model_producer(&reader->model, loss->producer);
    if (loss->overrun || !loss->count ||
        (producer && producer->kind != LJP_PRODUCER_MEMORY))
      continue;
    const char *why = ljp_name_loss(loss->reason);
    printf("lost by \"%s\" %" PRIu64 ", ", why ? why : "?", loss->count);
    sum += loss->count;
  }
  return sum;
}

static bool heap_judge_file(const char *path, bool deep, bool sampled)
{
  static struct ljp_reader reader;
  struct verdict v = {0};
  const struct ljp_item *event;
  enum ljp_status status = ljp_reader_open(&reader, path);
  while (!status && !(status = ljp_reader_next(&reader, &event)) &&
         event->what != LJP_ITEM_FINISH) {
    if (event->what == LJP_REC_MEM)
      heap_take_memory(&v, &reader, &event->u.mem);
    else if (event->what == LJP_REC_GC)
      heap_take_phase(&v, &event->u.gc);
  }
  if (status) {
    printf("storm_heap: %s: %s\n", path, reader.error);
    return false;
  }
  const struct ljp_finish *finish = &event->u.finish;
  bool clean = finish->clean && finish->closed == LJP_CLOSED_END &&
               !finish->gaps && !finish->bad_records;
  uint64_t losses = heap_print_losses(&reader), cut = 0;
  int64_t difference = 0;
  printf("memory events %" PRIu64 ", lost %" PRIu64, v.events, losses);
  for (unsigned i = 0; i < CUTS; i++) {
    if (!v.cut[i])
      continue;
    printf(", cut by \"%s\" %" PRIu64, ljp_name_cut(i) ? ljp_name_cut(i) : "?",
           v.cut[i]);
    if (!deep || i != LJP_CUT_DEPTH)
      cut += v.cut[i];
  }
  for (unsigned i = 0; i < VMS; i++) {
    const struct heap *h = &v.heaps[i];
    int64_t here = (int64_t)(h->last - h->first) - h->sum;
    if (!h->seen)
      continue;
    printf(", heap %" PRIu64 " %+" PRId64 " = %" PRIu64, h->first, h->sum,
           h->last);
    difference |= sampled ? 0 : here;
  }
  printf(", failed %" PRIu64 ", torn %" PRIu64 ", of no VM %" PRIu64
         ", %s end\n",
         v.failed, v.torn, v.wrong, clean ? "clean" : "UNCLEAN");
  ljp_reader_fini(&reader);
  return clean && v.events && !losses && !cut && !v.torn && !v.wrong &&
         !difference;
}

int main(int argc, char **argv)
{
  bool deep = argc > 1 && strcmp(argv[1], "--deep") == 0, good = true;
  int at = 1 + deep;
  bool sampled = argc > at && strcmp(argv[at], "--sampled") == 0;
  at += sampled;
  if (argc <= at) {
    fprintf(stderr, "usage: storm_heap [--deep] [--sampled] FILE...\n");
    return 2;
  }
  for (int i = at; i < argc; i++)
    good = heap_judge_file(argv[i], deep, sampled) && good;
  return good ? 0 : 1;
}
