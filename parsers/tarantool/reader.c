/*
** The reader of Tarantool's files. Behind the bytes in the window there are
** always SLACK zeros, so a number may be read where the bytes end: it ends
** there, too, and one comparison with `end` afterwards tells that it was not
** whole. One thread a reader.
*/
#include "parsers/tarantool/reader.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "parsers/tarantool/memory_event.h"
#include "parsers/tarantool/walk.h"
#include "src/base/assert.h"

enum { SLACK = 128, EVENT_BYTES = LJP_TARANTOOL_MEMORY_BYTES };
_Static_assert(SLACK >= EVENT_BYTES + 8, "an event fits into the slack");
_Static_assert(LJP_TARANTOOL_WINDOW_BYTES >= SLACK, "and into the window");

enum part { FIRST, SYMTAB, SECOND, MEMPROF, SYSPROF };

/* How a step of reading went. */
enum step {
  READY,
  SHORT, /* The bytes in the window end within it. */
  BAD    /* It makes no sense; reader->error says why. */
};

bool ljp_tarantool_begins(const uint8_t *bytes, size_t size)
{
  static const char magics[][4] = {LJP_LJS_MAGIC, LJP_LJM_MAGIC, LJP_LJP_MAGIC};
  for (size_t i = 0; i < sizeof magics / sizeof *magics; i++)
    if (size >= LJP_TARANTOOL_MAGIC_BYTES &&
        memcmp(bytes, magics[i], LJP_TARANTOOL_MAGIC_BYTES) == 0)
      return true;
  return false;
}

enum ljp_status ljp_tarantool_init(struct ljp_tarantool_reader *r,
                                   const struct ljp_input *input)
{
  *r = (struct ljp_tarantool_reader){.input = *input,
                                     .room = LJP_TARANTOOL_WINDOW_BYTES};
  r->window = calloc(1, r->room + SLACK);
  if (!r->window) {
    snprintf(r->error, sizeof r->error, "%s", ljp_status_text(LJP_ERR_MEM));
    ljp_input_close(&r->input);
    return LJP_ERR_MEM;
  }
  r->at = r->end = r->window;
  return LJP_OK;
}

enum ljp_status ljp_tarantool_memory(struct ljp_tarantool_reader *r,
                                     const void *data, size_t size)
{
  struct ljp_input input;
  ljp_input_memory(&input, data, size);
  return ljp_tarantool_init(r, &input);
}

void ljp_tarantool_fini(struct ljp_tarantool_reader *r)
{
  free(r->window);
  r->window = NULL;
  ljp_input_close(&r->input);
}

static uint64_t reader_offset(const struct ljp_tarantool_reader *r,
                              const uint8_t *at)
{
  return r->base + (uint64_t)(at - r->window);
}

__attribute__((format(printf, 2, 3))) static void
reader_say(struct ljp_tarantool_reader *r, const char *format, ...)
{
  va_list args;
  va_start(args, format);
  vsnprintf(r->error, sizeof r->error, format, args);
  va_end(args);
}

static enum ljp_status reader_fail(struct ljp_tarantool_reader *r,
                                   enum ljp_status status)
{
  r->done = true;
  r->failed = status;
  if (status == LJP_ERR_MEM)
    reader_say(r, "%s", ljp_status_text(status));
  return status;
}

static size_t reader_have(const struct ljp_tarantool_reader *r)
{
  return (size_t)(r->end - r->at);
}

/* Makes room for more bytes in the window. LJP_ERR_MEM. */
static enum ljp_status reader_make_room(struct ljp_tarantool_reader *r)
{
  size_t have = reader_have(r), skip = (size_t)(r->at - r->window);
  if (skip) {
    memmove(r->window, r->at, have);
    r->base += skip;
  } else if (have == r->room) {
    uint8_t *larger = realloc(r->window, r->room * 2 + SLACK);
    if (!larger)
      return LJP_ERR_MEM;
    r->window = larger;
    r->room *= 2;
  }
  r->at = r->window;
  r->end = r->window + have;
  return LJP_OK;
}

/* Reads until `need` bytes are there; fewer only at the end of the input. */
static enum ljp_status reader_fill(struct ljp_tarantool_reader *r, size_t need)
{
  while (reader_have(r) < need && !r->eof) {
    enum ljp_status status = reader_make_room(r);
    if (status)
      return reader_fail(r, status);
    ssize_t got = r->input.read(&r->input, r->end,
                                r->room - (size_t)(r->end - r->window));
    if (got < 0) {
      reader_say(r, "cannot read at offset %" PRIu64 ": %s",
                 reader_offset(r, r->end), strerror(errno));
      return reader_fail(r, LJP_ERR_IO);
    }
    r->eof = got == 0;
    r->end += got;
    memset(r->end, 0, SLACK);
  }
  return LJP_OK;
}

