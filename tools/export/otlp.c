/*
** Writes OTLP profiles (v1development): a message with one profile for each
** value, and the dictionary that they share. Each sample has one value and no
** time: Pyroscope takes no others.
**
** Messages are packed one by one, so the memory needed is that of the output.
*/
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/export/otlp.h"

#ifndef LJP_VERSION
#define LJP_VERSION ""
#endif

static ProtobufCBinaryData otlp_text(const char *text)
{
  return (ProtobufCBinaryData){strlen(text), (uint8_t *)(char *)text};
}

static void otlp_value_type(struct ljp_otlp *w, Ljp__Otlp__ValueType *type,
                            const char *name, const char *unit)
{
  ljp__otlp__value_type__init(type);
  type->type_strindex = ljp_otlp_name(w, name);
  type->unit_strindex = ljp_otlp_name(w, unit);
}

static uint8_t otlp_kind(enum ljp_value_id value)
{
  switch (value) {
  case LJP_VALUE_SAMPLES:
  case LJP_VALUE_CPU:
    return LJP_PRODUCER_CPU;
  case LJP_VALUE_WALL_SAMPLES:
  case LJP_VALUE_WALL:
    return LJP_PRODUCER_WALL;
  default:
    return LJP_PRODUCER_MEMORY;
  }
}

/* One text for the losses that every view tells of. NULL: there are none, or no
** memory. */
static char *otlp_notices(struct ljp_otlp *w)
{
  const char *text;
  char *all = NULL;
  size_t size;
  if (!ljp_profile_notice(w->e->p, 0))
    return NULL;
  FILE *f = open_memstream(&all, &size);
  for (uint32_t i = 0; f && (text = ljp_profile_notice(w->e->p, i)); i++)
    fprintf(f, "%s%s", i ? "; " : "", text);
  if (!f || fclose(f)) {
    w->status = LJP_ERR_MEM;
    free(all);
    all = NULL;
  }
  return all;
}

/* Appends what a profile has besides samples. */
static void otlp_add_facts(struct ljp_otlp *w, enum ljp_value_id value,
                           ProtobufCBuffer *out)
{
  const struct ljp_profile *p = w->e->p;
  const uint8_t kind = otlp_kind(value);
  Ljp__Otlp__Profile facts = LJP__OTLP__PROFILE__INIT;
  Ljp__Otlp__ValueType type, period;
  uint8_t id[16];
  char *notices = otlp_notices(w);
  int32_t notice = 0;
  otlp_value_type(w, &type, ljp_value_name(value), ljp_value_unit(value));
  otlp_value_type(w, &period,
                  kind == LJP_PRODUCER_CPU    ? "cpu"
                  : kind == LJP_PRODUCER_WALL ? "wall"
                                              : "space",
                  kind == LJP_PRODUCER_MEMORY ? "bytes"
                  : p->recorded_by            ? "count"
                                              : "nanoseconds");
  facts.sample_type = &type;
  facts.period_type = &period;
  /* Pyroscope refuses 0. */
  facts.period = p->interval_ns[kind] ? (int64_t)p->interval_ns[kind] : 1;
  if (kind == LJP_PRODUCER_MEMORY && p->sample_bytes)
    facts.period = (int64_t)p->sample_bytes;
  facts.time_unix_nano = p->origin_wall_ns;
  facts.duration_nano = p->end_ns;
  if (w->e->id) {
    memcpy(id, w->e->id, sizeof id);
    id[15] ^= (uint8_t)value;
    facts.profile_id = (ProtobufCBinaryData){sizeof id, id};
  }
  if (notices) {
    notice = ljp_otlp_attribute(w, "ljprof.notices",
                                ljp_str(notices, strlen(notices)));
    facts.n_attribute_indices = 1;
    facts.attribute_indices = &notice;
  }
  protobuf_c_message_pack_to_buffer(&facts.base, out);
  free(notices);
}

