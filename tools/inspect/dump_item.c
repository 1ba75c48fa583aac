/*
** Prints one item of a stream as a line or a JSON object.
*/
#include <inttypes.h>
#include <string.h>

#include "parsers/stream/frame_text.h"
#include "parsers/stream/labels.h"
#include "parsers/stream/names.h"
#include "tools/inspect/dump.h"
#include "tools/shared/show.h"

/* Frames in stacks are cut to this length. Definitions are shown in full. */
#define FRAME_TEXT_BYTES 512u

static void dump_pairs(struct ljp_shower *show, const struct ljp_field *field,
                       struct ljp_pairs pairs)
{
  uint64_t number, count;
  if (show->json)
    ljp_show_list(show, field->name);
  while (ljp_pairs_next(&pairs, &number, &count)) {
    const char *text = ljp_name_shown((enum ljp_show)field->show, number);
    if (show->json) {
      ljp_show_item(show);
      ljp_show_listed(show, "name", text, number);
      ljp_show_number(show, "count", count);
      ljp_show_item_end(show);
    } else if (text) {
      ljp_print_format(show->out, " \"%s\"=%" PRIu64, text, count);
    } else {
      ljp_print_format(show->out, " %" PRIu64 "=%" PRIu64, number, count);
    }
  }
  if (show->json)
    ljp_show_list_end(show);
}

static void dump_field(struct ljp_shower *show, const struct ljp_field *field,
                       const char *member)
{
  struct ljp_pairs pairs;
  struct ljp_str string;
  uint64_t number;
  switch (field->type) {
  case LJP_FIELD_PAIRS:
    memcpy(&pairs, member, sizeof pairs);
    dump_pairs(show, field, pairs);
    return;
  case LJP_FIELD_STR:
    memcpy(&string, member, sizeof string);
    if (field->show == LJP_SHOW_BYTES)
      ljp_show_bytes(show, field->name, string);
    else
      ljp_show_string(show, field->name, string);
    return;
  }
  memcpy(&number, member, sizeof number);
  if (field->type == LJP_FIELD_S)
    ljp_show_signed(show, field->name, (int64_t)number);
  else if (field->show == LJP_SHOW_HEX)
    ljp_show_address(show, field->name, number);
  else if (field->show == LJP_SHOW_DEC)
    ljp_show_number(show, field->name, number);
  else
    ljp_show_listed(show, field->name,
                    ljp_name_shown((enum ljp_show)field->show, number), number);
}

static void dump_stack(struct ljp_shower *show, const struct ljp_model *model,
                       uint64_t stack)
{
  static const char *const ends[] = {"whole", "lost", "too deep"};
  const struct ljp_rec_node *frames[LJP_STACK_MAX_NODES];
  char text[FRAME_TEXT_BYTES];
  unsigned count;
  enum ljp_stack_end end = ljp_model_stack(model, stack, frames, &count);
  ljp_show_number(show, "stack", stack);
  if (end != LJP_STACK_WHOLE)
    ljp_show_listed(show, "stack_end", ends[end], end);
  if (show->json)
    ljp_show_list(show, "frames");
  for (unsigned i = 0; i < count; i++) {
    struct ljp_frame_refs view;
    ljp_frame_resolve(model, frames[i], &view);
    size_t len = ljp_frame_text(model, &view, text, sizeof text);
    const char *kind = ljp_name_frame_kind(frames[i]->kind);
    if (show->json) {
      ljp_show_item(show);
      ljp_show_number(show, "node", frames[i]->id);
      ljp_show_listed(show, "kind", kind, frames[i]->kind);
      ljp_show_string(show, "text", ljp_str(text, len));
      ljp_show_item_end(show);
    } else {
      if (kind)
        ljp_print_format(show->out, "\n    %-8s", kind);
      else
        ljp_print_format(show->out, "\n    kind %-3u", frames[i]->kind);
      ljp_print_str(show->out, " ");
      ljp_print_safe(show->out, ljp_str(text, len));
    }
  }
  if (show->json)
    ljp_show_list_end(show);
  else if (end == LJP_STACK_LOST)
    ljp_print_format(show->out, "\n    %-8s %s", "?",
                     model->lossy ? "unknown (lost in a gap)" : "unknown");
}

