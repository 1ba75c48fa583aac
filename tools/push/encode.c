/*
** Makes the requests of a file. For Pyroscope and Parca a file becomes up to three
** profiles in pprof's format (CPU, wall, memory). Pyroscope stores each profile of a
** request for itself, and may fail in between, so there each has a request of its
** own. For Parca, and for OTLP, the file is one request.
*/
#include <tools/push/push.pb-c.h> /* Generated. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/export/export.h"
#include "tools/push/push.h"
#include "tools/shared/damage.h"

/* Bytes that an export writes. */
struct encode_buffer {
  uint8_t *data;
  size_t len, room;
  bool failed;
};

/* The kinds of profiles: the names by which engines know them. Except for Parca, all
** values of `memory` are one profile. */
static const struct {
  const char *name;
  enum ljp_value_id first, last;
} encode_groups[] = {
    {"process_cpu", LJP_VALUE_SAMPLES, LJP_VALUE_CPU},
    {"wall", LJP_VALUE_WALL_SAMPLES, LJP_VALUE_WALL},
    {"memory", LJP_VALUE_ALLOC_OBJECTS, LJP_VALUE_ALLOC_SPACE},
    {"memory", LJP_VALUE_INUSE_OBJECTS, LJP_VALUE_INUSE_SPACE},
};
enum { GROUPS = sizeof encode_groups / sizeof *encode_groups };
_Static_assert((int)GROUPS <= (int)LJP_PUSH_PROFILES + 1, "a request each");

static void encode_take(void *ctx, const char *data, size_t len)
{
  struct encode_buffer *b = ctx;
  if (b->failed)
    return;
  if (len > b->room - b->len) {
    size_t room = (b->len + len) * 2;
    uint8_t *bigger = realloc(b->data, room);
    if (!bigger) {
      b->failed = true;
      return;
    }
    b->data = bigger;
    b->room = room;
  }
  memcpy(b->data + b->len, data, len);
  b->len += len;
}

static enum ljp_status encode_run(struct ljp_export *e,
                                  enum ljp_status (*run)(struct ljp_export *),
                                  struct encode_buffer *b)
{
  static struct ljp_print out;
  *b = (struct encode_buffer){0};
  ljp_print_begin(&out, -1);
  out.sink = encode_take;
  out.ctx = b;
  e->out = &out;
  enum ljp_status status = run(e);
  ljp_print_end(&out);
  if (!status && b->failed)
    status = LJP_ERR_MEM;
  return status;
}

static ProtobufCBinaryData encode_text(const char *text)
{
  return (ProtobufCBinaryData){strlen(text), (uint8_t *)(char *)text};
}

/* What a request of Pyroscope or Parca is made of. */
struct encode_parts {
  Ljp__Push__Label labels[LJP_PUSH_LABELS + 1], names[GROUPS];
  Ljp__Push__Label *lists[GROUPS][LJP_PUSH_LABELS + 2];
  struct encode_buffer profiles[GROUPS];
  size_t count; /* Of profiles. */
  size_t label_count;
  char uuids[GROUPS][40];
};

static void encode_label(Ljp__Push__Label *label, const char *name,
                         const char *value)
{
  ljp__push__label__init(label);
  label->name = encode_text(name);
  label->value = encode_text(value);
}

/* A UUID from the file's hash and the number of the profile (version 8). */
static void encode_uuid(char out[40], const uint8_t id[16], size_t n)
{
  uint8_t u[16];
  memcpy(u, id, 16);
  u[15] ^= (uint8_t)n;
  u[6] = (uint8_t)((u[6] & 0x0f) | 0x80);
  u[8] = (uint8_t)((u[8] & 0x3f) | 0x80);
  snprintf(out, 40,
           "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-"
           "%02x%02x%02x%02x%02x%02x",
           u[0], u[1], u[2], u[3], u[4], u[5], u[6], u[7], u[8], u[9], u[10],
           u[11], u[12], u[13], u[14], u[15]);
}

static enum ljp_status encode_profiles(struct encode_parts *parts,
                                       const struct ljp_export *all,
                                       const uint8_t id[16])
{
  enum ljp_status status = LJP_OK;
  for (int g = 0; g < GROUPS && !status; g++) {
    struct ljp_export e = *all;
    const unsigned first = encode_groups[g].first;
    unsigned last = encode_groups[g].last;
    bool any = false;
    if (!all->apart && first == LJP_VALUE_INUSE_OBJECTS)
      break;
    if (!all->apart && first == LJP_VALUE_ALLOC_OBJECTS)
      last = LJP_VALUE_INUSE_SPACE;
    for (unsigned v = 0; v < LJP_VALUE_COUNT; v++) {
      e.has[v] &= v >= first && v <= last;
      any |= e.has[v];
    }
    if (!any)
      continue;
    size_t n = parts->count++;
    status = encode_run(&e, ljp_export_pprof, &parts->profiles[n]);
    encode_label(&parts->names[n], "__name__", encode_groups[g].name);
    encode_uuid(parts->uuids[n], id, n);
    parts->lists[n][0] = &parts->names[n];
    for (size_t i = 0; i < parts->label_count; i++)
      parts->lists[n][i + 1] = &parts->labels[i];
  }
  return status;
}

