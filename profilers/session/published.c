/*
** See published.h. Records and keys are made under the lock, and stay.
**
** A child of fork() has the records of its parent, but no process context. The first
** record that it asks for makes one: therefore the fork handler makes all records
** asked for again.
*/
#include "profilers/session/published.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "profilers/session/labels.h"
#include "profilers/session/lock.h"
#include "profilers/session/process_context.h"
#include "src/luajit/publish.h"

enum {
  PUBLISHED_SETS = 1 + LJP_LABELS_SETS + LJP_LABELS_OTHERS,
  RECORD_BYTES = 640, /* As readers take it (OTEP 4947). */
  VALUE_BYTES = 255,
};

struct published_record {
  uint8_t trace_id[16], span_id[8]; /* 0: no trace */
  uint8_t valid, trace_flags;
  uint16_t attributes_bytes;
  uint8_t attributes[]; /* index of the key, length of the value, value */
};
_Static_assert(offsetof(struct published_record, valid) == 24 &&
                   offsetof(struct published_record, attributes) == 28,
               "OTEP 4947");
enum { ATTRIBUTES_BYTES = RECORD_BYTES - 28 };

static const void *published_make(uint32_t set);
static void published_closed(void);

static const void *_Atomic published_records[PUBLISHED_SETS];
static struct ljp_guest_publisher published_publisher = {
    .records = published_records,
    .make = published_make,
    .closed = published_closed};

/* Under the lock, but for `cut`. */
static struct {
  unsigned vms; /* that publish */
  unsigned key_count;
  uint32_t sets;
  const char *keys[LJP_CONTEXT_KEYS];
  char names[LJP_CONTEXT_KEYS][LJP_CONTEXT_KEY_BYTES + 1];
  _Atomic uint64_t cut;
} published;

_Static_assert((int)LJP_CONTEXT_KEY_BYTES >= (int)LJP_LABELS_KEY_BYTES,
               "keys are whole");

static struct ljp_profiler_lock published_lock =
    LJP_PROFILER_LOCK_INIT(ljp_context_forget);

/* -- Text ------------------------------------------------------------------ */

/* The bytes of the character at text, which ends with NUL; 0: it is not UTF-8. */
static size_t published_character(const unsigned char *text)
{
  static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
  const size_t bytes = text[0] < 0x80   ? 1
                       : text[0] < 0xc2 ? 0
                       : text[0] < 0xe0 ? 2
                       : text[0] < 0xf0 ? 3
                       : text[0] < 0xf5 ? 4
                                        : 0;
  uint32_t character = bytes < 2 ? text[0] : text[0] & (0x7fu >> bytes);
  for (size_t i = 1; i < bytes; i++) {
    if ((text[i] & 0xc0) != 0x80)
      return 0;
    character = character << 6 | (text[i] & 0x3f);
  }
  const bool valid =
      bytes < 2 || (character >= least[bytes] && character <= 0x10ffff &&
                    (character < 0xd800 || character > 0xdfff));
  return valid ? bytes : 0;
}

/* Copies text as UTF-8, whole characters of at most `room` bytes. Readers drop other
** text, so each byte that is not UTF-8 becomes '?'. Returns the bytes; *whole: all of
** the text is there. */
static size_t published_copy(char *to, size_t room, const char *text,
                             bool *whole)
{
  size_t at = 0;
  while (*text) {
    const size_t bytes = published_character((const unsigned char *)text);
    const size_t taken = bytes ? bytes : 1;
    if (at + taken > room)
      break;
    memcpy(to + at, bytes ? text : "?", taken);
    at += taken;
    text += taken;
  }
  *whole = !*text;
  return at;
}

/* -- Records --------------------------------------------------------------- */

/* The index of a key; makes it, if there is room. *more: it is new. */
static bool published_key(const char *key, unsigned *index, bool *more)
{
  char name[LJP_CONTEXT_KEY_BYTES + 1];
  bool whole;
  name[published_copy(name, LJP_CONTEXT_KEY_BYTES, key, &whole)] = '\0';
  for (*index = 0; *index < published.key_count; ++*index)
    if (strcmp(published.keys[*index], name) == 0)
      return true;
  if (*index == LJP_CONTEXT_KEYS)
    return false;
  memcpy(published.names[*index], name, sizeof name);
  published.keys[*index] = published.names[*index];
  published.key_count++;
  return *more = true;
}