static void dump_node(struct ljp_shower *show, const struct ljp_rec_node *node)
{
  unsigned exact = node->flags & LJP_FRAME_EXACT_MASK;
  ljp_show_number(show, "id", node->id);
  ljp_show_number(show, "parent", node->up ? node->id - node->up : 0);
  ljp_show_listed(show, "kind", ljp_name_frame_kind(node->kind), node->kind);
  ljp_show_listed(show, "exact", ljp_name_exact(exact), exact);
  ljp_show_bool(show, "tail", node->flags & LJP_FRAME_TAIL);
  switch (ljp_frame_shape(node->kind)) {
  case LJP_SHAPE_LUA:
    ljp_show_number(show, "proto", node->ref);
    ljp_show_number(show, "line", node->value);
    break;
  case LJP_SHAPE_ADDR:
    ljp_show_number(show, "module", node->ref);
    ljp_show_address(show, "address", node->value);
    break;
  case LJP_SHAPE_NUM:
    ljp_show_number(show, "number", node->value);
    break;
  }
}

/* The producer of an event, and its thread if known. */
static void dump_producer(struct ljp_shower *show,
                          const struct ljp_reader *reader,
                          const struct ljp_item *item)
{
  uint32_t id = item->block->head.producer;
  const struct ljp_rec_producer *producer =
      ljp_model_producer(&reader->model, id);
  ljp_show_number(show, "producer", id);
  if (producer)
    ljp_show_number(show, "thread", producer->thread);
}

static void dump_sample(struct ljp_shower *show,
                        const struct ljp_reader *reader,
                        const struct ljp_item *item)
{
  const struct ljp_rec_sample *s = &item->u.sample;
  ljp_show_number(show, "time_ns", item->time_ns);
  dump_producer(show, reader, item);
  ljp_show_number(show, "vm", s->vm);
  ljp_show_listed(show, "state", ljp_name_vmstate(s->state), s->state);
  ljp_show_number(show, "weight", s->weight);
  ljp_show_listed(show, "cut", ljp_name_cut(s->cut), s->cut);
  dump_stack(show, &reader->model, s->stack);
}

/* In JSON "type" is the kind of the record. */
static void dump_object_type(struct ljp_shower *show, unsigned type)
{
  ljp_show_listed(show, show->json ? "object_type" : "type",
                  ljp_name_mem_type(type), type);
}

static void dump_mem(struct ljp_shower *show, const struct ljp_reader *reader,
                     const struct ljp_item *item)
{
  const struct ljp_rec_mem *m = &item->u.mem;
  ljp_show_number(show, "time_ns", item->time_ns);
  dump_producer(show, reader, item);
  ljp_show_listed(show, "operation", ljp_name_mem_op(m->op), m->op);
  ljp_show_address(show, "address", m->address);
  ljp_show_number(show, "size", m->size);
  if (m->op == LJP_MEM_REALLOC) {
    ljp_show_address(show, "old_address", m->old_address);
    ljp_show_number(show, "old_size", m->old_size);
  }
  dump_object_type(show, m->type);
  for (unsigned bit = LJP_MEM_SWEPT; bit <= LJP_MEM_MOVED; bit *= 2)
    if (m->flags & bit)
      ljp_show_bool(show, ljp_name_mem_flag(bit), true);
  ljp_show_number(show, "vm", m->vm);
  ljp_show_listed(show, "state", ljp_name_vmstate(m->state), m->state);
  ljp_show_number(show, "weight", m->weight);
  dump_stack(show, &reader->model, m->stack);
}

static void dump_live(struct ljp_shower *show, const struct ljp_reader *reader,
                      const struct ljp_item *item)
{
  const struct ljp_rec_live *l = &item->u.live;
  ljp_show_number(show, "time_ns", l->time_ns);
  dump_producer(show, reader, item);
  ljp_show_address(show, "address", l->address);
  ljp_show_number(show, "size", l->size);
  dump_object_type(show, (unsigned)l->type);
  ljp_show_number(show, "vm", l->vm);
  ljp_show_listed(show, "state", ljp_name_vmstate(l->state), l->state);
  ljp_show_number(show, "weight", l->weight);
  ljp_show_number(show, "cycle", l->cycle);
  dump_stack(show, &reader->model, l->stack);
}

