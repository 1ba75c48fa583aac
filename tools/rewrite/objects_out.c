/*
** See objects_out.h. Targets are coded as src/writer/heap_writer.c does it; that one
** works in a copy of the profiled process, and this one on what a reader yields.
*/
#include "tools/rewrite/objects_out.h"

#include <stdlib.h>
#include <string.h>

#include "src/base/assert.h"
#include "src/base/heap_format.h"
#include "src/base/varint.h"

enum {
  RECORD_BYTES = 32 << 10,
  /* An object without its text, or a reference without its name. */
  ENTRY_BYTES = 3 + (3 + LJP_HEAP_MAX_NUMBERS) * LJP_VARINT_MAX_BYTES
};

struct ljp_objects_out {
  struct ljp_stream_out *out;
  bool open; /* A record has begun, of this snapshot. */
  uint64_t snapshot;
  /* Addresses here are divided, as in the record. */
  uint64_t object, last_object, last_target;
  uint8_t *head;  /* Of the object, if it is in this record; else NULL. */
  bool refs_open; /* Its references have begun in this record. */
  /* The run that may be continued; how 0: there is none. */
  unsigned run;
  uint64_t run_next;
  uint8_t *run_length;
  uint8_t *at;
  uint64_t table[LJP_HEAP_TABLE_SLOTS];
  uint8_t record[RECORD_BYTES + LJP_HEAP_TEXT_MAX_BYTES + 2 * ENTRY_BYTES];
};

struct ljp_objects_out *ljp_objects_out_new(struct ljp_stream_out *out)
{
  struct ljp_objects_out *o = calloc(1, sizeof *o);
  if (o)
    o->out = out;
  return o;
}

void ljp_objects_out_free(struct ljp_objects_out *o)
{
  free(o);
}

static void objects_end_refs(struct ljp_objects_out *o)
{
  if (o->refs_open)
    *o->at++ = LJP_HEAP_HOW_END;
  o->refs_open = false;
  o->run = LJP_HEAP_HOW_END;
}

void ljp_objects_flush(struct ljp_objects_out *o)
{
  if (!o->open)
    return;
  objects_end_refs(o);
  ljp_assert((size_t)(o->at - o->record) <= sizeof o->record);
  ljp_out_body(o->out, LJP_REC_OBJECTS, o->record, (size_t)(o->at - o->record));
  o->open = false;
}

/* Makes room for an entry of the snapshot, perhaps in a new record. */
static void objects_room(struct ljp_objects_out *o, uint64_t snapshot,
                         size_t bytes)
{
  if (o->open && (o->snapshot != snapshot ||
                  (size_t)(o->at - o->record) + bytes > RECORD_BYTES))
    ljp_objects_flush(o);
  if (o->open)
    return;
  o->open = true;
  o->snapshot = snapshot;
  o->at = ljp_put_varint(o->record, snapshot);
  o->last_object = o->last_target = 0;
  o->head = NULL;
  memset(o->table, 0, sizeof o->table);
}

/* The first byte, and the address; room was made. */
static void objects_begin(struct ljp_objects_out *o, uint64_t address,
                          unsigned type, unsigned flags)
{
  objects_end_refs(o);
  o->object = address >> LJP_HEAP_ALIGN_SHIFT;
  o->head = o->at++;
  *o->head = (uint8_t)(type | (flags ? LJP_HEAP_HAS_FLAGS : 0));
  if (flags)
    *o->at++ = (uint8_t)flags;
  o->at = ljp_put_delta(o->at, o->object, o->last_object);
  o->last_object = o->last_target = o->object;
}