static enum ljp_status encode_pack(const ProtobufCMessage *m, size_t before,
                                   struct ljp_request *r)
{
  size_t len = protobuf_c_message_get_packed_size(m);
  r->body = malloc(before + len + 1);
  if (!r->body)
    return LJP_ERR_MEM;
  protobuf_c_message_pack(m, r->body + before);
  r->len = before + len;
  return LJP_OK;
}

/* The request of one profile. */
static enum ljp_status encode_pyroscope(struct encode_parts *parts, size_t i,
                                        struct ljp_request *r)
{
  Ljp__Push__PyroscopeRequest request = LJP__PUSH__PYROSCOPE_REQUEST__INIT;
  Ljp__Push__PyroscopeSeries series = LJP__PUSH__PYROSCOPE_SERIES__INIT;
  Ljp__Push__PyroscopeSample sample = LJP__PUSH__PYROSCOPE_SAMPLE__INIT;
  Ljp__Push__PyroscopeSeries *list = &series;
  Ljp__Push__PyroscopeSample *samples = &sample;
  sample.raw_profile =
      (ProtobufCBinaryData){parts->profiles[i].len, parts->profiles[i].data};
  sample.id = encode_text(parts->uuids[i]);
  series.n_labels = parts->label_count + 1;
  series.labels = parts->lists[i];
  series.n_samples = 1;
  series.samples = &samples;
  request.n_series = 1;
  request.series = &list;
  return encode_pack(&request.base, 0, r);
}

/* The requests of all profiles. The last one has the id of the file: if the journal
** knows that, all others are in the spool as well. */
static enum ljp_status encode_each(struct encode_parts *parts,
                                   const struct ljp_export *e,
                                   const struct ljp_push_labels *labels,
                                   enum ljp_engine engine,
                                   struct ljp_push_requests *out)
{
  const struct ljp_request whole = out->list[0];
  enum ljp_status status = LJP_OK;
  for (size_t i = 0; i < parts->count && !status; i++) {
    struct ljp_request *r = &out->list[out->count];
    *r = whole;
    if (i + 1 < parts->count)
      r->id[0] ^= (uint8_t)(i + 1);
    snprintf(r->source + strlen(r->source),
             sizeof r->source - strlen(r->source), " (%.*s)",
             (int)parts->names[i].value.len,
             (const char *)parts->names[i].value.data);
    status = engine == LJP_ENGINE_INGEST
                 ? ljp_push_ingest(
                       labels, (const char *)parts->labels[0].value.data, e->p,
                       parts->profiles[i].data, parts->profiles[i].len, r)
                 : encode_pyroscope(parts, i, r);
    out->count += !status;
  }
  return status;
}

/* gRPC puts five bytes before a message: not compressed, and its length. */
static enum ljp_status encode_parca(struct encode_parts *parts,
                                    struct ljp_request *r)
{
  enum { FRAME = 5 };
  Ljp__Push__ParcaRequest request = LJP__PUSH__PARCA_REQUEST__INIT;
  Ljp__Push__ParcaSeries series[GROUPS], *list[GROUPS];
  Ljp__Push__ParcaLabels labels[GROUPS];
  Ljp__Push__ParcaSample samples[GROUPS], *sample_list[GROUPS];
  for (size_t i = 0; i < parts->count; i++) {
    ljp__push__parca_sample__init(&samples[i]);
    samples[i].raw_profile =
        (ProtobufCBinaryData){parts->profiles[i].len, parts->profiles[i].data};
    sample_list[i] = &samples[i];
    ljp__push__parca_labels__init(&labels[i]);
    labels[i].n_labels = parts->label_count + 1;
    labels[i].labels = parts->lists[i];
    ljp__push__parca_series__init(&series[i]);
    series[i].labels = &labels[i];
    series[i].n_samples = 1;
    series[i].samples = &sample_list[i];
    list[i] = &series[i];
  }
  request.n_series = parts->count;
  request.series = list;
  request.normalized = true;
  enum ljp_status status = encode_pack(&request.base, FRAME, r);
  if (status)
    return status;
  uint64_t len = r->len - FRAME;
  if (len > UINT32_MAX)
    return LJP_ERR_LIMIT;
  r->body[0] = 0;
  for (int i = 0; i < 4; i++)
    r->body[1 + i] = (uint8_t)(len >> (24 - 8 * i));
  return LJP_OK;
}

static enum ljp_status encode_otlp(struct ljp_export *e,
                                   const struct ljp_push_labels *labels,
                                   const char *service, struct ljp_request *r)
{
  struct ljp_export_fact facts[LJP_PUSH_LABELS + 1];
  struct encode_buffer b;
  facts[0] =
      (struct ljp_export_fact){ljp_push_service_key(LJP_ENGINE_OTLP), service};
  for (unsigned i = 0; i < labels->count; i++)
    facts[i + 1] =
        (struct ljp_export_fact){labels->list[i].key, labels->list[i].value};
  e->facts = facts;
  e->fact_count = labels->count + 1;
  e->id = r->id;
  /* Engines make times of numbers of samples, which would count twice. */
  if (e->has[LJP_VALUE_CPU])
    e->has[LJP_VALUE_SAMPLES] = false;
  if (e->has[LJP_VALUE_WALL])
    e->has[LJP_VALUE_WALL_SAMPLES] = false;
  enum ljp_status status = encode_run(e, ljp_export_otlp, &b);
  r->body = b.data;
  r->len = b.len;
  return status;
}

