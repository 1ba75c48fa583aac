/*
** See heap_writer.h. One record is built at a time, in a buffer of its own; the
** state of its deltas and its table of targets begin empty. References of an
** object that do not fit continue in the next record.
*/
#include "src/writer/heap_writer.h"

#include <string.h>

#include "src/base/varint.h"
#include "src/base/zeroed.h"
#include "src/writer/heap_frames.h"
#include "src/writer/writer_impl.h"

enum {
#ifdef LJP_DEBUG
  RECORD_BYTES = 509, /* Objects are cut all the time. */
#else
  RECORD_BYTES = 32 << 10,
#endif
  /* An object without its text, or a reference without its name. */
  ENTRY_BYTES = 3 + (3 + LJP_HEAP_MAX_NUMBERS) * LJP_VARINT_MAX_BYTES,
  NAME_MAX_BYTES = 200
};
_Static_assert(RECORD_BYTES + LJP_HEAP_TEXT_MAX_BYTES + 2 * ENTRY_BYTES <
                   LJP_RECORD_MAX_BYTES,
               "a record fits into a block's part");

struct ljp_heap_writer {
  struct ljp_heap_out out; /* The first member. */
  /* One of the two takes the records. */
  struct ljp_writer *w;
  struct ljp_heap_frames *frames;
  uint64_t begin_ns;
  struct ljp_heap_about about;
  uint64_t slot_bytes, node_bytes;
  struct ljp_heap_sums sums;

  uint8_t *at, *start; /* The record's next byte; its first entry. */
  uint64_t last_object, last_target;
  uint64_t object; /* Whose references are being told. */
  bool refs_open;  /* It has references in this record. */
  uint8_t *head;   /* Of the object, if it is in this record; else NULL. */
  /* The run that may be continued: its first byte, its next number, where its
  ** length stands. 0: there is none. */
  unsigned run;
  uint64_t run_next;
  uint8_t *run_length;
  uint64_t table[LJP_HEAP_TABLE_SLOTS];
  uint8_t record[LJP_RECORD_MAX_BYTES];
};

/* -- Records --------------------------------------------------------------- */

static void heap_open_record(struct ljp_heap_writer *h)
{
  h->start = h->at = ljp_put_varint(h->record, h->about.snapshot);
  h->last_object = h->last_target = 0;
  h->refs_open = false;
  h->head = NULL;
  h->run = 0;
  memset(h->table, 0, sizeof h->table);
}

static bool heap_put(struct ljp_heap_writer *h, enum ljp_record tag,
                     uint64_t time_ns, const uint8_t *fields, size_t len)
{
  if (h->frames)
    return ljp_heap_frames_put(h->frames, tag, time_ns, fields, len);
  ljp_writer_put_heap(h->w, tag, time_ns, fields, len);
  return !h->w->out.status;
}

static bool heap_put_numbers(struct ljp_heap_writer *h, enum ljp_record tag,
                             uint64_t time_ns, const uint64_t *fields,
                             size_t count)
{
  uint8_t bytes[16 * LJP_VARINT_MAX_BYTES], *p = bytes;
  ljp_assert(count <= 16);
  for (size_t i = 0; i < count; i++)
    p = ljp_put_varint(p, fields[i]);
  return heap_put(h, tag, time_ns, bytes, (size_t)(p - bytes));
}

static bool heap_put_record(struct ljp_heap_writer *h)
{
  if (h->refs_open)
    *h->at++ = LJP_HEAP_HOW_END;
  bool done = heap_put(h, LJP_REC_OBJECTS, h->begin_ns, h->record,
                       (size_t)(h->at - h->record));
  heap_open_record(h);
  return done;
}

static uint64_t heap_divided(uint64_t address)
{
  ljp_assert(address && !(address & ((1u << LJP_HEAP_ALIGN_SHIFT) - 1)));
  return address >> LJP_HEAP_ALIGN_SHIFT;
}

/* Room for an entry: perhaps a new record, in which the object continues. */
static bool heap_room(struct ljp_heap_writer *h, size_t bytes)
{
  if (LJP_LIKELY((size_t)(h->at - h->record) + bytes <= RECORD_BYTES))
    return true;
  return h->at == h->start || heap_put_record(h);
}

/* -- Objects --------------------------------------------------------------- */

