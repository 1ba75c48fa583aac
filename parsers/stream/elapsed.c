/*
** Sums up the elapsed time of threads; see elapsed.h.
*/
#include "parsers/stream/elapsed.h"

#include <stdlib.h>

#include "parsers/base/array.h"

void ljp_elapsed_fini(struct ljp_elapsed *e)
{
  free(e->threads);
  ljp_index_fini(&e->index);
  *e = (struct ljp_elapsed){0};
}

/* *out: NULL if there are too many threads. */
static enum ljp_status elapsed_thread(struct ljp_elapsed *e, uint64_t id,
                                      struct ljp_elapsed_thread **out)
{
  *out = NULL;
  if (!ljp_index_reserve(&e->index) ||
      !ljp_array_reserve(&e->threads, e->count, &e->room, sizeof *e->threads))
    return LJP_ERR_MEM;
  uint32_t hash = ljp_hash_finish(ljp_hash_mix(0, id));
  struct ljp_index_slot *slot = ljp_index_at(&e->index, hash);
  for (; slot->item; slot = ljp_index_next(&e->index, slot))
    if (slot->hash == hash && e->threads[slot->item - 1].id == id) {
      *out = &e->threads[slot->item - 1];
      return LJP_OK;
    }
  if (e->count >= LJP_ELAPSED_MAX_THREADS)
    return LJP_OK;
  ljp_index_put(&e->index, slot, hash, e->count);
  *out = &e->threads[e->count++];
  **out = (struct ljp_elapsed_thread){.id = id};
  return LJP_OK;
}

/* The thread whose elapsed time the samples of the item's block are of. */
static uint64_t elapsed_block_thread(struct ljp_elapsed *e,
                                     const struct ljp_model *model,
                                     const struct ljp_item *item)
{
  if (!e->block_known) {
    const struct ljp_rec_producer *p =
        ljp_model_producer(model, item->block->head.producer);
    e->block_thread = p && p->kind == LJP_PRODUCER_WALL ? p->thread : 0;
    e->block_known = true;
  }
  return e->block_thread;
}

enum ljp_status ljp_elapsed_take(struct ljp_elapsed *e,
                                 const struct ljp_model *model,
                                 const struct ljp_item *item)
{
  struct ljp_elapsed_thread *t = NULL;
  enum ljp_status status = LJP_OK;
  uint64_t id = 0;
  switch (item->what) {
  case LJP_ITEM_BLOCK:
  case LJP_REC_PRODUCER:
    e->block_known = false;
    return LJP_OK;
  case LJP_REC_SAMPLES:
    id = elapsed_block_thread(e, model, item);
    break;
  case LJP_REC_UNSAMPLED:
    if (item->u.unsampled.kind == LJP_PRODUCER_WALL)
      id = item->u.unsampled.thread;
    break;
  case LJP_REC_ELAPSED:
    id = item->u.elapsed.thread;
    break;
  }
  if (!id || (status = elapsed_thread(e, id, &t)) != LJP_OK || !t)
    return status;
  if (item->what == LJP_REC_SAMPLES) {
    t->sampled_ns += item->u.sample.weight;
  } else if (item->what == LJP_REC_UNSAMPLED) {
    t->unsampled_ns += item->u.unsampled.ns;
  } else {
    t->told = true;
    t->lived_ns += item->u.elapsed.ns;
  }
  return LJP_OK;
}

int64_t ljp_elapsed_difference(const struct ljp_elapsed_thread *t)
{
  return t->told ? (int64_t)(t->lived_ns - t->sampled_ns - t->unsampled_ns) : 0;
}

bool ljp_elapsed_off(const struct ljp_elapsed_thread *t)
{
  int64_t ns = ljp_elapsed_difference(t);
  uint64_t far = (uint64_t)(ns < 0 ? -ns : ns);
  return far > UINT64_C(20000000) && far > t->lived_ns / 50;
}
