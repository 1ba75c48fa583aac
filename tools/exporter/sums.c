/*
** The figures of one file segment.
*/
#include <string.h>

#include "tools/exporter/exporter.h"

enum { MAX_VMS = 1024 };

/* The heaps of VMs, as the last GC record of each says. */
struct heaps {
  uint64_t vm[MAX_VMS], bytes[MAX_VMS];
  size_t count;
};

static void sums_take_heap(struct heaps *h, const struct ljp_rec_gc *gc)
{
  size_t i = 0;
  while (i < h->count && h->vm[i] != gc->vm)
    i++;
  if (gc->phase == LJP_GC_CLOSED) {
    if (i < h->count) {
      h->count--;
      h->vm[i] = h->vm[h->count];
      h->bytes[i] = h->bytes[h->count];
    }
    return;
  }
  if (i == MAX_VMS)
    return;
  h->count += i == h->count;
  h->vm[i] = gc->vm;
  h->bytes[i] = gc->heap_bytes;
}

static bool sums_is_cpu(const struct ljp_model *model,
                        const struct ljp_item *item)
{
  const struct ljp_rec_producer *p =
      ljp_model_producer(model, item->block->head.producer);
  return p && p->kind == LJP_PRODUCER_CPU;
}

static void sums_take_sample(struct ljp_exporter_sums *s,
                             const struct ljp_model *model,
                             const struct ljp_item *item)
{
  const struct ljp_rec_sample *sample = &item->u.sample;
  if (!sums_is_cpu(model, item))
    return;
  s->sum[LJP_SUM_SAMPLED_NS] += sample->weight;
  if (sample->state == LJP_VMSTATE_GC)
    s->sum[LJP_SUM_GC_NS] += sample->weight;
  const struct ljp_rec_node *leaf = ljp_model_node(model, sample->stack);
  for (unsigned depth = 0; leaf && depth < LJP_STACK_MAX_NODES; depth++) {
    if (leaf->kind == LJP_FRAME_PROFILER) {
      s->sum[LJP_SUM_HOOKS_NS] += sample->weight;
      return;
    }
    leaf = leaf->up && leaf->up < leaf->id
               ? ljp_model_node(model, leaf->id - leaf->up)
               : NULL;
  }
}

static void sums_take(struct ljp_exporter_sums *s, struct heaps *heaps,
                      const struct ljp_model *model,
                      const struct ljp_item *item)
{
  switch (item->what) {
  case LJP_REC_SAMPLES:
    sums_take_sample(s, model, item);
    break;
  case LJP_REC_CPU_TIME:
    s->sum[LJP_SUM_CPU_NS] += item->u.cpu_time.ns;
    break;
  case LJP_REC_UNSAMPLED:
    if (item->u.unsampled.kind == LJP_PRODUCER_CPU)
      s->sum[item->u.unsampled.why == LJP_UNSAMPLED_WRITER
                 ? LJP_SUM_THREADS_NS
                 : LJP_SUM_UNSAMPLED_NS] += item->u.unsampled.ns;
    break;
  case LJP_REC_GC:
    sums_take_heap(heaps, &item->u.gc);
    break;
  case LJP_REC_PRODUCER:
    if (item->u.producer.kind == LJP_PRODUCER_CPU)
      s->interval_ns = item->u.producer.interval;
    break;
  case LJP_REC_INTERVAL:
    if (sums_is_cpu(model, item))
      s->interval_ns = item->u.interval.interval;
    break;
  case LJP_ITEM_BLOCK:
    s->next_seq = item->block->head.seq + 1;
    break;
  case LJP_ITEM_BAD:
    s->sum[LJP_SUM_DAMAGE]++;
    break;
  case LJP_ITEM_GAP: /* A process that was killed leaves such an end. */
    s->sum[LJP_SUM_DAMAGE] += item->u.gap.reason != LJP_GAP_CUT;
    break;
  default:
    break;
  }
}

/* The stream's own counts, which are of the whole session. */
static void sums_take_tally(struct ljp_exporter_sums *s,
                            const struct ljp_tally *tally)
{
  s->samples = tally->before[LJP_REC_SAMPLES] + tally->read[LJP_REC_SAMPLES] +
               tally->swallowed[LJP_REC_SAMPLES];
  s->memory_events = tally->before[LJP_REC_MEM] + tally->read[LJP_REC_MEM] +
                     tally->swallowed[LJP_REC_MEM];
  uint64_t lost[LJP_LOSS_COUNT] = {0};
  for (size_t i = 0; i < tally->loss_count; i++)
    if (!tally->losses[i].overrun)
      lost[tally->losses[i].reason < LJP_LOSS_COUNT ? tally->losses[i].reason
                                                    : 0] +=
          tally->losses[i].count;
  /* A producer that has ended is missing in later segments. */
  for (unsigned i = 0; i < LJP_LOSS_COUNT; i++)
    if (lost[i] > s->lost[i])
      s->lost[i] = lost[i];
}

bool ljp_exporter_read(const struct ljp_store *store,
                       const struct ljp_segment *segment,
                       struct ljp_exporter_sums *sums)
{
  static struct ljp_reader reader;
  static struct heaps heaps;
  const struct ljp_item *item;
  heaps.count = 0;
  enum ljp_status status = ljp_store_read(store, segment, &reader, NULL);
  while (!status && !(status = ljp_reader_next(&reader, &item)) &&
         item->what != LJP_ITEM_FINISH)
    sums_take(sums, &heaps, &reader.model, item);
  if (!status) {
    sums_take_tally(sums, &reader.tally);
    if (heaps.count)
      sums->heap_bytes = 0;
    for (size_t i = 0; i < heaps.count; i++)
      sums->heap_bytes += heaps.bytes[i];
    sums->vms = heaps.count ? heaps.count : sums->vms;
  }
  ljp_reader_fini(&reader);
  return !status;
}
