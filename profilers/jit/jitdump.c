/*
** Jitdump files; see jitdump.h. Both files end with a whole record
** (jitdump_file.c).
*/
#include "profilers/jit/jitdump.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "profilers/jit/jitdump_file.h"
#include "src/base/assert.h"
#include "src/base/clock.h"
#include "src/luajit/functions.h"
#include "src/luajit/traces.h"

enum {
  MAGIC = 0x4a695444, /* "DTiJ" in bytes */
  VERSION = 1,
  MACHINE = 62, /* EM_X86_64 */
  NAME_BYTES = 512,
  MAP_BYTES = 4096
};

enum { LOAD = 0, DEBUG_INFO = 2, CLOSE = 3 };

struct header {
  uint32_t magic, version, bytes, machine, pad, pid;
  uint64_t time_ns, flags;
};
_Static_assert(sizeof(struct header) == 40, "as perf reads it");

struct prefix {
  uint32_t id, bytes;
  uint64_t time_ns;
};
_Static_assert(sizeof(struct prefix) == 16, "as perf reads it");

struct load {
  struct prefix prefix;
  uint32_t pid, tid;
  uint64_t vma, address, bytes, index;
};
_Static_assert(sizeof(struct load) == 56, "as perf reads it");

struct lines {
  struct prefix prefix;
  uint64_t address, count;
};
_Static_assert(sizeof(struct lines) == 32, "as perf reads it");

static struct {
  bool open, joined; /* joined: the files are a client's */
  struct ljp_jit_file dump, map;
  struct ljp_jit_file own_dump, own_map; /* while those of a client are open */
  void *mapped, *mapped_joined;
  char *buffer; /* for one trace's records */
  /* Here rather than on the stack of the thread that compiles. */
  char name[NAME_BYTES], line[NAME_BYTES + 64], chunk[NAME_BYTES];
  struct ljp_guest_proto proto;
  size_t length, room;
  bool failed; /* no more traces: a write has failed */
  const char *error;
  /* What the writer is writing without the lock: copies of dump and map. */
  bool writing, ending;
  bool orphan; /* nobody waits for the writer any more: it closes the files */
  struct ljp_jit_file batch_dump, batch_map;
} jitdump = {.dump.fd = -1, .map.fd = -1};
#define g (&jitdump)

static void **jitdump_mapped(void)
{
  return g->joined ? &g->mapped_joined : &g->mapped;
}

/* perf finds the file because it is mapped as code. The mapping stays after the
** session, so perf still finds the file then. */
static int jitdump_begin_dump(void)
{
  const struct header header = {.magic = MAGIC,
                                .version = VERSION,
                                .bytes = sizeof header,
                                .machine = MACHINE,
                                .pid = (uint32_t)getpid(),
                                .time_ns = ljp_clock_ns()};
  if (!g->dump.fresh)
    return 0;
  int error = ljp_jit_file_write(&g->dump, &header, sizeof header);
  if (error)
    return error;
  void *at =
      mmap(NULL, MAP_BYTES, PROT_READ | PROT_EXEC, MAP_PRIVATE, g->dump.fd, 0);
  if (at == MAP_FAILED)
    return errno;
  void **mapped = jitdump_mapped();
  if (*mapped)
    munmap(*mapped, MAP_BYTES);
  *mapped = at;
  return 0;
}

/* Those of a client are over: a session of our own goes on with our own. */
static void jitdump_restore(void)
{
  if (!g->joined)
    return;
  g->dump = g->own_dump;
  g->map = g->own_map;
  g->joined = false;
}

static enum ljp_status jitdump_open_named(struct ljp_failure *why)
{
  const char *folder = secure_getenv("JITDUMPDIR");
  long pid = (long)getpid();
  if (!folder || !*folder)
    folder = ".";
  if (strlen(folder) > 4096)
    return ljp_fail(why, LJP_ERR_USE, ENAMETOOLONG, "JITDUMPDIR: %s",
                    strerror(ENAMETOOLONG));
  snprintf(g->dump.path, sizeof g->dump.path, "%s/jit-%ld.dump", folder, pid);
  snprintf(g->map.path, sizeof g->map.path, "/tmp/perf-%ld.map", pid);
  enum ljp_status status = ljp_jit_file_open(&g->map, why);
  return status ? status : ljp_jit_file_open(&g->dump, why);
}