/* -- Steps: each reads at *p and moves it ---------------------------------- */

static enum step reader_bad_number(struct ljp_tarantool_reader *r,
                                   const uint8_t *p)
{
  reader_say(r,
             "damaged at byte %" PRIu64 ": a number of more than 64 bits; "
             "nothing is read from there on",
             reader_offset(r, p));
  return BAD;
}

static enum step reader_bad_byte(struct ljp_tarantool_reader *r,
                                 const uint8_t *p, const char *what)
{
  reader_say(r,
             "damaged at byte %" PRIu64 ": 0x%02x is no %s; nothing is read "
             "from there on",
             reader_offset(r, p), *p, what);
  return BAD;
}

/* Reads `count` numbers. */
static inline enum step reader_numbers(struct ljp_tarantool_reader *r,
                                       const uint8_t **p, unsigned count,
                                       uint64_t *const *to)
{
  for (unsigned i = 0; i < count; i++)
    if (LJP_UNLIKELY(!ljp_number_get(p, to[i])))
      return reader_bad_number(r, *p);
  return LJP_LIKELY(*p <= r->end) ? READY : SHORT;
}

static enum step reader_string(struct ljp_tarantool_reader *r,
                               const uint8_t **p, struct ljp_str *text)
{
  const uint8_t *begin = *p;
  uint64_t len = 0;
  enum step step = reader_numbers(r, p, 1, (uint64_t *const[]){&len});
  if (step)
    return step;
  if (len > LJP_TARANTOOL_MAX_BYTES / 2) {
    reader_say(r,
               "damaged at byte %" PRIu64 ": a string of %" PRIu64
               " bytes; nothing is read from there on",
               reader_offset(r, begin), len);
    return BAD;
  }
  if (len > (uint64_t)(r->end - *p))
    return SHORT;
  *text = (struct ljp_str){(const char *)*p, (uint32_t)len};
  *p += len;
  return READY;
}

static enum step reader_symbol(struct ljp_tarantool_reader *r,
                               const uint8_t **p, unsigned kind)
{
  struct ljp_tarantool_symbol *s = &r->event.u.symbol;
  enum step step;
  *s = (struct ljp_tarantool_symbol){.kind = (uint8_t)kind};
  r->event.what = LJP_TARANTOOL_SYMBOL;
  if (kind == LJP_LJS_TRACE)
    return reader_numbers(r, p, 3,
                          (uint64_t *const[]){&s->key, &s->proto, &s->line});
  if ((step = reader_numbers(r, p, 1, (uint64_t *const[]){&s->key})) ||
      (step = reader_string(r, p, &s->text)) || kind == LJP_LJS_CFUNC)
    return step;
  return reader_numbers(r, p, 1, (uint64_t *const[]){&s->line});
}

static enum step reader_memory(struct ljp_tarantool_reader *r,
                               const uint8_t **p)
{
  unsigned head = **p, kind = head & 3, source = head >> LJP_LJM_SOURCE_SHIFT;
  if (head == LJP_LJM_ALLOC) {
    /* Their writer's header of a library without symbols, in place of that of
    ** a symbol: an allocation has a source. */
    ++*p;
    return reader_symbol(r, p, LJP_LJS_CFUNC);
  }
  if (!kind && source >= LJP_LJM_LFUNC && source <= LJP_LJM_TRACE) {
    ++*p;
    return reader_symbol(r, p, source - LJP_LJM_LFUNC);
  }
  if (!ljp_memory_event_begins(head))
    return reader_bad_byte(r, *p, "event");
  r->event.what = LJP_TARANTOOL_MEMORY;
  if (!ljp_memory_event_get(p, &r->event.u.memory))
    return reader_bad_number(r, *p);
  return *p <= r->end ? READY : SHORT;
}

