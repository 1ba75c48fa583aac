/*
** See process_context.h. The mapping holds the header, which never moves, and behind
** it two rooms for the payload: an update writes the one that is not shown. A reader
** that meets an update sees another time in the header afterwards, and reads again.
**
** Global because there is one process. Written under the lock of published.c.
*/
#include "profilers/session/process_context.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "src/base/assert.h"
#include "src/base/clock.h"
#include "src/base/own_proc.h"

#ifndef PR_SET_VMA /* Linux 5.17 */
#define PR_SET_VMA 0x53564d41
#define PR_SET_VMA_ANON_NAME 0
#endif
#ifndef MFD_NOEXEC_SEAL /* Linux 6.3 */
#define MFD_NOEXEC_SEAL 8u
#endif

#define CONTEXT_NAME "OTEL_CTX"

/* The values that readers expect. OTEP 4947 names a later one, which no reader knows
** so far. */
#define CONTEXT_SCHEMA_KEY "threadlocal.schema_version"
#define CONTEXT_SCHEMA "tlsdesc_v1_dev"
#define CONTEXT_MAP_KEY "threadlocal.attribute_key_map"

enum {
  CONTEXT_VERSION = 2,
  /* A key with the heads of its messages, and all that stands around the keys. */
  CONTEXT_ROOM = LJP_CONTEXT_KEYS * (LJP_CONTEXT_KEY_BYTES + 4) + 256,
  CONTEXT_PAGE = 4096,
  CONTEXT_HEAD = CONTEXT_PAGE, /* the first room begins behind it */
  CONTEXT_BYTES = CONTEXT_HEAD + 2 * ((CONTEXT_ROOM + CONTEXT_PAGE - 1) /
                                      CONTEXT_PAGE * CONTEXT_PAGE),
};
_Static_assert(CONTEXT_ROOM <= 65536, "readers take no more");

struct context_header {
  char signature[8];
  uint32_t version, payload_bytes;
  _Atomic uint64_t published_ns; /* 0: being changed */
  uint64_t payload;
};
_Static_assert(sizeof(struct context_header) == 32, "OTEP 4719");

static struct context_header *context;
static unsigned context_room; /* that is shown: 0, 1 */

bool ljp_context_exists(void)
{
  return context != NULL;
}

void ljp_context_forget(void)
{
  context = NULL;
}

/* -- The payload: protobuf ------------------------------------------------- */

/* Numbers of fields, and what follows each: bytes with their length. */
enum {
  FIELD_ATTRIBUTES = 2,   /* of ProcessContext: KeyValue */
  FIELD_KEY = 1,          /* of KeyValue */
  FIELD_VALUE = 2,        /* of KeyValue: AnyValue */
  FIELD_STRING_VALUE = 1, /* of AnyValue */
  FIELD_ARRAY_VALUE = 5,  /* of AnyValue: ArrayValue */
  FIELD_VALUES = 1,       /* of ArrayValue: AnyValue */
};

static size_t context_number_bytes(size_t n)
{
  size_t bytes = 1;
  while (n >>= 7)
    bytes++;
  return bytes;
}

/* The bytes of a field with `bytes` of contents. */
static size_t context_field_bytes(size_t bytes)
{
  return 1 + context_number_bytes(bytes) + bytes;
}

static uint8_t *context_put_head(uint8_t *to, unsigned field, size_t bytes)
{
  *to++ = (uint8_t)(field << 3 | 2);
  for (; bytes > 127; bytes >>= 7)
    *to++ = (uint8_t)(bytes | 128);
  *to++ = (uint8_t)bytes;
  return to;
}

static uint8_t *context_put_text(uint8_t *to, unsigned field, const char *text)
{
  size_t bytes = strlen(text);
  to = context_put_head(to, field, bytes);
  /* NOLINTNEXTLINE(bugprone-not-null-terminated-result): protobuf has no NUL. */
  memcpy(to, text, bytes);
  return to + bytes;
}

/* A KeyValue up to the contents of its value, which has `bytes`. */
static uint8_t *context_put_key(uint8_t *to, const char *key, size_t bytes)
{
  to = context_put_head(to, FIELD_ATTRIBUTES,
                        context_field_bytes(strlen(key)) +
                            context_field_bytes(bytes));
  to = context_put_text(to, FIELD_KEY, key);
  return context_put_head(to, FIELD_VALUE, bytes);
}

static uint32_t context_encode(uint8_t *to, const char *const *keys,
                               unsigned count)
{
  uint8_t *const start = to;
  size_t values = 0;
  to = context_put_key(to, CONTEXT_SCHEMA_KEY,
                       context_field_bytes(strlen(CONTEXT_SCHEMA)));
  to = context_put_text(to, FIELD_STRING_VALUE, CONTEXT_SCHEMA);
  for (unsigned i = 0; i < count; i++)
    values += context_field_bytes(context_field_bytes(strlen(keys[i])));
  to = context_put_key(to, CONTEXT_MAP_KEY, context_field_bytes(values));
  to = context_put_head(to, FIELD_ARRAY_VALUE, values);
  for (unsigned i = 0; i < count; i++) {
    to = context_put_head(to, FIELD_VALUES,
                          context_field_bytes(strlen(keys[i])));
    to = context_put_text(to, FIELD_STRING_VALUE, keys[i]);
  }
  ljp_assert(to - start <= CONTEXT_ROOM);
  return (uint32_t)(to - start);
}