enum ljp_status ljp_jitdump_open(const int *fds, struct ljp_failure *why)
{
  g->error = NULL;
  if (g->writing)
    return ljp_fail(why, LJP_ERR_RUN, EBUSY,
                    "the files of the last jitdump are still being written");
  if (fds) {
    g->own_dump = g->dump;
    g->own_map = g->map;
  }
  g->joined = fds != NULL;
  g->map.fd = g->dump.fd = -1;
  enum ljp_status status =
      fds ? ljp_jit_file_take(&g->map, fds[1], why) : jitdump_open_named(why);
  if (!status && fds)
    status = ljp_jit_file_take(&g->dump, fds[0], why);
  if (!status) {
    int error = jitdump_begin_dump();
    if (!error) {
      g->open = true;
      g->failed = false;
      return LJP_OK;
    }
    status = ljp_fail(why, LJP_ERR_IO, error, "%s: %s", g->dump.path,
                      error == EPERM || error == EACCES
                          ? "cannot be mapped as code here (noexec?); set "
                            "JITDUMPDIR to another folder"
                          : strerror(error));
  }
  if (g->dump.fd >= 0) {
    ljp_jit_file_undo(&g->dump);
    ljp_jit_file_close(&g->dump);
  }
  if (g->map.fd >= 0) {
    ljp_jit_file_undo(&g->map);
    ljp_jit_file_close(&g->map);
  }
  jitdump_restore();
  return status;
}

bool ljp_jitdump_waits(void)
{
  return g->open && g->joined && g->dump.fd >= 0;
}

static void jitdump_batch(struct ljp_jit_file *batch, struct ljp_jit_file *f)
{
  *batch = *f;
  f->waiting = NULL;
  f->waiting_bytes = f->waiting_room = 0;
}

bool ljp_jitdump_take(bool end)
{
  const struct prefix last = {CLOSE, sizeof last, ljp_clock_ns()};
  if (!ljp_jitdump_waits() || g->writing)
    return false;
  if (end)
    ljp_jit_file_append(&g->dump, &last, sizeof last);
  else if (!g->dump.waiting_bytes && !g->map.waiting_bytes)
    return false;
  jitdump_batch(&g->batch_dump, &g->dump);
  jitdump_batch(&g->batch_map, &g->map);
  g->writing = true;
  g->ending = end;
  return true;
}

int ljp_jitdump_write(void)
{
  int error = ljp_jit_file_flush(&g->batch_dump);
  int second = ljp_jit_file_flush(&g->batch_map);
  ljp_jit_file_forget(&g->batch_dump);
  ljp_jit_file_forget(&g->batch_map);
  return error ? error : second;
}

const char *ljp_jitdump_wrote(int error)
{
  g->writing = false;
  if (g->orphan) {
    g->orphan = false;
    ljp_jit_file_close(&g->batch_dump);
    ljp_jit_file_close(&g->batch_map);
    return NULL;
  }
  g->dump.size = g->batch_dump.size;
  g->map.size = g->batch_map.size;
  if (g->ending) {
    ljp_jit_file_close(&g->dump);
    ljp_jit_file_close(&g->map);
  }
  if (!error || g->failed)
    return NULL;
  g->failed = true;
  return g->error = strerror(error);
}

const char *ljp_jitdump_error(void)
{
  return g->error;
}

bool ljp_jitdump_is_open(void)
{
  return g->open;
}