/* Packs the profile of one value. attributes: room for those of a sample. */
static void otlp_add_profile(struct ljp_otlp *w, enum ljp_value_id value,
                             int32_t *attributes, ProtobufCBuffer *out)
{
  const struct ljp_profile *p = w->e->p;
  otlp_add_facts(w, value, out);
  ljp_export_start(w->e);
  for (uint32_t row = 0; row < p->row_count && !w->status; row++) {
    Ljp__Otlp__Profile piece = LJP__OTLP__PROFILE__INIT;
    Ljp__Otlp__Sample sample = LJP__OTLP__SAMPLE__INIT, *samples = &sample;
    uint64_t amount = ljp_export_value(w->e, row, value);
    int64_t number = amount <= INT64_MAX ? (int64_t)amount : INT64_MAX;
    if (!amount)
      continue;
    sample.stack_index = ljp_otlp_stack(w, p->rows[row].node);
    sample.n_attribute_indices =
        ljp_otlp_context(w, p->rows[row].context, attributes);
    sample.attribute_indices = attributes;
    sample.n_values = 1;
    sample.values = &number;
    piece.n_samples = 1;
    piece.samples = &samples;
    protobuf_c_message_pack_to_buffer(&piece.base, out);
  }
}

static void otlp_put(struct ljp_otlp *w, const ProtobufCMessage *message)
{
  ProtobufCBinaryData data = ljp_otlp_pack(w, message);
  if (!w->status)
    ljp_print_raw(w->e->out, (const char *)data.data, data.len);
  free(data.data);
}

/* Adds one attribute to a resource. */
static void otlp_resource_text(struct ljp_otlp *w, const char *key,
                               struct ljp_str value, ProtobufCBuffer *out)
{
  Ljp__Otlp__AnyValue any = LJP__OTLP__ANY_VALUE__INIT;
  Ljp__Otlp__KeyValue pair = LJP__OTLP__KEY_VALUE__INIT;
  Ljp__Otlp__Resource piece = LJP__OTLP__RESOURCE__INIT;
  struct ljp_str plain = ljp_export_plain(value);
  if (!plain.data) {
    w->status = LJP_ERR_MEM;
    return;
  }
  any.value_case = LJP__OTLP__ANY_VALUE__VALUE_STRING_VALUE;
  any.string_value =
      (ProtobufCBinaryData){plain.len, (uint8_t *)(char *)plain.data};
  pair.key = otlp_text(key);
  pair.value = &any;
  ProtobufCBinaryData data = ljp_otlp_pack(w, &pair.base);
  piece.n_attributes = 1;
  piece.attributes = &data;
  protobuf_c_message_pack_to_buffer(&piece.base, out);
  free(data.data);
  free((char *)plain.data);
}

/* Whether the caller knows better: keys of a resource must be unique. */
static bool otlp_is_given(const struct ljp_otlp *w, const char *key)
{
  for (unsigned i = 0; i < w->e->fact_count; i++)
    if (strcmp(w->e->facts[i].key, key) == 0)
      return true;
  return false;
}

static void otlp_resource(struct ljp_otlp *w, ProtobufCBuffer *out)
{
  const struct ljp_profile *p = w->e->p;
  struct ljp_str path = ljp_profile_str(p, p->executable);
  char pid[24];
  for (unsigned i = 0; i < w->e->fact_count; i++)
    otlp_resource_text(
        w, w->e->facts[i].key,
        ljp_str(w->e->facts[i].value, strlen(w->e->facts[i].value)), out);
  if (!otlp_is_given(w, "service.name"))
    otlp_resource_text(
        w, "service.name",
        path.len ? ljp_base_name(path) : ljp_str("unknown_service", 15), out);
  if (path.len && !otlp_is_given(w, "process.executable.name"))
    otlp_resource_text(w, "process.executable.name", ljp_base_name(path), out);
  if (p->pid && p->source_count == 1 && !otlp_is_given(w, "process.pid")) {
    snprintf(pid, sizeof pid, "%llu", (unsigned long long)p->pid);
    otlp_resource_text(w, "process.pid", ljp_str(pid, strlen(pid)), out);
  }
}