static void dump_object(struct ljp_shower *show, const struct ljp_item *item)
{
  const struct ljp_rec_object *o = &item->u.object;
  const char *name;
  ljp_show_number(show, "snapshot", o->snapshot);
  ljp_show_address(show, "address", o->address);
  dump_object_type(show, o->type);
  for (unsigned bit = LJP_HEAP_DEAD; bit <= LJP_HEAP_RUNNING; bit *= 2)
    if (o->flags & bit)
      ljp_show_bool(show, ljp_name_heap_flag(bit), true);
  ljp_show_number(show, "bytes", o->bytes);
  for (unsigned i = 0; (name = ljp_name_heap_number(o->type, i)); i++)
    ljp_show_number(show, name, o->numbers[i]);
  if (ljp_heap_has_text(o->type))
    ljp_show_string(show, "text", o->text);
}

static void dump_ref(struct ljp_shower *show, const struct ljp_item *item)
{
  const struct ljp_rec_ref *ref = &item->u.ref;
  ljp_show_address(show, "object", ref->object);
  ljp_show_listed(show, "how", ljp_name_heap_how(ref->how), ref->how);
  if (ref->how == LJP_HEAP_HOW_ROOT)
    ljp_show_listed(show, "root", ljp_name_heap_root(ref->number), ref->number);
  else if (ref->how == LJP_HEAP_HOW_INTEGER)
    ljp_show_signed(show, "number", (int64_t)ref->number);
  else if (ljp_heap_shape(ref->how) == LJP_HEAP_SHAPE_TEXT)
    ljp_show_string(show, "name", ref->name);
  else if (ref->how == LJP_HEAP_HOW_FIELD)
    ljp_show_address(show, "key", ref->key);
  else if (ljp_heap_shape(ref->how) != LJP_HEAP_SHAPE_PLAIN)
    ljp_show_number(show, "number", ref->number);
  if (ref->flags & LJP_HEAP_WEAK)
    ljp_show_bool(show, "weak", true);
  if (ref->flags & LJP_HEAP_WEAK_KEY)
    ljp_show_bool(show, "weak_key", true);
  ljp_show_address(show, "target", ref->target);
}

/* Printed like other flat records, but the stack comes last and with frames. */
static void dump_trace_event(struct ljp_shower *show,
                             const struct ljp_reader *reader,
                             const struct ljp_item *item)
{
  unsigned count = 0;
  const struct ljp_field *field = ljp_record_fields(item->what, &count);
  for (unsigned i = 0; i + 1 < count; i++)
    dump_field(show, &field[i], (const char *)&item->u + field[i].offset);
  dump_stack(show, &reader->model, item->u.trace_event.stack);
}

/* labels id=1 route="/a" tenant="x" */
static void dump_labels(struct ljp_shower *show,
                        const struct ljp_rec_labels *labels)
{
  struct ljp_str set = labels->labels, key, value;
  ljp_show_number(show, "id", labels->id);
  if (show->json)
    ljp_show_list(show, "labels");
  while (ljp_labels_next(&set, &key, &value)) {
    if (show->json) {
      ljp_show_item(show);
      ljp_show_string(show, "key", key);
      ljp_show_string(show, "value", value);
      ljp_show_item_end(show);
    } else {
      ljp_print_str(show->out, " ");
      ljp_print_safe(show->out, key);
      ljp_print_str(show->out, "=");
      ljp_print_quoted(show->out, value);
    }
  }
  if (show->json)
    ljp_show_list_end(show);
}

static void dump_block(struct ljp_shower *show, const struct ljp_block *block)
{
  const struct ljp_block_head *h = &block->head;
  ljp_show_number(show, "offset", block->offset);
  ljp_show_number(show, "seq", h->seq);
  ljp_show_address(show, "session", h->stream);
  ljp_show_number(show, "major", h->major);
  ljp_show_number(show, "minor", h->minor);
  ljp_show_bool(show, "zstd", h->flags & LJP_BLOCK_ZSTD);
  ljp_show_bool(show, "epoch_begins", h->flags & LJP_BLOCK_KEY);
  ljp_show_number(show, "epoch", h->epoch);
  ljp_show_number(show, "producer", h->producer);
  ljp_show_number(show, "time_ns", h->time_ns);
  ljp_show_number(show, "stored_bytes", h->stored_len);
  ljp_show_number(show, "raw_bytes", h->raw_len);
}

