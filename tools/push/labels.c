/*
** The labels of what is pushed.
*/
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "parsers/base/index.h"
#include "tools/push/push.h"
#include "tools/shared/text.h"

enum { NAME_MOST = 128, VALUE_MOST = 1024 };

/* Names of our labels: for Pyroscope and Parca, for OTLP. */
static const char *const labels_names[][2] = {
    {"service_name", "service.name"},
    {"host", "host.name"},
    {"worker", "service.instance.id"},
    {"version", "service.version"},
};
enum { SERVICE, HOST, WORKER, VERSION, OWN };

static bool labels_is_key(const char *key, size_t len, bool otlp)
{
  if (!len || len > NAME_MOST || (len > 1 && key[0] == '_' && key[1] == '_'))
    return false;
  for (size_t i = 0; i < len; i++) {
    char c = key[i];
    bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
    bool more = (c >= '0' && c <= '9') || (otlp && c == '.');
    if (!letter && !(i && more))
      return false;
  }
  return true;
}

static bool labels_is_value(const char *value)
{
  struct ljp_str s = ljp_str(value, strlen(value));
  if (!s.len || s.len > VALUE_MOST)
    return false;
  while (s.len) {
    uint32_t rune;
    ljp_text_next(&s, &rune);
    if (rune == LJP_TEXT_BAD || ljp_text_is_hidden(rune))
      return false;
  }
  return true;
}

static bool labels_same_key(const char *a, size_t len, const char *b)
{
  return strlen(b) == len && memcmp(a, b, len) == 0;
}

static int labels_refuse(const char *option, const char *value, const char *why)
{
  ljp_command_error("push", "%s '%s': %s", option, value, why);
  return LJP_EXIT_USAGE;
}

static int labels_check_set(const struct ljp_push_options *o, unsigned i)
{
  const char *set = o->set[i];
  size_t len = strcspn(set, "=");
  const bool otlp = o->engine == LJP_ENGINE_OTLP;
  if (!set[len])
    return labels_refuse("--set", set, "KEY=VALUE expected");
  if (!labels_is_key(set, len, otlp))
    return labels_refuse("--set", set,
                         otlp ? "a key has letters, digits, '_' and '.', and "
                                "begins with one letter or '_'"
                              : "a key has letters, digits and '_', and begins "
                                "with one letter or '_'");
  if (!labels_is_value(set + len + 1))
    return labels_refuse("--set", set,
                         "the value is empty, too long, or not "
                         "plain text");
  for (unsigned k = 0; k < OWN; k++)
    if (labels_same_key(set, len, labels_names[k][otlp]))
      return labels_refuse("--set", set, "this key is set by another option");
  for (unsigned k = 0; k < i; k++)
    if (strcspn(o->set[k], "=") == len && memcmp(o->set[k], set, len) == 0)
      return labels_refuse("--set", set, "this key is given twice");
  return -1;
}

int ljp_push_check_labels(const struct ljp_push_options *o)
{
  const struct {
    const char *option, *value;
  } given[] = {{"--service", o->service},
               {"--host", o->host},
               {"--worker", o->worker},
               {"--service-version", o->version}};
  int code = -1;
  for (size_t i = 0; i < sizeof given / sizeof *given; i++)
    if (given[i].value && !labels_is_value(given[i].value))
      return labels_refuse(given[i].option, given[i].value,
                           "this is empty, too long, or not plain text");
  for (unsigned i = 0; code < 0 && i < LJP_OPTION_TIMES && o->set[i]; i++)
    code = labels_check_set(o, i);
  return code;
}

static void labels_add(struct ljp_push_labels *labels, const char *key,
                       const char *value)
{
  labels->list[labels->count++] = (struct ljp_push_label){key, value};
}

/* room: the host's name, a number, then the keys of --set. */
struct ljp_push_labels ljp_push_labels(const struct ljp_push_options *o,
                                       uint64_t pid,
                                       char room[LJP_PUSH_LABEL_ROOM])
{
  enum { HOST_BYTES = 256, PID_BYTES = 32 };
  struct ljp_push_labels labels = {.count = 0};
  const int otlp = o->engine == LJP_ENGINE_OTLP;
  char *host = room, *worker = host + HOST_BYTES, *at = worker + PID_BYTES;
  if (gethostname(host, HOST_BYTES - 1) || !labels_is_value(host))
    *host = '\0';
  if (o->host || *host)
    labels_add(&labels, labels_names[HOST][otlp], o->host ? o->host : host);
  snprintf(worker, PID_BYTES, "%" PRIu64, pid);
  if (o->worker || pid)
    labels_add(&labels, labels_names[WORKER][otlp],
               o->worker ? o->worker : worker);
  if (o->version)
    labels_add(&labels, labels_names[VERSION][otlp], o->version);
  for (unsigned i = 0; i < LJP_OPTION_TIMES && o->set[i]; i++) {
    size_t len = strcspn(o->set[i], "=");
    memcpy(at, o->set[i], len);
    at[len] = '\0';
    labels_add(&labels, at, o->set[i] + len + 1);
    at += len + 1;
  }
  return labels;
}

void ljp_push_tell_renamed(void *ctx, struct ljp_str key, const char *name)
{
  enum { MOST = sizeof((struct ljp_push *)0)->told_keys / sizeof(uint32_t) };
  struct ljp_push *push = ctx;
  uint64_t hash = 0;
  for (uint32_t i = 0; i < key.len; i++)
    hash = ljp_hash_mix(hash, (uint8_t)key.data[i]);
  for (unsigned i = 0; i < push->told_key_count; i++)
    if (push->told_keys[i] == ljp_hash_finish(hash))
      return;
  if (push->told_key_count == MOST)
    return;
  push->told_keys[push->told_key_count++] = ljp_hash_finish(hash);
  ljp_command_note("push",
                   "the program's label '%.*s' is sent as '%s': another label "
                   "has that key",
                   (int)key.len, key.data, name);
}

const char *ljp_push_service_key(enum ljp_engine engine)
{
  return labels_names[SERVICE][engine == LJP_ENGINE_OTLP];
}