static bool heap_object(struct ljp_heap_out *out,
                        const struct ljp_heap_object *o)
{
  struct ljp_heap_writer *h = (struct ljp_heap_writer *)out;
  unsigned count = ljp_heap_numbers(o->type);
  if (!heap_room(h, ENTRY_BYTES + o->text_bytes))
    return false;
  h->object = heap_divided(o->address);
  h->head = h->at;
  uint8_t *p = h->at + 1;
  *h->head = o->type;
  if (o->flags) {
    *h->head |= LJP_HEAP_HAS_FLAGS;
    *p++ = o->flags;
  }
  p = ljp_put_delta(p, h->object, h->last_object);
  p = ljp_put_varint(p, o->bytes);
  for (unsigned i = 0; i < count; i++)
    p = ljp_put_varint(p, o->numbers[i]);
  if (ljp_heap_has_text(o->type)) {
    size_t len = o->text_bytes < LJP_HEAP_TEXT_MAX_BYTES
                     ? o->text_bytes
                     : LJP_HEAP_TEXT_MAX_BYTES;
    p = ljp_put_varint(p, len);
    if (len)
      memcpy(p, o->text, len);
    p += len;
  }
  h->at = p;
  h->last_object = h->last_target = h->object;
  h->run = 0;
  h->sums.objects++;
  h->sums.bytes += ljp_heap_all_bytes(o->type, o->flags, o->bytes, o->numbers,
                                      h->slot_bytes, h->node_bytes);
  return true;
}

static bool heap_object_end(struct ljp_heap_out *out)
{
  struct ljp_heap_writer *h = (struct ljp_heap_writer *)out;
  if (h->refs_open)
    *h->at++ = LJP_HEAP_HOW_END;
  h->refs_open = false;
  h->run = 0;
  return true;
}

/* -- References ------------------------------------------------------------ */

/* Makes room for a reference. The object may have to be named again. */
static bool heap_begin_ref(struct ljp_heap_writer *h, size_t bytes)
{
  if (!heap_room(h, ENTRY_BYTES + bytes))
    return false;
  if (LJP_LIKELY(h->refs_open))
    return true;
  if (h->head) {
    *h->head |= LJP_HEAP_HAS_REFS;
  } else {
    *h->at++ = LJP_MEM_TYPE_NONE | LJP_HEAP_HAS_REFS;
    h->at = ljp_put_delta(h->at, h->object, h->last_object);
    h->last_object = h->last_target = h->object;
  }
  h->refs_open = true;
  return true;
}

/* A slot of the table, with bit 0; or the difference from the target coded
** before, which then enters the table. */
static inline uint8_t *heap_put_target(struct ljp_heap_writer *h, uint8_t *p,
                                       uint64_t address)
{
  uint64_t target = heap_divided(address);
  uint32_t slot = ljp_heap_table_slot(target);
  h->sums.refs++;
  if (h->table[slot] == target)
    return ljp_put_varint_quick(p, (uint64_t)slot << 1 | 1);
  h->table[slot] = target;
  uint64_t delta = ljp_zigzag((int64_t)(target - h->last_target));
  h->last_target = target;
  return ljp_put_varint_quick(p, delta << 1);
}

static bool heap_run(struct ljp_heap_writer *h, unsigned how, uint64_t number,
                     uint64_t target)
{
  if (h->run == how && h->run_next == number &&
      *h->run_length < LJP_HEAP_RUN_MAX) {
    ++*h->run_length;
  } else {
    *h->at++ = (uint8_t)how;
    h->at = ljp_put_varint(h->at, number);
    h->run_length = h->at++;
    *h->run_length = 1;
    h->run = how;
  }
  h->run_next = number + 1;
  h->at = heap_put_target(h, h->at, target);
  return true;
}

static bool heap_ref(struct ljp_heap_out *out, unsigned how, uint64_t number,
                     uint64_t target)
{
  struct ljp_heap_writer *h = (struct ljp_heap_writer *)out;
  enum ljp_heap_shape shape = ljp_heap_shape(how & LJP_HEAP_HOW_MASK);
  if (!heap_begin_ref(h, 0))
    return false;
  if (shape == LJP_HEAP_SHAPE_RUN)
    return heap_run(h, how, number, target);
  uint8_t *p = h->at;
  *p++ = (uint8_t)how;
  if (shape == LJP_HEAP_SHAPE_SIGNED) {
    p = ljp_put_varint(p, ljp_zigzag((int64_t)number));
  } else if (shape == LJP_HEAP_SHAPE_LINE) {
    p = ljp_put_varint(p, number);
  } else if (shape == LJP_HEAP_SHAPE_BITS) {
    ljp_put_u64(p, number);
    p += 8;
  }
  h->at = heap_put_target(h, p, target);
  h->run = 0;
  return true;
}

