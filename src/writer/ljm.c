/*
** From the entries of a ring to events of Tarantool's format ljm; see ljm.h.
** Invariant: data holds whole symbols and events, and there is room for one
** event with the symbols that it may need.
*/
#include "src/writer/ljm.h"

#include <stdlib.h>
#include <string.h>

#include "src/base/varint.h"
#include "src/writer/writer_impl.h"

enum {
  EVENT_BYTES = 1 + 6 * LJP_VARINT_MAX_BYTES,
  ROOM = LJP_BLOCK_FILL_BYTES + LJP_LJM_MAX_SYMBOLS * LJP_LJM_SYMBOL_BYTES +
         EVENT_BYTES
};

/* Where an event happened. */
struct ljm_place {
  enum ljp_ljm_source source;
  uint64_t key, line;
};

enum ljp_status ljp_ljm_new(struct ljp_ljm **out)
{
  struct ljp_ljm *ljm = calloc(1, sizeof *ljm);
  if (!ljm)
    return LJP_ERR_MEM;
  ljm->data = malloc(ROOM);
  if (!ljm->data) {
    free(ljm);
    return LJP_ERR_MEM;
  }
  *out = ljm;
  return LJP_OK;
}

void ljp_ljm_free(struct ljp_ljm *ljm)
{
  if (!ljm)
    return;
  ljp_elf_modules_fini(&ljm->names);
  free(ljm->traces.taken);
  free(ljm->starts);
  free(ljm->data);
  free(ljm);
}

/* -- Bytes ----------------------------------------------------------------- */

enum ljp_status ljp_ljm_flush(struct ljp_writer *w)
{
  struct ljp_ljm *ljm = w->ljm;
  if (ljm->len && !w->out.status)
    w->out.status = ljp_sink_write(w->sink, ljm->data, ljm->len);
  if (w->out.status)
    w->out.unwritten += ljm->events;
  ljm->len = 0;
  ljm->events = 0;
  return w->out.status;
}

static void ljm_put_head(struct ljp_ljm *ljm, const char *magic,
                         unsigned version)
{
  const uint8_t rest[] = {(uint8_t)version, 0, 0, 0};
  memcpy(ljm->data + ljm->len, magic, LJP_TARANTOOL_MAGIC_BYTES);
  memcpy(ljm->data + ljm->len + LJP_TARANTOOL_MAGIC_BYTES, rest, sizeof rest);
  ljm->len += LJP_TARANTOOL_HEAD_BYTES;
}

enum ljp_status ljp_ljm_begin(struct ljp_writer *w)
{
  struct ljp_ljm *ljm = w->ljm;
  ljm_put_head(ljm, LJP_LJS_MAGIC, LJP_LJS_VERSION);
  ljm->data[ljm->len++] = LJP_TARANTOOL_END;
  ljm_put_head(ljm, LJP_LJM_MAGIC, LJP_LJM_VERSION);
  ljp_writer_update_modules(w);
  ljp_ljm_update_modules(w);
  return ljp_ljm_flush(w);
}

enum ljp_status ljp_ljm_end(struct ljp_writer *w)
{
  if (!w->ljm->broken)
    w->ljm->data[w->ljm->len++] = LJP_TARANTOOL_END;
  return ljp_ljm_flush(w);
}

void ljp_ljm_update_modules(struct ljp_writer *w)
{
  const struct ljp_modules *m = &w->modules;
  if (w->ljm->names_generation == m->generation)
    return;
  w->ljm->names_generation = m->generation;
  ljp_elf_modules_update(&w->ljm->names, m);
}

/* -- Places ---------------------------------------------------------------- */

/* False: it is not known what the frame stands for. */
static bool ljm_place_of(struct ljp_writer *w, uint64_t word, uint64_t time_ns,
                         struct ljm_place *place)
{
  const uint64_t payload = ljp_frame_payload(word);
  place->source = LJP_LJM_CFUNC;
  switch (ljp_frame_kind(word)) {
  case LJP_FRAME_LUA:
    place->source = LJP_LJM_LFUNC;
    place->key = ljp_ljm_function(w, ljp_frame_proto_ref(word));
    place->line = ljp_frame_line(word);
    break;
  case LJP_FRAME_TRACE:
    place->source = LJP_LJM_TRACE;
    place->key = ljp_ljm_trace(w, payload);
    break;
  case LJP_FRAME_BUILTIN:
    place->key = ljp_ljm_builtin(w, payload);
    break;
  default:
    place->key = ljp_ljm_cfunc(w, payload, time_ns);
  }
  return place->key != 0;
}