static enum ljp_status encode_all(struct ljp_push *push, struct ljp_export *e,
                                  const char *service,
                                  struct ljp_push_requests *out)
{
  struct ljp_request *r = &out->list[0];
  struct encode_parts *parts = calloc(1, sizeof *parts);
  char room[LJP_PUSH_LABEL_ROOM];
  struct ljp_push_labels labels = ljp_push_labels(
      &push->options, e->p->source_count == 1 ? e->p->pid : 0, room);
  enum ljp_engine engine = push->options.engine;
  enum ljp_status status = parts ? LJP_OK : LJP_ERR_MEM;
  if (!parts || engine == LJP_ENGINE_OTLP) {
    free(parts);
    if (!status)
      status = encode_otlp(e, &labels, service, r);
    out->count = !status;
    return status;
  }
  encode_label(&parts->labels[0], ljp_push_service_key(engine), service);
  for (unsigned i = 0; i < labels.count; i++)
    encode_label(&parts->labels[i + 1], labels.list[i].key,
                 labels.list[i].value);
  parts->label_count = labels.count + 1;
  const char *keys[LJP_PUSH_LABELS + 1] = {ljp_push_service_key(engine)};
  for (unsigned i = 0; i < labels.count; i++)
    keys[i + 1] = labels.list[i].key;
  e->series_keys = keys;
  e->series_key_count = labels.count + 1;
  e->renamed = ljp_push_tell_renamed;
  e->renamed_ctx = push;
  status = encode_profiles(parts, e, r->id);
  if (!status && engine != LJP_ENGINE_PARCA) {
    status = encode_each(parts, e, &labels, engine, out);
  } else if (!status) {
    status = encode_parca(parts, r);
    out->count = !status;
  }
  for (size_t i = 0; i < parts->count; i++)
    free(parts->profiles[i].data);
  free(parts);
  return status;
}

/* The service's name: as given, as the folder says, or the program's. */
static char *encode_service(const struct ljp_push *push,
                            const struct ljp_profile *p)
{
  struct ljp_str name = ljp_base_name(ljp_profile_str(p, p->executable));
  const char *given =
      push->options.service ? push->options.service : push->found_service;
  if (given)
    name = ljp_str(given, strlen(given));
  if (!name.len)
    return strdup("luajit");
  struct ljp_str plain = ljp_export_plain(name);
  char *text = plain.data ? realloc((char *)plain.data, plain.len + 1) : NULL;
  if (text)
    text[plain.len] = '\0';
  return text;
}

enum ljp_encoded ljp_push_encode(struct ljp_push *push, const char *file,
                                 const char *shown, const uint8_t id[16],
                                 struct ljp_push_requests *out)
{
  struct ljp_profile_options options = {.no_symbols = push->options.no_symbols,
                                        .lua_view = push->options.lua};
  struct ljp_export e = {.own_labels = !push->options.all_labels,
                         .apart = push->options.engine == LJP_ENGINE_PARCA,
                         .plain_keys = push->options.engine != LJP_ENGINE_OTLP};
  struct ljp_profile *p;
  char error[LJP_READER_ERROR_BYTES + 64];
  bool any = false;
  if (ljp_profile_load(file, &options, &p, error)) {
    ljp_command_error("push", "%s: %s", shown, error);
    return LJP_ENCODED_FAILED;
  }
  e.p = p;
  ljp_export_find_values(&e);
  for (unsigned v = 0; v < LJP_VALUE_COUNT; v++)
    any |= e.has[v];
  if (p->totals.recording || !any) {
    bool growing = p->totals.recording;
    ljp_profile_free(p);
    return growing ? LJP_ENCODED_GROWING : LJP_ENCODED_EMPTY;
  }
  if (!ljp_is_whole(p))
    ljp_command_note("push",
                     "%s: is damaged or was not closed: pushing what "
                     "can be read",
                     shown);
  char *service = encode_service(push, p);
  *out = (struct ljp_push_requests){.count = 0};
  memcpy(out->list[0].id, id, sizeof out->list[0].id);
  snprintf(out->list[0].source, sizeof out->list[0].source, "%s", shown);
  enum ljp_status status =
      service ? encode_all(push, &e, service, out) : LJP_ERR_MEM;
  free(service);
  ljp_profile_free(p);
  if (!status)
    return LJP_ENCODED;
  ljp_push_free(out);
  ljp_command_error("push", "%s: %s", shown, ljp_status_text(status));
  return LJP_ENCODED_FAILED;
}

void ljp_push_free(struct ljp_push_requests *requests)
{
  for (unsigned i = 0; i < LJP_PUSH_PROFILES; i++)
    free(requests->list[i].body);
  *requests = (struct ljp_push_requests){.count = 0};
}