/* Moves p behind a stack of guest frames. */
static enum step reader_guest(struct ljp_tarantool_reader *r, const uint8_t **p)
{
  for (;;) {
    unsigned head = *(*p)++;
    if (head & LJP_TARANTOOL_END)
      return *p <= r->end ? READY : SHORT;
    if (LJP_UNLIKELY(*p > r->end))
      return SHORT;
    if (LJP_UNLIKELY(head < LJP_LJP_FRAME_LUA || head > LJP_LJP_FRAME_BUILTIN))
      return reader_bad_byte(r, *p - 1, "frame");
    if (!ljp_number_skip(p) ||
        (head == LJP_LJP_FRAME_LUA && !ljp_number_skip(p)))
      return reader_bad_number(r, *p);
    if (LJP_UNLIKELY(*p > r->end))
      return SHORT;
  }
}

/* Moves p behind a stack of host addresses. */
static enum step reader_host(struct ljp_tarantool_reader *r, const uint8_t **p)
{
  uint64_t address;
  do {
    if (!ljp_number_get(p, &address))
      return reader_bad_number(r, *p);
    if (LJP_UNLIKELY(*p > r->end))
      return SHORT;
  } while (address);
  return READY;
}

static enum step reader_sample(struct ljp_tarantool_reader *r,
                               const uint8_t **p)
{
  const uint8_t *begin = *p;
  unsigned state = *(*p)++;
  enum step step = READY;
  if (LJP_UNLIKELY(state >= LJP_LJP_STATES)) {
    if (state > LJP_LJP_SYMBOL + LJP_LJS_TRACE)
      return reader_bad_byte(r, begin, "sample");
    return reader_symbol(r, p, state - LJP_LJP_SYMBOL);
  }
  if (state == LJP_LJP_TRACE) {
    if (!ljp_number_skip(p) || !ljp_number_skip(p) || !ljp_number_skip(p))
      return reader_bad_number(r, *p);
    step = *p <= r->end ? READY : SHORT;
  } else if (!ljp_tarantool_has_guest(state) || !(step = reader_guest(r, p))) {
    step = reader_host(r, p);
  }
  if (step)
    return step;
  r->event.what = LJP_TARANTOOL_SAMPLE;
  r->event.u.sample = (struct ljp_tarantool_sample){
      .state = (uint8_t)state, .bytes = begin, .size = (uint32_t)(*p - begin)};
  return READY;
}

/* -- Parts ----------------------------------------------------------------- */

static const char *reader_part_text(const struct ljp_tarantool_reader *r)
{
  return r->part <= SYMTAB ? "the symbol table" : "the events";
}

/* The input ends, or makes no sense, at r->at. */
static enum ljp_status reader_end(struct ljp_tarantool_reader *r, bool bad)
{
  if (r->part < MEMPROF) {
    if (!bad && r->part == SECOND && !reader_have(r))
      reader_say(r, "it is a symbol table (%" PRIu64 " symbols) without events",
                 r->symbols);
    else if (!bad)
      reader_say(r,
                 "cut short: it ends at byte %" PRIu64 ", within %s, so it has "
                 "no events",
                 reader_offset(r, r->end), reader_part_text(r));
    return reader_fail(r, LJP_ERR_FORMAT);
  }
  r->done = true;
  if (!bad && reader_have(r))
    reader_say(r,
               "cut short: it ends at byte %" PRIu64 ", within the event that "
               "begins at byte %" PRIu64,
               reader_offset(r, r->end), reader_offset(r, r->at));
  else if (!bad)
    reader_say(r,
               "cut short: it ends at byte %" PRIu64 ", without the mark of "
               "the end",
               reader_offset(r, r->end));
  return LJP_OK;
}

/* The mark of the end was read; counts what follows the events. */
static enum ljp_status reader_whole(struct ljp_tarantool_reader *r)
{
  enum ljp_status status;
  r->done = r->whole = true;
  while (!(status = reader_fill(r, 1)) && reader_have(r)) {
    r->rest += reader_have(r);
    r->at = r->end;
  }
  return status;
}

