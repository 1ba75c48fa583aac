/*
** From one entry of a ring to an event in the block that is being built. See
** writer.h. Writer thread only.
** Invariant: the sizes in an entry are trusted, since our own push made them,
** but not its other numbers: frames kept, words and tags are checked, and a bad
** entry is a counted loss.
*/
#include "src/writer/writer_impl.h"

/* The id of the stack that an entry describes. False: it is lost, and counted.
** */
static bool take_stack(struct ljp_writer *w, struct ljp_source *s,
                       unsigned keep, unsigned n, const uint64_t *words,
                       uint64_t time_ns, uint64_t *id)
{
  if (n == 0 && keep == s->last.depth &&
      ljp_writer_stack_valid(w, s, &s->last)) {
    *id = s->last.id;
    return true;
  }
  return ljp_writer_stack(w, s, keep, n, words, time_ns, id);
}

static void take_sample(struct ljp_writer *w, struct ljp_source *s,
                        const struct ljp_sample_entry *e)
{
  uint64_t stack;
  ljp_assert(e->size == sizeof *e + 8 * (size_t)e->n);
  if (!take_stack(w, s, e->keep, e->n, e->frames, e->time_ns, &stack))
    return;
  const struct ljp_sample sample = {.time_ns = e->time_ns,
                                    .weight = e->weight,
                                    .vm = e->vm,
                                    .vmstate = e->vmstate,
                                    .cut = e->cut};
  ljp_builder_sample(&w->builder, &sample, stack);
}

/* -- Memory events --------------------------------------------------------- */

/* The stack that a brief event names. */
static inline const struct ljp_taken_stack *
take_brief_stack(const struct ljp_source *s, unsigned number)
{
  static const struct ljp_taken_stack none; /* of no epoch, so never valid */
  if (number == 0)
    return &s->last;
  return LJP_LIKELY(s->numbered != NULL) ? &s->numbered[number].stack : &none;
}

static const struct ljp_brief_entry *take_brief_at(const struct ljp_ring *ring,
                                                   uint64_t pos)
{
  const struct ljp_brief_entry *e =
      (const void *)(ring->data + (pos & (ring->capacity - 1)));
  ljp_assert(e->type != LJP_ENTRY_BRIEF || e->size == sizeof *e);
  return e;
}

static inline uint8_t take_brief_op(const struct ljp_brief_entry *e)
{
  return e->op & 1 ? LJP_MEM_FREE : LJP_MEM_ALLOC;
}

/* Takes one brief entry. False: it was lost, or its stack had to be written. */
static bool take_brief(struct ljp_writer *w, struct ljp_source *s,
                       const struct ljp_brief_entry *e)
{
  struct ljp_mem mem = s->mem;
  uint64_t stack = LJP_STACK_AS_BEFORE;
  bool valid = true;
  mem.address = ljp_brief_address(e);
  mem.size = ljp_brief_bytes(e);
  mem.op = take_brief_op(e);
  mem.vmstate = e->vmstate;
  mem.what = e->what;
  if (!ljp_writer_without_stack(mem.op, mem.what)) {
    const unsigned number = e->op >> 1;
    const struct ljp_taken_stack *named = take_brief_stack(s, number);
    valid = ljp_writer_stack_valid(w, s, named);
    stack = named->id;
    if (!valid && !ljp_writer_numbered_stack(w, s, number, mem.time_ns, &stack))
      return false;
  }
  ljp_builder_mem(&w->builder, &mem, stack);
  return valid;
}