void ljp_jitdump_close(bool undo)
{
  const struct prefix end = {CLOSE, sizeof end, ljp_clock_ns()};
  if (!g->open)
    return;
  g->open = false;
  if (g->joined && (g->writing || g->dump.waiting_bytes) && !g->error)
    g->error = "the last traces were not written in time";
  if (g->writing) {
    g->orphan = true;
    g->dump.fd = g->map.fd = -1;
  }
  free(g->buffer);
  g->buffer = NULL;
  g->room = g->length = 0;
  if (undo) {
    ljp_jit_file_undo(&g->dump);
    ljp_jit_file_undo(&g->map);
  }
  void **mapped = jitdump_mapped();
  if (!g->dump.inode && *mapped) {
    munmap(*mapped, MAP_BYTES);
    *mapped = NULL;
  }
  off_t size = g->dump.size;
  if (!g->joined) /* else the writer has written it */
    ljp_jit_file_write(&g->dump, &end, sizeof end);
  g->dump.size = size; /* a later session overwrites the end record */
  ljp_jit_file_close(&g->dump);
  ljp_jit_file_close(&g->map);
  ljp_jit_file_forget(&g->dump);
  ljp_jit_file_forget(&g->map);
  jitdump_restore();
}

void ljp_jitdump_forked(void)
{
  ljp_jit_file_close(&g->dump);
  ljp_jit_file_close(&g->map);
  if (g->mapped)
    munmap(g->mapped, MAP_BYTES);
  if (g->mapped_joined)
    munmap(g->mapped_joined, MAP_BYTES);
  g->mapped = g->mapped_joined = NULL;
  g->writing = g->orphan = false;
  g->error = NULL;
  g->joined = false;
  g->dump.inode = g->map.inode = 0;
  g->open = false;
  /* Not freed: a thread of the parent may have been resizing it. */
  g->buffer = NULL;
  g->dump.waiting = g->map.waiting = NULL;
  g->dump.waiting_bytes = g->dump.waiting_room = 0;
  g->map.waiting_bytes = g->map.waiting_room = 0;
  g->room = g->length = 0;
}

/* -- Records --------------------------------------------------------------- */
static void jitdump_put(const void *data, size_t bytes)
{
  if (g->failed)
    return;
  if (g->length + bytes > g->room) {
    size_t room = (g->length + bytes) * 2;
    char *buffer = realloc(g->buffer, room);
    if (!buffer) {
      g->failed = true;
      return;
    }
    g->buffer = buffer;
    g->room = room;
  }
  memcpy(g->buffer + g->length, data, bytes);
  g->length += bytes;
}

/* A chunk's name in readable form, without control characters. */
static void jitdump_chunk_text(const char *chunk, char *out, size_t room)
{
  bool plain = *chunk == '@' || *chunk == '=';
  snprintf(out, room, "%s%.*s%s", plain ? "" : "[string \"",
           plain ? (int)room : 40, chunk + plain, plain ? "" : "\"]");
  for (char *p = out; *p; p++)
    if ((unsigned char)*p < ' ' || *p == 127)
      *p = '?';
}

static struct ljp_guest_proto *jitdump_no_proto(void)
{
  memset(&g->proto, 0, sizeof g->proto);
  g->proto.chunk[0] = '?'; /* of a function that nothing is known of */
  return &g->proto;
}

/* TRACE_7::name@file:12 */
static void jitdump_trace_name(const struct ljp_guest_trace *trace, char *out,
                               size_t room)
{
  struct ljp_guest_proto *proto = jitdump_no_proto();
  ljp_guest_proto_of(trace->place_ref, trace->newest, proto);
  jitdump_chunk_text(proto->chunk, g->chunk, sizeof g->chunk);
  snprintf(out, room, "TRACE_%u::%.128s%s%.255s:%u", trace->number, proto->name,
           *proto->name ? "@" : "", g->chunk, trace->place_line);
}

static void jitdump_put_line(uint64_t address, uint32_t number,
                             const char *chunk)
{
  int32_t line[] = {(int32_t)number, 0 /* discriminator */};
  jitdump_put(&address, sizeof address);
  jitdump_put(line, sizeof line);
  jitdump_put(chunk, strlen(chunk) + 1);
}

