/*
** Moves every id in every kind of item.
*/
#include "tools/rewrite/renumber.h"

enum { FFID_SESSION_SHIFT = 16, ADDRESS_SESSION_SHIFT = 48 };

void ljp_renumber_session(struct ljp_renumber *map, uint64_t time)
{
  for (int i = 0; i < LJP_ID_COUNT; i++)
    map->base[i] = map->most[i];
  map->session++;
  map->time = time;
}

uint64_t ljp_renumber_id(struct ljp_renumber *map, enum ljp_id kind,
                         uint64_t id)
{
  if (!id)
    return 0;
  id += map->base[kind];
  if (id > map->most[kind])
    map->most[kind] = id;
  return id;
}

#define MOVE(kind, field)                                                      \
  ((field) = ljp_renumber_id(map, LJP_ID_##kind, (field)))

static uint64_t renumber_ffid(const struct ljp_renumber *map, uint64_t number)
{
  return number + (map->session << FFID_SESSION_SHIFT);
}

static uint64_t renumber_address(const struct ljp_renumber *map, uint64_t at)
{
  return at ? at | map->session << ADDRESS_SESSION_SHIFT : 0;
}

static void renumber_node(struct ljp_renumber *map, struct ljp_rec_node *n)
{
  MOVE(NODE, n->id); /* n->up is relative and stays. */
  switch (ljp_frame_shape(n->kind)) {
  case LJP_SHAPE_LUA:
    MOVE(PROTO, n->ref);
    break;
  case LJP_SHAPE_ADDR:
    MOVE(MODULE, n->ref);
    break;
  case LJP_SHAPE_NUM:
    if (n->kind == LJP_FRAME_TRACE)
      MOVE(TRACE, n->value);
    else if (n->kind == LJP_FRAME_LABELS)
      MOVE(LABELS, n->value);
    else if (n->kind == LJP_FRAME_BUILTIN)
      n->value = renumber_ffid(map, n->value);
    break;
  }
}

static void renumber_trace(struct ljp_renumber *map, struct ljp_rec_trace *t)
{
  MOVE(TRACE, t->id);
  MOVE(TRACE, t->parent);
  MOVE(TRACE, t->root);
  MOVE(TRACE, t->link);
  MOVE(VM, t->vm);
  MOVE(PROTO, t->proto);
}

/* Addresses move as those of memory events, so that a snapshot's objects are
** found among these. */
static void renumber_object(struct ljp_renumber *map, struct ljp_rec_object *o)
{
  MOVE(SNAPSHOT, o->snapshot);
  o->address = renumber_address(map, o->address);
  /* 0 and 1 are no builtins, but Lua and C functions. */
  if (o->type == LJP_MEM_TYPE_FUNCTION && o->numbers[0] > 1)
    o->numbers[0] = renumber_ffid(map, o->numbers[0]);
}

static void renumber_ref(struct ljp_renumber *map, struct ljp_rec_ref *r)
{
  MOVE(SNAPSHOT, r->snapshot);
  r->object = renumber_address(map, r->object);
  r->key = renumber_address(map, r->key);
  r->target = renumber_address(map, r->target);
}

static void renumber_heap(struct ljp_renumber *map, struct ljp_item *to)
{
  switch (to->what) {
  case LJP_REC_HEAP_MOMENT:
    MOVE(SNAPSHOT, to->u.heap_moment.snapshot);
    MOVE(VM, to->u.heap_moment.vm);
    break;
  case LJP_REC_HEAP:
    MOVE(SNAPSHOT, to->u.heap.snapshot);
    MOVE(VM, to->u.heap.vm);
    break;
  case LJP_REC_HEAP_END:
    MOVE(SNAPSHOT, to->u.heap_end.snapshot);
    break;
  case LJP_REC_HEAP_TYPE:
    MOVE(SNAPSHOT, to->u.heap_type.snapshot);
    break;
  case LJP_REC_OBJECTS:
    renumber_object(map, &to->u.object);
    break;
  case LJP_ITEM_REF:
    renumber_ref(map, &to->u.ref);
    break;
  }
}

static void renumber_live(struct ljp_renumber *map, struct ljp_rec_live *live)
{
  live->address = renumber_address(map, live->address);
  MOVE(VM, live->vm);
  MOVE(NODE, live->stack);
}

static void renumber_definition(struct ljp_renumber *map, struct ljp_item *e)
{
  switch (e->what) {
  case LJP_REC_PROCESS:
    e->u.process.anchor_mono_ns += map->time;
    break;
  case LJP_REC_MODULE:
    MOVE(MODULE, e->u.module.id);
    break;
  case LJP_REC_THREAD:
    MOVE(THREAD, e->u.thread.id);
    break;
  case LJP_REC_VM:
    MOVE(VM, e->u.vm.id);
    MOVE(THREAD, e->u.vm.thread);
    break;
  case LJP_REC_PRODUCER:
    MOVE(PRODUCER, e->u.producer.id);
    MOVE(THREAD, e->u.producer.thread);
    break;
  case LJP_REC_PROTO:
    MOVE(PROTO, e->u.proto.id);
    break;
  case LJP_REC_TRACE:
    renumber_trace(map, &e->u.trace);
    break;
  case LJP_REC_BUILTIN:
    e->u.builtin.ffid = renumber_ffid(map, e->u.builtin.ffid);
    break;
  case LJP_REC_LABELS:
    MOVE(LABELS, e->u.labels.id);
    break;
  case LJP_REC_NODES:
    renumber_node(map, &e->u.node);
    break;
  case LJP_REC_SYMBOL:
    MOVE(MODULE, e->u.symbol.module);
    break;
  }
}

/* Records with an absolute time have it as their first field. */
static bool renumber_has_time(unsigned what)
{
  unsigned count = 0;
  const struct ljp_field *fields = ljp_record_fields(what, &count);
  return count && fields[0].type == LJP_FIELD_T;
}

void ljp_renumber_item(struct ljp_renumber *map, const struct ljp_item *from,
                       struct ljp_item *to)
{
  *to = *from;
  if (from->what == LJP_REC_SAMPLES || from->what == LJP_REC_MEM)
    to->time_ns += map->time;
  if (renumber_has_time(from->what)) {
    to->time_ns += map->time;
    to->u.gc.time_ns += map->time; /* All these records begin with time_ns. */
  }
  switch (from->what) {
  case LJP_REC_SAMPLES:
    MOVE(NODE, to->u.sample.stack);
    MOVE(VM, to->u.sample.vm);
    break;
  case LJP_REC_MEM:
    to->u.mem.address = renumber_address(map, to->u.mem.address);
    to->u.mem.old_address = renumber_address(map, to->u.mem.old_address);
    MOVE(NODE, to->u.mem.stack);
    MOVE(VM, to->u.mem.vm);
    break;
  case LJP_REC_GC:
    MOVE(VM, to->u.gc.vm);
    break;
  case LJP_REC_HELD:
    MOVE(VM, to->u.held.vm);
    break;
  case LJP_REC_LIVE:
    renumber_live(map, &to->u.live);
    break;
  case LJP_REC_TRACE_EVENT:
    MOVE(VM, to->u.trace_event.vm);
    MOVE(TRACE, to->u.trace_event.trace);
    MOVE(PROTO, to->u.trace_event.proto);
    MOVE(TRACE, to->u.trace_event.parent);
    MOVE(NODE, to->u.trace_event.stack);
    break;
  case LJP_REC_VMSTATE:
    MOVE(VM, to->u.vmstate.vm);
    break;
  case LJP_REC_MARK:
    MOVE(THREAD, to->u.mark.thread);
    MOVE(VM, to->u.mark.vm);
    break;
  case LJP_REC_OVERRUN:
    MOVE(PRODUCER, to->u.overrun.producer);
    break;
  case LJP_REC_LOSS:
    MOVE(PRODUCER, to->u.loss.producer);
    break;
  case LJP_REC_MODULE_GONE:
    MOVE(MODULE, to->u.module_gone.module);
    break;
  case LJP_REC_VM_CLOSE:
    MOVE(VM, to->u.vm_close.vm);
    break;
  case LJP_REC_THREAD_END:
    MOVE(THREAD, to->u.thread_end.thread);
    break;
  case LJP_REC_UNSAMPLED:
    MOVE(THREAD, to->u.unsampled.thread);
    break;
  case LJP_REC_ELAPSED:
    MOVE(THREAD, to->u.elapsed.thread);
    break;
  case LJP_REC_EPOCH:
    if (to->u.epoch.first_node)
      to->u.epoch.first_node += map->base[LJP_ID_NODE];
    break;
  case LJP_REC_HEAP_MOMENT:
  case LJP_REC_HEAP:
  case LJP_REC_HEAP_END:
  case LJP_REC_HEAP_TYPE:
  case LJP_REC_OBJECTS:
  case LJP_ITEM_REF:
    renumber_heap(map, to);
    break;
  default:
    renumber_definition(map, to);
  }
}
