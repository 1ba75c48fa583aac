/*
** Reads what a process publishes as other profilers do, from outside of it: the
** process context (OTEP 4719) and records of labels (OTEP 4947). Checks more than they
** do.
*/
#ifndef LJP_TEST_PUBLISHED_H
#define LJP_TEST_PUBLISHED_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

enum { PUBLISHED_TEXT = 2048, PUBLISHED_PAYLOAD = 65536 };

struct published_context {
  unsigned count; /* of keys */
  char key[256][65];
};

static inline bool published_read(pid_t pid, uint64_t from, void *to,
                                  size_t bytes)
{
  struct iovec local = {to, bytes};
  struct iovec remote = {(void *)(uintptr_t)from, bytes};
  return process_vm_readv(pid, &local, 1, &remote, 1, 0) == (ssize_t)bytes;
}

/* Where the process's context is; 0: nowhere. *count: how many there are. */
static inline uint64_t published_find(pid_t pid, unsigned *count)
{
  char path[64], line[1024];
  uint64_t found = 0;
  *count = 0;
  snprintf(path, sizeof path, "/proc/%d/maps", (int)pid);
  FILE *maps = fopen(path, "r");
  while (maps && fgets(line, sizeof line, maps)) {
    unsigned long long start, end;
    if ((strstr(line, " /memfd:OTEL_CTX") || strstr(line, " [anon:OTEL_CTX]") ||
         strstr(line, " [anon_shmem:OTEL_CTX]")) &&
        sscanf(line, "%llx-%llx", &start, &end) == 2) {
      found = start;
      ++*count;
    }
  }
  if (maps)
    fclose(maps);
  return found;
}

/* -- protobuf: fields of bytes with a length -------------------------------- */
struct published_bytes {
  const uint8_t *at, *end;
};

static inline bool published_number(struct published_bytes *in, uint64_t *n)
{
  *n = 0;
  for (unsigned shift = 0; in->at < in->end && shift < 64; shift += 7) {
    *n |= (uint64_t)(*in->at & 127) << shift;
    if (!(*in->at++ & 128))
      return true;
  }
  return false;
}

static inline bool published_field(struct published_bytes *in, unsigned field,
                                   struct published_bytes *out)
{
  uint64_t tag, bytes;
  if (!published_number(in, &tag) || tag != (field << 3 | 2) ||
      !published_number(in, &bytes) || bytes > (uint64_t)(in->end - in->at))
    return false;
  out->at = in->at;
  out->end = in->at += bytes;
  return true;
}

static inline bool published_is(struct published_bytes text, const char *wanted)
{
  return (size_t)(text.end - text.at) == strlen(wanted) &&
         memcmp(text.at, wanted, strlen(wanted)) == 0;
}

/* KeyValue: its key and value. */
static inline bool published_pair(struct published_bytes *in, const char *key,
                                  struct published_bytes *value)
{
  struct published_bytes pair, name;
  return published_field(in, 2, &pair) && published_field(&pair, 1, &name) &&
         published_is(name, key) && published_field(&pair, 2, value) &&
         pair.at == pair.end;
}

static inline const char *published_decode(struct published_bytes in,
                                           struct published_context *context)
{
  struct published_bytes value, text, array;
  context->count = 0;
  if (!published_pair(&in, "threadlocal.schema_version", &value) ||
      !published_field(&value, 1, &text) || value.at != value.end ||
      !published_is(text, "tlsdesc_v1_dev"))
    return "no schema";
  if (!published_pair(&in, "threadlocal.attribute_key_map", &value) ||
      !published_field(&value, 5, &array) || value.at != value.end ||
      in.at != in.end)
    return "no keys";
  while (array.at < array.end) {
    struct published_bytes item;
    if (!published_field(&array, 1, &item) ||
        !published_field(&item, 1, &text) || item.at != item.end ||
        text.at == text.end || text.end - text.at > 64 || context->count == 256)
      return "a wrong key";
    char *to = context->key[context->count++];
    memcpy(to, text.at, (size_t)(text.end - text.at));
    to[text.end - text.at] = '\0';
  }
  return NULL;
}

struct published_header {
  char signature[8];
  uint32_t version, bytes;
  uint64_t time, payload;
};

static inline bool published_header(pid_t pid, uint64_t at,
                                    struct published_header *header)
{
  return published_read(pid, at, header, sizeof *header) &&
         memcmp(header->signature, "OTEL_CTX", 8) == 0 && header->version == 2;
}

/* Returns NULL, or what is wrong. "none": there is no context. As readers do, a thread
** remembers where the context of the process was. */
static inline const char *
published_read_context(pid_t pid, struct published_context *context)
{
  static _Thread_local uint8_t payload[PUBLISHED_PAYLOAD];
  static _Thread_local uint64_t at;
  struct published_header header, after;
  unsigned count;
  if (!at || !published_header(pid, at, &header)) {
    if (!(at = published_find(pid, &count)))
      return "none";
    if (count != 1)
      return "more than one";
  }
  for (int tries = 0; tries < 100; tries++) {
    if (!published_header(pid, at, &header))
      return "a wrong header";
    if (!header.time)
      continue;
    if (!header.bytes || header.bytes > sizeof payload ||
        !published_read(pid, header.payload, payload, header.bytes))
      return "no payload";
    if (!published_header(pid, at, &after))
      return "no header";
    if (after.time == header.time)
      return published_decode(
          (struct published_bytes){payload, payload + header.bytes}, context);
  }
  return "changes without end";
}

/* The labels of a record as "key=value,key=value". False: text says what is wrong. */
static inline bool published_labels(pid_t pid, uint64_t record,
                                    const struct published_context *context,
                                    char text[PUBLISHED_TEXT])
{
  struct {
    uint8_t trace[24], valid, flags;
    uint16_t bytes;
    uint8_t attributes[612];
  } r;
  static const uint8_t none[24];
  size_t at = 0;
  int n = 0;
  snprintf(text, PUBLISHED_TEXT, "no record");
  if (record % 2 || !published_read(pid, record, &r, 28))
    return false;
  snprintf(text, PUBLISHED_TEXT, "a wrong record");
  if (r.valid != 1 || r.flags || memcmp(r.trace, none, 24) != 0 ||
      r.bytes > sizeof r.attributes ||
      !published_read(pid, record + 28, r.attributes, r.bytes))
    return false;
  text[0] = '\0';
  while (at < r.bytes) {
    size_t bytes = at + 1 < r.bytes ? r.attributes[at + 1] : 1000;
    if (at + 2 + bytes > r.bytes || r.attributes[at] >= context->count) {
      snprintf(text, PUBLISHED_TEXT, "a wrong attribute");
      return false;
    }
    n += snprintf(text + n, (size_t)(PUBLISHED_TEXT - n), "%s%s=%.*s",
                  n ? "," : "", context->key[r.attributes[at]], (int)bytes,
                  (const char *)r.attributes + at + 2);
    at += 2 + bytes;
  }
  return true;
}

#endif