/* The last entry repeats the line at the end of the code, because perf assumes
** that the lines cover the code from the first entry to the last. */
static void jitdump_put_lines(const struct ljp_guest_trace *trace,
                              uint64_t time_ns,
                              const struct ljp_guest_line *lines, size_t count)
{
  size_t at = g->length;
  ljp_assert(count > 0);
  struct lines head = {.prefix = {.id = DEBUG_INFO, .time_ns = time_ns},
                       .address = trace->code,
                       .count = count + 1};
  uint32_t function = 0;
  char *chunk = g->chunk;
  bool alive = false;
  jitdump_put(&head, sizeof head);
  for (size_t i = 0; i < count; i++) {
    if (!i || lines[i].function != function) {
      function = lines[i].function;
      /* The collector may free the functions of garbage code before the code
      ** itself. Then their lines mean nothing. */
      struct ljp_guest_proto *proto = jitdump_no_proto();
      bool known = ljp_guest_proto_of(function, trace->newest, proto);
      alive = known && proto->alive;
      jitdump_chunk_text(proto->chunk, chunk, sizeof g->chunk);
    }
    jitdump_put_line(trace->code + lines[i].offset, alive ? lines[i].line : 0,
                     chunk);
  }
  jitdump_put_line(trace->code + trace->code_bytes,
                   alive ? lines[count - 1].line : 0, chunk);
  head.prefix.bytes = (uint32_t)(g->length - at);
  if (!g->failed)
    memcpy(g->buffer + at, &head, sizeof head);
}

static void jitdump_put_load(const struct ljp_guest_trace *trace,
                             uint64_t time_ns, const char *name,
                             const uint8_t *code)
{
  size_t name_bytes = strlen(name) + 1;
  const struct load load = {
      .prefix = {.id = LOAD,
                 .bytes =
                     (uint32_t)(sizeof load + name_bytes + trace->code_bytes),
                 .time_ns = time_ns},
      .pid = (uint32_t)getpid(),
      /* A client's: traces that exist are told by a thread of ours. */
      .tid = (uint32_t)(g->joined ? getpid() : gettid()),
      .vma = trace->code,
      .address = trace->code,
      .bytes = trace->code_bytes,
      .index = trace->id};
  jitdump_put(&load, sizeof load);
  jitdump_put(name, name_bytes);
  jitdump_put(code, trace->code_bytes);
}

static int jitdump_add_trace(const struct ljp_guest_trace *trace, uint8_t *code,
                             struct ljp_guest_line *lines)
{
  size_t bytes = trace->code_bytes, count = bytes;
  uint64_t now = ljp_clock_ns();
  if (!ljp_guest_trace_code(trace->id, code, &bytes, lines, &count))
    return 0; /* the trace has been flushed */
  jitdump_trace_name(trace, g->name, sizeof g->name);
  g->length = 0;
  jitdump_put_lines(trace, now, lines, count);
  jitdump_put_load(trace, now, g->name, code);
  if (g->failed)
    return ENOMEM;
  int error = ljp_jit_file_append(&g->dump, g->buffer, g->length);
  if (error)
    return error;
  int n = snprintf(g->line, sizeof g->line, "%llx %llx %s\n",
                   (unsigned long long)trace->code,
                   (unsigned long long)trace->code_bytes, g->name);
  return ljp_jit_file_append(&g->map, g->line, (size_t)n);
}

const char *ljp_jitdump_add(uint64_t id)
{
  struct ljp_guest_trace trace;
  if (!g->open || g->failed || g->dump.fd < 0 || !ljp_guest_trace(id, &trace) ||
      !trace.code_bytes)
    return NULL;
  uint8_t *code = malloc(trace.code_bytes);
  struct ljp_guest_line *lines = calloc(trace.code_bytes, sizeof *lines);
  int error = code && lines ? jitdump_add_trace(&trace, code, lines) : ENOMEM;
  free(code);
  free(lines);
  if (!error)
    return NULL;
  g->failed = true;
  return g->error = strerror(error);
}
