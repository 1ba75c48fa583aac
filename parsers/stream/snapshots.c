/*
** See snapshots.h.
*/
#include "parsers/stream/snapshots.h"

#include "src/base/heap_format.h"

bool ljp_snapshot_is_whole(const struct ljp_snapshot *n)
{
  return n->begins && n->ends && n->objects == n->end.objects &&
         n->refs == n->end.refs && n->bytes == n->end.bytes;
}

static void snapshots_close(struct ljp_snapshots *s)
{
  if (!s->open)
    return;
  s->open = false;
  if (ljp_snapshot_is_whole(&s->now))
    return;
  s->incomplete++;
  s->missing(s->ctx, &s->now);
}

/* Makes the snapshot of this id the current one. */
static void snapshots_open(struct ljp_snapshots *s, uint64_t id)
{
  if (s->open && s->now.id == id)
    return;
  snapshots_close(s);
  s->open = true;
  s->now = (struct ljp_snapshot){.id = id};
  for (unsigned i = 0; i < s->moment_count; i++)
    if (s->moments[i].snapshot == id)
      s->moments[i--] = s->moments[--s->moment_count];
}

static void snapshots_begin(struct ljp_snapshots *s,
                            const struct ljp_rec_heap *head)
{
  snapshots_close(s);
  snapshots_open(s, head->snapshot);
  s->now.number = ++s->begun;
  s->now.begins = true;
  s->now.vm = head->vm;
  s->now.head = *head;
}

static void snapshots_object(struct ljp_snapshots *s,
                             const struct ljp_rec_object *o)
{
  snapshots_open(s, o->snapshot);
  if (o->type == LJP_MEM_TYPE_NONE)
    return;
  s->now.objects++;
  s->now.bytes +=
      ljp_heap_all_bytes(o->type, o->flags, o->bytes, o->numbers,
                         s->now.head.slot_bytes, s->now.head.node_bytes);
}

static void snapshots_finish(struct ljp_snapshots *s)
{
  snapshots_close(s);
  for (unsigned i = 0; i < s->moment_count; i++) {
    const struct ljp_snapshot none = {.id = s->moments[i].snapshot,
                                      .vm = s->moments[i].vm,
                                      .announced = true};
    s->missing(s->ctx, &none);
  }
  s->moment_count = 0;
}

void ljp_snapshots_take(struct ljp_snapshots *s, const struct ljp_item *item)
{
  switch (item->what) {
  case LJP_REC_HEAP_MOMENT:
    if (s->moment_count < LJP_SNAPSHOTS_MOMENTS)
      s->moments[s->moment_count++] = item->u.heap_moment;
    break;
  case LJP_REC_HEAP:
    snapshots_begin(s, &item->u.heap);
    break;
  case LJP_REC_OBJECTS:
    snapshots_object(s, &item->u.object);
    break;
  case LJP_ITEM_REF:
    snapshots_open(s, item->u.ref.snapshot);
    s->now.refs += item->u.ref.key ? 2 : 1;
    break;
  case LJP_REC_HEAP_END:
    snapshots_open(s, item->u.heap_end.snapshot);
    s->now.ends = true;
    s->now.end = item->u.heap_end;
    snapshots_close(s);
    break;
  case LJP_ITEM_FINISH:
    snapshots_finish(s);
    break;
  }
}