/* Begins a part. */
static enum ljp_status reader_head(struct ljp_tarantool_reader *r)
{
  static const struct {
    char magic[4];
    uint8_t version, part;
    const char *text;
  } parts[] = {
      {LJP_LJS_MAGIC, LJP_LJS_VERSION, SYMTAB, "symbol table"},
      {LJP_LJM_MAGIC, LJP_LJM_VERSION, MEMPROF, "memory events"},
      {LJP_LJP_MAGIC, LJP_LJP_VERSION, SYSPROF, "samples"},
  };
  unsigned i = r->part == FIRST ? 0 : 1;
  if (reader_have(r) < LJP_TARANTOOL_HEAD_BYTES)
    return reader_end(r, false);
  while (i < 3 && memcmp(r->at, parts[i].magic, LJP_TARANTOOL_MAGIC_BYTES) != 0)
    i++;
  if (i == 3) {
    reader_say(r,
               "at byte %" PRIu64 ", after the symbol table, there are "
               "neither memory events (%s) nor samples (%s)",
               reader_offset(r, r->at), LJP_LJM_MAGIC, LJP_LJP_MAGIC);
    return reader_fail(r, LJP_ERR_FORMAT);
  }
  unsigned version = r->at[LJP_TARANTOOL_MAGIC_BYTES];
  if (version != parts[i].version) {
    reader_say(r,
               "its %s (%s) have version %u; this program reads version %u "
               "only",
               i ? parts[i].text : "symbols", parts[i].magic, version,
               parts[i].version);
    return reader_fail(r, LJP_ERR_VERSION);
  }
  r->part = parts[i].part;
  r->memory = r->part == MEMPROF;
  r->samples = r->part == SYSPROF;
  r->event.what = LJP_TARANTOOL_HEAD;
  r->event.offset = reader_offset(r, r->at);
  memcpy(r->event.u.head.magic, r->at, LJP_TARANTOOL_MAGIC_BYTES);
  r->event.u.head.version = (uint8_t)version;
  r->at += LJP_TARANTOOL_HEAD_BYTES;
  return LJP_OK;
}

/* Reads an event of the part at r->at. */
static enum step reader_step(struct ljp_tarantool_reader *r, const uint8_t **p)
{
  if (LJP_UNLIKELY(!reader_have(r)))
    return SHORT;
  switch (r->part) {
  case MEMPROF:
    return reader_memory(r, p);
  case SYSPROF:
    return reader_sample(r, p);
  default:
    if (**p > LJP_LJS_TRACE)
      return reader_bad_byte(r, *p, "symbol");
    return reader_symbol(r, p, *(*p)++);
  }
}

/* Reads the next event of a part. *more: there was one. */
static enum ljp_status reader_event(struct ljp_tarantool_reader *r, bool *more)
{
  enum ljp_status status;
  enum step step;
  const uint8_t *p;
  *more = false;
  for (;;) {
    if (LJP_UNLIKELY(reader_have(r) < EVENT_BYTES) &&
        (status = reader_fill(r, EVENT_BYTES)))
      return status;
    if (LJP_UNLIKELY(reader_have(r) && (*r->at & LJP_TARANTOOL_END))) {
      r->at++;
      if (r->part != SYMTAB)
        return reader_whole(r);
      r->part = SECOND;
      return LJP_OK;
    }
    p = r->at;
    step = reader_step(r, &p);
    if (LJP_LIKELY(step == READY))
      break;
    if (step == BAD || r->eof)
      return reader_end(r, step == BAD);
    if (reader_have(r) >= LJP_TARANTOOL_MAX_BYTES) {
      reader_say(r,
                 "damaged at byte %" PRIu64 ": an event of more than %u bytes; "
                 "nothing is read from there on",
                 reader_offset(r, r->at), LJP_TARANTOOL_MAX_BYTES);
      return reader_end(r, true);
    }
    if ((status = reader_fill(r, reader_have(r) * 2 + EVENT_BYTES)))
      return status;
  }
  r->event.offset = reader_offset(r, r->at);
  r->at += p - r->at;
  *more = true;
  return LJP_OK;
}

enum ljp_status ljp_tarantool_next(struct ljp_tarantool_reader *r,
                                   const struct ljp_tarantool_event **event)
{
  enum ljp_status status = r->failed;
  bool more = false;
  *event = &r->event;
  while (!r->done) {
    if (LJP_LIKELY(r->part != FIRST && r->part != SECOND)) {
      if ((status = reader_event(r, &more)))
        return status;
      if (LJP_LIKELY(more)) {
        r->symbols += r->event.what == LJP_TARANTOOL_SYMBOL;
        r->events += r->event.what != LJP_TARANTOOL_SYMBOL;
        return LJP_OK;
      }
    } else {
      if ((status = reader_fill(r, LJP_TARANTOOL_HEAD_BYTES)))
        return status;
      return reader_head(r);
    }
  }
  if (!status && r->failed)
    status = r->failed;
  r->event.what = LJP_TARANTOOL_FINISH;
  r->event.offset = reader_offset(r, r->at);
  return status;
}