static bool heap_field(struct ljp_heap_out *out, unsigned how, uint64_t key,
                       uint64_t target)
{
  struct ljp_heap_writer *h = (struct ljp_heap_writer *)out;
  if (!heap_begin_ref(h, 0))
    return false;
  *h->at = (uint8_t)how;
  h->at = heap_put_target(h, h->at + 1, key);
  h->at = heap_put_target(h, h->at, target);
  h->run = 0;
  return true;
}

static bool heap_named(struct ljp_heap_out *out, unsigned how, const char *name,
                       size_t name_bytes, uint64_t target)
{
  struct ljp_heap_writer *h = (struct ljp_heap_writer *)out;
  if (name_bytes > NAME_MAX_BYTES)
    name_bytes = NAME_MAX_BYTES;
  if (!heap_begin_ref(h, name_bytes))
    return false;
  uint8_t *p = h->at;
  *p++ = (uint8_t)how;
  p = ljp_put_varint(p, name_bytes);
  memcpy(p, name, name_bytes);
  h->at = heap_put_target(h, p + name_bytes, target);
  h->run = 0;
  return true;
}

static bool heap_ctype(struct ljp_heap_out *out,
                       const struct ljp_heap_ctype *type)
{
  struct ljp_heap_writer *h = (struct ljp_heap_writer *)out;
  const uint64_t fields[] = {h->about.snapshot, type->number, type->kind,
                             type->bytes, type->of};
  return heap_put_numbers(h, LJP_REC_HEAP_TYPE, h->begin_ns, fields,
                          sizeof fields / sizeof *fields);
}

/* -- A snapshot ------------------------------------------------------------ */

static enum ljp_status heap_new(struct ljp_heap_writer **out,
                                struct ljp_writer *w,
                                struct ljp_heap_frames *frames)
{
  struct ljp_heap_writer *h = ljp_zeroed_new(sizeof *h);
  if (!h)
    return LJP_ERR_MEM;
  h->out = (struct ljp_heap_out){.object = heap_object,
                                 .ref = heap_ref,
                                 .field = heap_field,
                                 .named = heap_named,
                                 .object_end = heap_object_end,
                                 .ctype = heap_ctype};
  h->w = w;
  h->frames = frames;
  *out = h;
  return LJP_OK;
}

enum ljp_status ljp_heap_writer_new(struct ljp_heap_writer **out,
                                    struct ljp_writer *w)
{
  return heap_new(out, w, NULL);
}

enum ljp_status ljp_heap_writer_of_frames(struct ljp_heap_writer **out,
                                          struct ljp_heap_frames *frames)
{
  return heap_new(out, NULL, frames);
}

void ljp_heap_writer_free(struct ljp_heap_writer *h)
{
  ljp_zeroed_free(h, sizeof *h);
}

struct ljp_heap_out *ljp_heap_writer_begin(struct ljp_heap_writer *h,
                                           const struct ljp_heap_about *about,
                                           const struct ljp_heap_head *head,
                                           uint64_t now_ns)
{
  h->about = *about;
  if (h->about.text_limit > LJP_HEAP_TEXT_MAX_BYTES)
    h->about.text_limit = LJP_HEAP_TEXT_MAX_BYTES;
  h->out.text_limit = h->about.text_limit;
  h->slot_bytes = head->slot_bytes;
  h->node_bytes = head->node_bytes;
  h->sums = (struct ljp_heap_sums){0};
  h->begin_ns = now_ns;
  const uint64_t fields[] = {
      about->snapshot, about->vm,           about->taken,     head->heap_bytes,
      head->phase,     h->about.text_limit, head->slot_bytes, head->node_bytes};
  heap_put_numbers(h, LJP_REC_HEAP, now_ns, fields,
                   sizeof fields / sizeof *fields);
  heap_open_record(h);
  return &h->out;
}

enum ljp_status ljp_heap_writer_end(struct ljp_heap_writer *h, uint64_t now_ns,
                                    struct ljp_heap_sums *sums)
{
  if (h->at > h->start)
    heap_put_record(h);
  if (h->out.unreadable && !h->frames) {
    ljp_writer_make_room(h->w);
    ljp_writer_note(h->w, LJP_NOTE_WARNING,
                    "the heap was copied at any moment: %llu objects or lists "
                    "of objects could not be read",
                    (unsigned long long)h->out.unreadable);
  }
  const uint64_t fields[] = {h->about.snapshot, h->sums.objects, h->sums.refs,
                             h->sums.bytes};
  heap_put_numbers(h, LJP_REC_HEAP_END, now_ns, fields,
                   sizeof fields / sizeof *fields);
  *sums = h->sums;
  return h->frames ? ljp_heap_frames_end(h->frames)
                   : ljp_writer_put_block(h->w, 0);
}