static bool ljm_search(struct ljp_writer *w, const uint64_t *words,
                       unsigned depth, bool compiled, uint64_t time_ns,
                       struct ljm_place *place)
{
  struct ljp_ljm_search search = {.compiled = compiled};
  uint64_t builtin = 0;
  while (depth) {
    const uint64_t word = words[--depth];
    switch (ljp_ljm_look(&search, ljp_frame_kind(word))) {
    case LJP_LJM_FRAME_FOUND:
      return ljm_place_of(w, word, time_ns, place);
    case LJP_LJM_FRAME_BUILTIN:
      builtin = word;
      break;
    case LJP_LJM_FRAME_LAST:
      depth = 0;
      break;
    case LJP_LJM_FRAME_NEXT:
      break;
    }
  }
  return builtin && ljm_place_of(w, builtin, time_ns, place);
}

/* words: of the event's stack, root first. */
static void ljm_find_place(struct ljp_writer *w, const struct ljp_mem *m,
                           const uint64_t *words, unsigned depth,
                           struct ljm_place *place)
{
  const bool compiled = m->vmstate == LJP_VMSTATE_TRACE;
  place->source = LJP_LJM_INTERNAL;
  if (!depth || ljp_ljm_is_internal(m->vmstate, m->what & LJP_MEM_TYPE_MASK))
    return;
  /* If the trace is not known, its line may be. */
  if (!ljm_search(w, words, depth, compiled, m->time_ns, place) &&
      !(compiled && ljm_search(w, words, depth, false, m->time_ns, place)))
    place->source = LJP_LJM_INTERNAL;
}

/* -- Events ---------------------------------------------------------------- */

static void ljm_put_event(struct ljp_ljm *ljm, const struct ljp_mem *m,
                          const struct ljm_place *place)
{
  static const uint8_t kinds[] = {
      [LJP_MEM_ALLOC] = LJP_LJM_ALLOC,
      [LJP_MEM_FREE] = LJP_LJM_FREE,
      [LJP_MEM_REALLOC] = LJP_LJM_REALLOC,
  };
  ljp_assert(ljm->len + EVENT_BYTES <= ROOM && m->op < sizeof kinds);
  uint8_t *p = ljm->data + ljm->len;
  *p++ = (uint8_t)(kinds[m->op] | place->source << LJP_LJM_SOURCE_SHIFT);
  if (place->source != LJP_LJM_INTERNAL)
    p = ljp_put_varint(p, place->key);
  if (place->source == LJP_LJM_LFUNC)
    p = ljp_put_varint(p, place->line);
  if (m->op == LJP_MEM_REALLOC) {
    p = ljp_put_varint(p, m->old_address);
    p = ljp_put_varint(p, m->old_size);
  }
  p = ljp_put_varint(p, m->address);
  p = ljp_put_varint(p, m->size);
  ljm->len = (size_t)(p - ljm->data);
  ljm->events++;
}

/* words: NULL: the event has no stack. */
static void ljm_take_event(struct ljp_writer *w, const struct ljp_mem *m,
                           const uint64_t *words, unsigned depth)
{
  struct ljm_place place = {.source = LJP_LJM_INTERNAL};
  if (m->what & LJP_MEM_FAILED) /* Nothing has changed. */
    return;
  if (words)
    ljm_find_place(w, m, words, depth, &place);
  ljm_put_event(w->ljm, m, &place);
  if (w->ljm->len >= LJP_BLOCK_FILL_BYTES)
    ljp_ljm_flush(w);
}

/* A bad entry, which is a bug of ours, or no memory. */
static void ljm_fail(struct ljp_writer *w, struct ljp_source *s,
                     enum ljp_status status)
{
  ljp_ljm_flush(w);
  w->out.status = w->out.status ? w->out.status : status;
  s->own_loss[status == LJP_ERR_MEM ? LJP_LOSS_NO_MEMORY
                                    : LJP_LOSS_BAD_RECORD]++;
}

static void ljm_take_numbered(struct ljp_writer *w, struct ljp_source *s,
                              const struct ljp_mem *m, unsigned number)
{
  if (number == 0) {
    ljm_take_event(w, m, s->words, s->last.depth);
  } else if (!s->numbered || number >= LJP_NUMBERED_STACKS) {
    ljm_fail(w, s, s->numbered ? LJP_ERR_FORMAT : LJP_ERR_MEM);
  } else {
    const struct ljp_numbered_stack *numbered = &s->numbered[number];
    ljm_take_event(w, m, numbered->words, numbered->stack.depth);
  }
}