/* Encodes the labels. Returns the bytes. */
static size_t published_encode(const struct ljp_labels *labels,
                               uint8_t to[ATTRIBUTES_BYTES], bool *more)
{
  size_t at = 0;
  unsigned cut = 0;
  for (unsigned i = 0; i < labels->count; i++) {
    char value[VALUE_BYTES];
    bool whole;
    unsigned index;
    const size_t bytes =
        published_copy(value, sizeof value, labels->list[i].value, &whole);
    if (at + 2 + bytes > ATTRIBUTES_BYTES ||
        !published_key(labels->list[i].key, &index, more)) {
      cut++;
      continue;
    }
    cut += !whole;
    to[at++] = (uint8_t)index;
    to[at++] = (uint8_t)bytes;
    memcpy(to + at, value, bytes);
    at += bytes;
  }
  atomic_fetch_add_explicit(&published.cut, cut, memory_order_relaxed);
  return at;
}

static const void *published_new(uint32_t set)
{
  uint8_t attributes[ATTRIBUTES_BYTES];
  struct ljp_labels labels;
  bool more = false;
  ljp_labels_get(set, &labels);
  struct published_record *record = calloc(1, RECORD_BYTES);
  if (!record)
    return NULL;
  const size_t bytes = published_encode(&labels, attributes, &more);
  memcpy(record->attributes, attributes, bytes);
  record->attributes_bytes = (uint16_t)bytes;
  record->valid = 1;
  /* Readers learn a new key before they meet it. */
  if (more)
    ljp_context_update(published.keys, published.key_count);
  published.sets++;
  atomic_store_explicit(&published_records[set], record, memory_order_release);
  return record;
}

/* In a VM's hooks. */
static const void *published_make(uint32_t set)
{
  const int error = errno;
  if (set >= PUBLISHED_SETS)
    return NULL;
  ljp_profiler_lock(&published_lock);
  if (!ljp_context_exists() && published.vms)
    ljp_context_start(published.keys, published.key_count);
  const void *record = atomic_load(&published_records[set]);
  if (!record)
    record = published_new(set);
  atomic_store_explicit(&published_publisher.known, PUBLISHED_SETS,
                        memory_order_release);
  ljp_profiler_unlock(&published_lock);
  errno = error;
  return record;
}

/* -- Beginning and end ----------------------------------------------------- */

static void published_forked(void)
{
  atomic_store(&published_publisher.known, 0);
}

static enum ljp_status published_start_context(struct ljp_failure *why)
{
  static bool handles_forks;
  int error = 0;
  if (!handles_forks)
    error = pthread_atfork(NULL, NULL, published_forked);
  handles_forks = !error;
  if (!error && !published.vms && ljp_guest_published())
    error = EEXIST;
  if (!error && !ljp_context_exists())
    error = ljp_context_start(published.keys, published.key_count);
  if (error == EEXIST)
    return ljp_fail(why, LJP_ERR_RUN, error,
                    "another library of this process publishes its context "
                    "(OTEL_CTX) already");
  if (error == ENOTSUP)
    return ljp_fail(why, LJP_ERR_IO, error,
                    "no reader could find the labels: this system has neither "
                    "memfd_create() nor names for mappings");
  return error ? ljp_fail(why, LJP_ERR_IO, error,
                          "the process context cannot be made: %s",
                          ljp_errno_text(error))
               : LJP_OK;
}

enum ljp_status ljp_publish_start(struct lua_State *L, struct ljp_failure *why)
{
  const enum ljp_guest_publishable can = ljp_guest_can_publish(L);
  if (can == LJP_PUBLISHABLE_NO_ENTRY)
    return ljp_fail(why, LJP_ERR_MEM, ENOMEM,
                    "memory was short when this VM was made, so the profilers "
                    "do not know it");
  if (can == LJP_PUBLISHABLE_FINALIZER)
    return ljp_fail(why, LJP_ERR_RUN, EPERM,
                    "labels cannot be published from a finalizer");
  ljp_profiler_lock(&published_lock);
  enum ljp_status status = published_start_context(why);
  if (!status)
    published.vms += !ljp_guest_publishes(L);
  ljp_profiler_unlock(&published_lock);
  if (!status)
    ljp_guest_publish(L, &published_publisher);
  return status;
}

/* One VM less publishes. */
static void published_closed(void)
{
  ljp_profiler_lock(&published_lock);
  if (!--published.vms)
    ljp_context_stop();
  ljp_profiler_unlock(&published_lock);
}

void ljp_publish_stop(struct lua_State *L)
{
  if (!ljp_guest_publishes(L))
    return;
  ljp_guest_unpublish(L);
  published_closed();
}

bool ljp_publish_status(struct lua_State *L, struct ljp_publish_status *status)
{
  if (!ljp_guest_publishes(L))
    return false;
  ljp_profiler_lock(&published_lock);
  status->sets = published.sets;
  status->keys = published.key_count;
  ljp_profiler_unlock(&published_lock);
  status->cut = atomic_load_explicit(&published.cut, memory_order_relaxed);
  return true;
}