void ljp_writer_take_briefs(struct ljp_writer *w, struct ljp_source *s,
                            const struct ljp_ring *ring, uint64_t *pos,
                            uint64_t end)
{
  uint64_t at = *pos;
  const bool plain = take_brief(w, s, take_brief_at(ring, at));
  *pos = at += sizeof(struct ljp_brief_entry);
  if (!plain || at >= end)
    return;
  struct ljp_mem_run run = ljp_builder_begin_run(&w->builder);
  for (; at < end && run.end < run.full; at += sizeof(struct ljp_brief_entry)) {
    const struct ljp_brief_entry *e = take_brief_at(ring, at);
    if (e->type != LJP_ENTRY_BRIEF)
      break;
    uint64_t stack = LJP_STACK_AS_BEFORE;
    const uint8_t op = take_brief_op(e);
    if (!ljp_writer_without_stack(op, e->what)) {
      const struct ljp_taken_stack *named = take_brief_stack(s, e->op >> 1);
      if (LJP_UNLIKELY(!ljp_writer_stack_valid(w, s, named)))
        break;
      stack = named->id;
    }
    ljp_mem_run_add(&run, op, ljp_brief_address(e), ljp_brief_bytes(e), stack,
                    e->vmstate, e->what);
  }
  ljp_builder_end_run(&w->builder, &run);
  *pos = at;
}

static void take_mem(struct ljp_writer *w, struct ljp_source *s,
                     const struct ljp_mem_entry *e)
{
  const bool numbered = e->keep == LJP_KEEP_NUMBER;
  const struct ljp_mem mem = ljp_writer_mem_of(e);
  s->mem.time_ns = mem.time_ns;
  s->mem.vm = mem.vm;
  uint64_t stack = LJP_STACK_AS_BEFORE;
  bool same = e->n == 0 && e->keep == s->last.depth;
  if ((same && ljp_writer_without_stack(mem.op, mem.what)) ||
      (numbered ? ljp_writer_numbered_stack(w, s, e->n, e->time_ns, &stack)
                : take_stack(w, s, e->keep, e->n,
                             ljp_mem_entry_parts(e, e->op).frames, e->time_ns,
                             &stack))) {
    ljp_builder_mem(&w->builder, &mem, stack);
    ljp_writer_hold_mem(w, s, &mem, stack);
  }
}

/* -- Other events ---------------------------------------------------------- */

/* The words that the fields of a tag have at least; 0: not an event of a
** ring. */
static unsigned take_words_needed(unsigned tag)
{
  switch (tag) {
#define LJP_X(name, fields, bytes)                                             \
  case LJP_REC_##name:                                                         \
    return (bytes) / sizeof(uint64_t);
    LJP_EVENT_FIELDS_LIST(LJP_X)
#undef LJP_X
  }
  return 0;
}

static void take_put_text(struct ljp_body *b, const struct ljp_event_entry *e)
{
  ljp_body_str(b, (const char *)(e->rest + e->words + e->n), e->text_bytes,
               LJP_EVENT_MAX_TEXT);
}

static void take_put_trace(struct ljp_writer *w,
                           const struct ljp_event_entry *e, uint64_t stack)
{
  const struct ljp_trace_fields *f = (const void *)e->rest;
  uint32_t ref = f->place ? ljp_frame_proto_ref(f->place) : 0;
  uint64_t proto = ljp_writer_need_proto(w, ljp_writer_proto_number(w, ref));
  if ((f->what == LJP_TRACE_STOP || f->what == LJP_TRACE_EXISTS) && f->trace)
    ljp_writer_need_trace(w, f->trace);
  /* Only now: the definitions above use the same body. */
  struct ljp_body *b = ljp_writer_timed_body(w, e->time_ns);
  ljp_body_u(b, f->vm);
  ljp_body_u(b, f->what);
  ljp_body_u(b, f->trace);
  ljp_body_u(b, proto);
  ljp_body_u(b, f->place ? ljp_frame_line(f->place) : 0);
  ljp_body_u(b, f->reason);
  take_put_text(b, e);
  ljp_body_u(b, f->parent);
  ljp_body_u(b, f->parent_exit);
  ljp_body_u(b, stack);
}