/* -- Other libraries ------------------------------------------------------- */

/* Does this line of /proc/self/maps name a process context? */
static bool context_is_line(const char *line)
{
  static const char *const names[] = {"[anon_shmem:OTEL_CTX]",
                                      "[anon:OTEL_CTX]", "/memfd:OTEL_CTX"};
  /* Address, rights, offset, device and inode stand before the name. */
  for (int field = 0; field < 5; field++) {
    line += strcspn(line, " ");
    line += strspn(line, " ");
  }
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (strncmp(line, names[i], strlen(names[i])) == 0)
      return true;
  return false;
}

/* Has another library made one? While there is none of ours. False, too, if the
** process cannot read about itself. */
static bool context_of_another(void)
{
  /* Lines are short, but for long paths, whose ends do not matter. */
  static char text[4096];
  size_t have = 0;
  bool found = false;
  int fd = ljp_own_proc_open("maps", O_RDONLY | O_CLOEXEC);
  while (fd >= 0 && !found) {
    ssize_t got = read(fd, text + have, sizeof text - 1 - have);
    if (got < 0 && errno == EINTR)
      continue;
    if (got <= 0)
      break;
    have += (size_t)got;
    text[have] = '\0';
    char *line = text;
    for (char *end; !found && (end = strchr(line, '\n')); line = end + 1) {
      *end = '\0';
      found = context_is_line(line);
    }
    have -= (size_t)(line - text);
    memmove(text, line, have);
    if (have == sizeof text - 1)
      have = 0; /* A line that fills it has a path of its own. */
  }
  if (fd >= 0)
    close(fd);
  return found;
}

/* -- The mapping ----------------------------------------------------------- */

/* Readers find the mapping by its name: that of a memfd, or one that the kernel
** gives. */
static bool context_name(void *mapping)
{
  return prctl(PR_SET_VMA, PR_SET_VMA_ANON_NAME, (unsigned long)mapping,
               (unsigned long)CONTEXT_BYTES,
               (unsigned long)(uintptr_t)CONTEXT_NAME) == 0;
}

static int context_memfd(unsigned flags)
{
  return (int)syscall(SYS_memfd_create, CONTEXT_NAME, flags);
}

/* *named: a memfd has given it its name. */
static void *context_map(bool *named)
{
  const unsigned flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
  void *mapping = MAP_FAILED;
  int fd = context_memfd(flags | MFD_NOEXEC_SEAL);
  if (fd < 0)
    fd = context_memfd(flags);
  if (fd >= 0 && ftruncate(fd, CONTEXT_BYTES) == 0)
    mapping =
        mmap(NULL, CONTEXT_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
  if (fd >= 0)
    close(fd);
  *named = mapping != MAP_FAILED;
  if (!*named)
    mapping = mmap(NULL, CONTEXT_BYTES, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return mapping;
}

/* Shows the keys in the room that is not shown so far. */
static void context_show(const char *const *keys, unsigned count)
{
  const unsigned room = !context_room;
  uint8_t *payload = (uint8_t *)context + CONTEXT_HEAD +
                     room * ((CONTEXT_BYTES - CONTEXT_HEAD) / 2);
  const uint64_t before = atomic_load(&context->published_ns);
  const uint32_t bytes = context_encode(payload, keys, count);
  uint64_t now = ljp_clock_of(CLOCK_BOOTTIME);
  /* OTEP 4719: readers on other processors see 0, then the fields, then the time. */
  atomic_store(&context->published_ns, 0);
  atomic_thread_fence(memory_order_seq_cst);
  context->payload = (uintptr_t)payload;
  context->payload_bytes = bytes;
  atomic_thread_fence(memory_order_seq_cst);
  atomic_store(&context->published_ns, now > before ? now : before + 1);
  context_room = room;
}

int ljp_context_start(const char *const *keys, unsigned count)
{
  bool named;
  if (context_of_another())
    return EEXIST;
  void *mapping = context_map(&named);
  if (mapping == MAP_FAILED)
    return errno;
  if (madvise(mapping, CONTEXT_BYTES, MADV_DONTFORK)) {
    int error = errno;
    munmap(mapping, CONTEXT_BYTES);
    return error;
  }
  context = mapping;
  memcpy(context->signature, CONTEXT_NAME, sizeof context->signature);
  context->version = CONTEXT_VERSION;
  context_show(keys, count);
  if (!context_name(mapping) && !named) {
    ljp_context_stop();
    return ENOTSUP;
  }
  return 0;
}

void ljp_context_update(const char *const *keys, unsigned count)
{
  if (!context)
    return;
  context_show(keys, count);
  context_name(context); /* Some readers wait for this call. */
}

void ljp_context_stop(void)
{
  if (context)
    munmap(context, CONTEXT_BYTES);
  context = NULL;
}