static void objects_put_object(struct ljp_objects_out *o,
                               const struct ljp_rec_object *object)
{
  objects_room(o, object->snapshot, ENTRY_BYTES + object->text.len);
  objects_begin(o, object->address, object->type, object->flags);
  if (object->type == LJP_MEM_TYPE_NONE)
    return;
  o->at = ljp_put_varint(o->at, object->bytes);
  for (unsigned i = 0; i < ljp_heap_numbers(object->type); i++)
    o->at = ljp_put_varint(o->at, object->numbers[i]);
  if (ljp_heap_has_text(object->type)) {
    o->at = ljp_put_varint(o->at, object->text.len);
    memcpy(o->at, object->text.data, object->text.len);
    o->at += object->text.len;
  }
}

static void objects_put_target(struct ljp_objects_out *o, uint64_t address)
{
  uint64_t target = address >> LJP_HEAP_ALIGN_SHIFT;
  uint32_t slot = ljp_heap_table_slot(target);
  if (o->table[slot] == target) {
    o->at = ljp_put_varint(o->at, (uint64_t)slot << 1 | 1);
    return;
  }
  o->table[slot] = target;
  uint64_t delta = ljp_zigzag((int64_t)(target - o->last_target));
  o->last_target = target;
  o->at = ljp_put_varint(o->at, delta << 1);
}

/* Another target of a run; false: there is no run that it continues. */
static bool objects_continue_run(struct ljp_objects_out *o, unsigned how,
                                 uint64_t number)
{
  if (o->run != how || o->run_next != number ||
      *o->run_length == LJP_HEAP_RUN_MAX)
    return false;
  ++*o->run_length;
  o->run_next++;
  return true;
}

static void objects_put_how(struct ljp_objects_out *o,
                            const struct ljp_rec_ref *ref)
{
  unsigned how = ref->how | ref->flags;
  enum ljp_heap_shape shape = ljp_heap_shape(ref->how);
  if (shape == LJP_HEAP_SHAPE_RUN && objects_continue_run(o, how, ref->number))
    return;
  *o->at++ = (uint8_t)how;
  o->run = LJP_HEAP_HOW_END;
  switch (shape) {
  case LJP_HEAP_SHAPE_RUN:
    o->at = ljp_put_varint(o->at, ref->number);
    o->run = how;
    o->run_next = ref->number + 1;
    o->run_length = o->at++;
    *o->run_length = 1;
    break;
  case LJP_HEAP_SHAPE_PAIR:
    objects_put_target(o, ref->key);
    break;
  case LJP_HEAP_SHAPE_SIGNED:
    o->at = ljp_put_varint(o->at, ljp_zigzag((int64_t)ref->number));
    break;
  case LJP_HEAP_SHAPE_LINE:
    o->at = ljp_put_varint(o->at, ref->number);
    break;
  case LJP_HEAP_SHAPE_BITS:
    ljp_put_u64(o->at, ref->number);
    o->at += sizeof ref->number;
    break;
  case LJP_HEAP_SHAPE_TEXT:
    o->at = ljp_put_varint(o->at, ref->name.len);
    memcpy(o->at, ref->name.data, ref->name.len);
    o->at += ref->name.len;
    break;
  case LJP_HEAP_SHAPE_PLAIN:
  case LJP_HEAP_SHAPE_NONE:
    break;
  }
}

static void objects_put_ref(struct ljp_objects_out *o,
                            const struct ljp_rec_ref *ref)
{
  /* The object may have to be named again. */
  objects_room(o, ref->snapshot, 2 * ENTRY_BYTES + ref->name.len);
  if (!o->head || o->object != ref->object >> LJP_HEAP_ALIGN_SHIFT)
    objects_begin(o, ref->object, LJP_MEM_TYPE_NONE, 0);
  *o->head |= LJP_HEAP_HAS_REFS;
  o->refs_open = true;
  objects_put_how(o, ref);
  objects_put_target(o, ref->target);
}

void ljp_objects_put(struct ljp_objects_out *o, const struct ljp_item *item)
{
  if (item->what == LJP_REC_OBJECTS)
    objects_put_object(o, &item->u.object);
  else
    objects_put_ref(o, &item->u.ref);
}