static void take_put_vmstate(struct ljp_body *b,
                             const struct ljp_event_entry *e)
{
  const struct ljp_vmstate_fields *f = (const void *)e->rest;
  unsigned n = e->words - 1u;
  if (n > LJP_VMSTATE_MAX_COUNTERS)
    n = LJP_VMSTATE_MAX_COUNTERS;
  ljp_body_u(b, f->vm);
  ljp_body_u(b, n);
  for (unsigned i = 0; i < n; i++) {
    ljp_body_u(b, i);
    ljp_body_u(b, f->counters[i]);
  }
}

/* The events that need no definition. */
static void take_put_plain(struct ljp_writer *w,
                           const struct ljp_event_entry *e)
{
  struct ljp_body *b = ljp_writer_timed_body(w, e->time_ns);
  if (e->tag == LJP_REC_GC) {
    const struct ljp_gc_fields *f = (const void *)e->rest;
    ljp_body_u(b, f->vm);
    ljp_body_u(b, f->phase);
    ljp_body_u(b, f->heap_bytes);
    ljp_body_u(b, f->cycle);
    ljp_writer_hold_gc(w, f);
  } else if (e->tag == LJP_REC_VMSTATE) {
    take_put_vmstate(b, e);
  } else if (e->tag == LJP_REC_MARK) {
    const struct ljp_mark_fields *f = (const void *)e->rest;
    ljp_body_u(b, f->thread);
    ljp_body_u(b, f->vm);
    ljp_body_s(b, f->value);
    take_put_text(b, e);
  } else if (e->tag == LJP_REC_INTERVAL) {
    const struct ljp_interval_fields *f = (const void *)e->rest;
    ljp_body_u(b, f->interval);
    ljp_body_u(b, f->why);
  } else if (e->tag == LJP_REC_HEAP_MOMENT) {
    const struct ljp_moment_fields *f = (const void *)e->rest;
    ljp_body_u(b, f->snapshot);
    ljp_body_u(b, f->vm);
    ljp_body_u(b, f->heap_bytes);
  } else {
    const struct ljp_note_fields *f = (const void *)e->rest;
    ljp_assert(e->tag == LJP_REC_NOTE);
    ljp_body_u(b, f->severity);
    take_put_text(b, e);
  }
}

static void take_event(struct ljp_writer *w, struct ljp_source *s,
                       const struct ljp_event_entry *e)
{
  uint64_t stack = 0;
  ljp_assert(e->size == sizeof *e + 8 * ((size_t)e->words + e->n) +
                            ((e->text_bytes + 7u) & ~7u));
  if (!take_words_needed(e->tag) || e->words < take_words_needed(e->tag)) {
    s->own_loss[LJP_LOSS_BAD_RECORD]++;
    return;
  }
  /* First, since it may begin an epoch. If the stack is lost, the event is
  ** still written. */
  if (e->has_stack)
    take_stack(w, s, e->keep, e->n, e->rest + e->words, e->time_ns, &stack);
  if (e->tag == LJP_REC_TRACE_EVENT)
    take_put_trace(w, e, stack);
  else
    take_put_plain(w, e);
  ljp_writer_put_event(w, (enum ljp_record)e->tag);
}

void ljp_writer_take(struct ljp_writer *w, struct ljp_source *s,
                     const struct ljp_ring_entry *entry)
{
  if (entry->type == LJP_ENTRY_SAMPLE) {
    take_sample(w, s, (const void *)entry);
  } else if (entry->type == LJP_ENTRY_MEM) {
    take_mem(w, s, (const void *)entry);
  } else if (entry->type == LJP_ENTRY_LABELS) {
    const struct ljp_labels_entry *e = (const void *)entry;
    s->labels = (uint32_t)e->labels;
  } else if (entry->type == LJP_ENTRY_STACK) {
    const struct ljp_stack_entry *e = (const void *)entry;
    ljp_writer_number_stack(s, e->number, e->frames,
                            (e->size - sizeof *e) / sizeof *e->frames);
  } else {
    ljp_assert(entry->type == LJP_ENTRY_EVENT);
    take_event(w, s, (const void *)entry);
  }
}