/* Writes the profiles, which are done, and the dictionary. */
static void otlp_write(struct ljp_otlp *w, ProtobufCBinaryData *profiles,
                       size_t count)
{
  uint8_t small[256];
  ProtobufCBufferSimple resource = PROTOBUF_C_BUFFER_SIMPLE_INIT(small);
  Ljp__Otlp__Scope scope = LJP__OTLP__SCOPE__INIT;
  Ljp__Otlp__ScopeProfiles scoped = LJP__OTLP__SCOPE_PROFILES__INIT;
  Ljp__Otlp__ResourceProfiles owned = LJP__OTLP__RESOURCE_PROFILES__INIT;
  Ljp__Otlp__Data data = LJP__OTLP__DATA__INIT;
  scope.name = otlp_text("ljprof");
  scope.version = otlp_text(LJP_VERSION);
  scoped.scope = ljp_otlp_pack(w, &scope.base);
  scoped.n_profiles = count;
  scoped.profiles = profiles;
  ProtobufCBinaryData packed = ljp_otlp_pack(w, &scoped.base);
  otlp_resource(w, &resource.base);
  owned.resource = (ProtobufCBinaryData){resource.len, resource.data};
  owned.n_scope_profiles = 1;
  owned.scope_profiles = &packed;
  ProtobufCBinaryData whole = ljp_otlp_pack(w, &owned.base);
  data.n_resource_profiles = 1;
  data.resource_profiles = &whole;
  otlp_put(w, &data.base);
  free(whole.data);
  free(packed.data);
  free(scoped.scope.data);
  PROTOBUF_C_BUFFER_SIMPLE_CLEAR(&resource);
}

static void otlp_write_dictionary(struct ljp_otlp *w)
{
  uint8_t small[256];
  ProtobufCBufferSimple all = PROTOBUF_C_BUFFER_SIMPLE_INIT(small);
  Ljp__Otlp__Data data = LJP__OTLP__DATA__INIT;
#define LJP_X(NAME, field)                                                     \
  for (uint32_t i = 0; i < w->tables[LJP_OTLP_##NAME].count; i++) {            \
    struct ljp_str entry = w->tables[LJP_OTLP_##NAME].list[i];                 \
    Ljp__Otlp__Dictionary piece = LJP__OTLP__DICTIONARY__INIT;                 \
    ProtobufCBinaryData bytes = {entry.len, (uint8_t *)(char *)entry.data};    \
    piece.n_##field = 1;                                                       \
    piece.field = &bytes;                                                      \
    protobuf_c_message_pack_to_buffer(&piece.base, &all.base);                 \
  }
  LJP_OTLP_TABLES(LJP_X)
#undef LJP_X
  data.dictionary = (ProtobufCBinaryData){all.len, all.data};
  otlp_put(w, &data.base);
  PROTOBUF_C_BUFFER_SIMPLE_CLEAR(&all);
}

enum ljp_status ljp_export_otlp(struct ljp_export *e)
{
  struct ljp_otlp w;
  uint8_t small[LJP_VALUE_COUNT][64];
  ProtobufCBufferSimple buffers[LJP_VALUE_COUNT];
  ProtobufCBinaryData profiles[LJP_VALUE_COUNT];
  size_t count = 0;
  int32_t *attributes =
      calloc(ljp_otlp_attributes_most(e->p), sizeof *attributes);
  ljp_otlp_init(&w, e);
  if (!attributes)
    w.status = LJP_ERR_MEM;
  /* Readers show the first profile first: that of the time, or as asked. */
  for (unsigned i = 0; i < 2; i++)
    for (unsigned v = 0; v < LJP_VALUE_COUNT && !w.status; v++) {
      bool counts = v == LJP_VALUE_SAMPLES || v == LJP_VALUE_WALL_SAMPLES;
      if (!e->has[v] || counts != i || (e->asked && v != e->value))
        continue;
      buffers[count] =
          (ProtobufCBufferSimple)PROTOBUF_C_BUFFER_SIMPLE_INIT(small[count]);
      otlp_add_profile(&w, (enum ljp_value_id)v, attributes,
                       &buffers[count].base);
      profiles[count] =
          (ProtobufCBinaryData){buffers[count].len, buffers[count].data};
      count++;
    }
  if (!w.status)
    otlp_write(&w, profiles, count);
  if (!w.status)
    otlp_write_dictionary(&w);
  for (size_t i = 0; i < count; i++)
    PROTOBUF_C_BUFFER_SIMPLE_CLEAR(&buffers[i]);
  ljp_otlp_fini(&w);
  free(attributes);
  return w.status;
}