static void ljm_take_brief(struct ljp_writer *w, struct ljp_source *s,
                           const struct ljp_brief_entry *e)
{
  s->mem.address = ljp_brief_address(e);
  s->mem.size = ljp_brief_bytes(e);
  s->mem.op = e->op & 1 ? LJP_MEM_FREE : LJP_MEM_ALLOC;
  s->mem.vmstate = e->vmstate;
  s->mem.what = e->what;
  if (ljp_writer_without_stack(s->mem.op, s->mem.what))
    ljm_take_event(w, &s->mem, NULL, 0);
  else
    ljm_take_numbered(w, s, &s->mem, e->op >> 1);
}

static void ljm_take_mem(struct ljp_writer *w, struct ljp_source *s,
                         const struct ljp_mem_entry *e)
{
  const struct ljp_mem mem = ljp_writer_mem_of(e);
  const uint64_t *frames = ljp_mem_entry_parts(e, e->op).frames;
  s->mem.time_ns = mem.time_ns;
  if (e->keep == LJP_KEEP_NUMBER) {
    ljm_take_numbered(w, s, &mem, e->n);
  } else if (!ljp_writer_keep_words(s, e->keep, e->n, frames)) {
    ljm_fail(w, s, LJP_ERR_FORMAT);
  } else if (ljp_writer_without_stack(mem.op, mem.what)) {
    ljm_take_event(w, &mem, NULL, 0);
  } else {
    ljm_take_event(w, &mem, s->words, s->last.depth);
  }
}

/* The format has nothing but memory events; the rest, such as phases of the
** collector, only moves the producer's stack. A note of an error says that the
** recording has ended early. */
static void ljm_take(struct ljp_writer *w, struct ljp_source *s,
                     const struct ljp_ring_entry *entry)
{
  if (entry->type == LJP_ENTRY_BRIEF) {
    ljm_take_brief(w, s, (const void *)entry);
  } else if (entry->type == LJP_ENTRY_MEM) {
    ljm_take_mem(w, s, (const void *)entry);
  } else if (entry->type == LJP_ENTRY_STACK) {
    const struct ljp_stack_entry *e = (const void *)entry;
    ljp_writer_number_stack(s, e->number, e->frames,
                            (e->size - sizeof *e) / sizeof *e->frames);
  } else if (entry->type == LJP_ENTRY_LABELS) {
    return; /* The format has none. */
  } else if (entry->type == LJP_ENTRY_EVENT) {
    const struct ljp_event_entry *e = (const void *)entry;
    const struct ljp_note_fields *note = (const void *)e->rest;
    w->ljm->broken |=
        e->tag == LJP_REC_NOTE && e->words && note->severity == LJP_NOTE_ERROR;
    if (e->has_stack &&
        !ljp_writer_keep_words(s, e->keep, e->n, e->rest + e->words))
      ljm_fail(w, s, LJP_ERR_FORMAT);
  } else { /* Samples are not recorded here. */
    ljm_fail(w, s, LJP_ERR_FORMAT);
  }
}

static bool ljm_is_event(const struct ljp_ring_entry *entry)
{
  return entry->type == LJP_ENTRY_BRIEF || entry->type == LJP_ENTRY_MEM;
}

void ljp_ljm_drain(struct ljp_writer *w, struct ljp_source *s, uint64_t end)
{
  struct ljp_ring *ring = &s->producer->ring;
  uint64_t pos = ljp_ring_tail(ring), released = pos;
  const struct ljp_ring_entry *e;
  w->out.unwritten = 0;
  while ((e = ljp_ring_next(ring, &pos, end))) {
    if (LJP_UNLIKELY(w->out.status != LJP_OK))
      s->own_loss[LJP_LOSS_WRITE_ERROR] += ljm_is_event(e);
    else
      ljm_take(w, s, e);
    if (pos - released >= LJP_RELEASE_BYTES) {
      ljp_writer_release(s->producer, pos);
      released = pos;
    }
  }
  ljp_assert(pos == end);
  ljp_writer_release(s->producer, pos);
  ljp_ljm_flush(w);
  s->own_loss[LJP_LOSS_WRITE_ERROR] += w->out.unwritten;
}