static void dump_gap(struct ljp_shower *show, const struct ljp_gap *gap)
{
  ljp_show_number(show, "offset", gap->offset);
  ljp_show_number(show, "bytes", gap->bytes);
  ljp_show_number(show, "missing_blocks", gap->missing);
  if (!gap->missing_known)
    ljp_show_bool(show, "missing_known", false);
  ljp_show_listed(show, "reason", ljp_name_gap(gap->reason), gap->reason);
}

static void dump_bad(struct ljp_shower *show, const struct ljp_item *item)
{
  const struct ljp_bad *bad = &item->u.bad;
  ljp_show_number(show, "block_offset", item->block->offset);
  ljp_show_number(show, "payload_offset", bad->payload_offset);
  ljp_show_number(show, "bytes", bad->bytes);
  ljp_show_listed(show, "record", ljp_name_record(bad->tag), bad->tag);
  ljp_show_listed(show, "reason", ljp_name_bad(bad->reason), bad->reason);
}

static void dump_finish(struct ljp_shower *show, const struct ljp_finish *f)
{
  static const char *const closed[] = {"no", "segment", "end"};
  ljp_show_number(show, "bytes", f->bytes);
  ljp_show_number(show, "blocks", f->blocks);
  ljp_show_number(show, "gaps", f->gaps);
  ljp_show_number(show, "gap_bytes", f->gap_bytes);
  ljp_show_number(show, "missing_blocks", f->missing_blocks);
  ljp_show_number(show, "bad_records", f->bad_records);
  ljp_show_number(show, "unknown_records", f->unknown_records);
  ljp_show_listed(show, "closed", closed[f->closed], f->closed);
  ljp_show_bool(show, "clean", f->clean);
  ljp_show_bool(show, "recording", f->recording);
}

static const char *dump_type(unsigned what)
{
  switch (what) {
  case LJP_REC_SAMPLES:
    return "sample";
  case LJP_REC_NODES:
    return "node";
  case LJP_REC_OBJECTS:
    return "object";
  case LJP_ITEM_REF:
    return "ref";
  case LJP_ITEM_BLOCK:
    return "block";
  case LJP_ITEM_GAP:
    return "gap";
  case LJP_ITEM_BAD:
    return "malformed";
  case LJP_ITEM_UNKNOWN:
    return "unknown";
  case LJP_ITEM_FINISH:
    return "finish";
  }
  return ljp_name_record(what);
}

void ljp_dump_item(struct ljp_print *out, const struct ljp_reader *reader,
                   const struct ljp_item *item, bool json)
{
  struct ljp_shower show = {.out = out, .json = json};
  const struct ljp_field *field;
  unsigned count = 0;
  if (!json && item->what != LJP_ITEM_BLOCK && item->what != LJP_ITEM_GAP &&
      item->what != LJP_ITEM_FINISH)
    ljp_print_str(out, "  ");
  ljp_show_begin(&show, dump_type(item->what));
  switch (item->what) {
  case LJP_ITEM_BLOCK:
    dump_block(&show, item->block);
    break;
  case LJP_ITEM_GAP:
    dump_gap(&show, &item->u.gap);
    break;
  case LJP_ITEM_BAD:
    dump_bad(&show, item);
    break;
  case LJP_ITEM_UNKNOWN:
    ljp_show_number(&show, "tag", item->u.unknown.tag);
    ljp_show_number(&show, "payload_offset", item->u.unknown.payload_offset);
    ljp_show_number(&show, "bytes", item->u.unknown.bytes);
    break;
  case LJP_ITEM_FINISH:
    dump_finish(&show, &item->u.finish);
    break;
  case LJP_REC_NODES:
    dump_node(&show, &item->u.node);
    break;
  case LJP_REC_SAMPLES:
    dump_sample(&show, reader, item);
    break;
  case LJP_REC_MEM:
    dump_mem(&show, reader, item);
    break;
  case LJP_REC_LIVE:
    dump_live(&show, reader, item);
    break;
  case LJP_REC_OBJECTS:
    dump_object(&show, item);
    break;
  case LJP_ITEM_REF:
    dump_ref(&show, item);
    break;
  case LJP_REC_LABELS:
    dump_labels(&show, &item->u.labels);
    break;
  case LJP_REC_TRACE_EVENT:
    dump_trace_event(&show, reader, item);
    break;
  default:
    field = ljp_record_fields(item->what, &count);
    for (unsigned i = 0; i < count; i++)
      dump_field(&show, &field[i], (const char *)&item->u + field[i].offset);
  }
  ljp_show_end(&show);
}
