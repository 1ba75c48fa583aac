/*
** The dictionary of an OTLP export: strings, functions, mappings, locations,
** stacks, attributes.
**
** Modules have no fixed address in a profile, which may be of several processes:
** each mapping gets a range of 4 GiB, as in the pprof export.
*/
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "parsers/profile/labels.h"
#include "parsers/stream/names.h"
#include "src/base/assert.h"
#include "tools/export/otlp.h"

enum { LINES_MAX = 512, OWN_ATTRIBUTES = 5 }; /* Of a context: no labels. */
#define OTLP_TABLE_BYTES ((size_t)1 << 30)

static void *otlp_numbers(struct ljp_otlp *w, size_t count, size_t bytes)
{
  void *numbers = calloc(count + 1, bytes);
  if (!numbers)
    w->status = LJP_ERR_MEM;
  return numbers;
}

void ljp_otlp_init(struct ljp_otlp *w, struct ljp_export *e)
{
  const struct ljp_profile *p = e->p;
  *w = (struct ljp_otlp){.e = e};
  for (int i = 0; i < LJP_OTLP_TABLE_COUNT; i++)
    if (ljp_strings_init(&w->tables[i], OTLP_TABLE_BYTES))
      w->status = LJP_ERR_MEM;
  w->strings = otlp_numbers(w, p->strings.count, sizeof *w->strings);
  w->functions = otlp_numbers(w, p->function_count, sizeof *w->functions);
  w->mappings = otlp_numbers(w, p->module_count, sizeof *w->mappings);
  w->locations = otlp_numbers(w, p->frame_count, sizeof *w->locations);
  w->stacks = otlp_numbers(w, p->node_count, sizeof *w->stacks);
  w->threads = otlp_numbers(w, p->thread_count, sizeof *w->threads);
  w->thread_ids = otlp_numbers(w, p->thread_count, sizeof *w->thread_ids);
  w->vms = otlp_numbers(w, p->vm_count, sizeof *w->vms);
  w->limits = otlp_numbers(w, p->module_count, sizeof *w->limits);
  for (uint32_t i = 0; w->limits && i < p->frame_count; i++)
    if (p->frames[i].module &&
        p->frames[i].offset >= w->limits[p->frames[i].module])
      w->limits[p->frames[i].module] = p->frames[i].offset + 1;
}

void ljp_otlp_fini(struct ljp_otlp *w)
{
  for (int i = 0; i < LJP_OTLP_TABLE_COUNT; i++)
    ljp_strings_fini(&w->tables[i]);
  free(w->strings);
  free(w->functions);
  free(w->mappings);
  free(w->locations);
  free(w->stacks);
  free(w->threads);
  free(w->thread_ids);
  free(w->vms);
  free(w->limits);
}

ProtobufCBinaryData ljp_otlp_pack(struct ljp_otlp *w,
                                  const ProtobufCMessage *message)
{
  ProtobufCBinaryData data = {0};
  size_t len = protobuf_c_message_get_packed_size(message);
  if (!len)
    return data;
  data.data = malloc(len);
  if (data.data)
    data.len = protobuf_c_message_pack(message, data.data);
  else
    w->status = LJP_ERR_MEM;
  return data;
}

static int32_t otlp_add(struct ljp_otlp *w, enum ljp_otlp_table table,
                        struct ljp_str entry)
{
  uint32_t index = 0;
  if (w->status)
    return 0;
  w->status = ljp_strings_add(&w->tables[table], entry, &index);
  if (!w->status && index > INT32_MAX)
    w->status = LJP_ERR_LIMIT;
  return w->status ? 0 : (int32_t)index;
}

static int32_t otlp_add_message(struct ljp_otlp *w, enum ljp_otlp_table table,
                                const ProtobufCMessage *message)
{
  ProtobufCBinaryData data = ljp_otlp_pack(w, message);
  int32_t index =
      otlp_add(w, table, ljp_str((const char *)data.data, data.len));
  free(data.data);
  return index;
}

/* Readers refuse what is not UTF-8, and print text as it is. */
int32_t ljp_otlp_string(struct ljp_otlp *w, struct ljp_str text)
{
  struct ljp_str plain = ljp_export_plain(text);
  if (!plain.data) {
    w->status = LJP_ERR_MEM;
    return 0;
  }
  int32_t index = otlp_add(w, LJP_OTLP_STRING, plain);
  free((char *)plain.data);
  return index;
}

int32_t ljp_otlp_name(struct ljp_otlp *w, const char *text)
{
  return ljp_otlp_string(w, ljp_str(text, strlen(text)));
}

static int32_t otlp_profile_string(struct ljp_otlp *w, uint32_t number)
{
  if (number && !w->strings[number])
    w->strings[number] = ljp_otlp_string(w, ljp_profile_str(w->e->p, number));
  return number ? w->strings[number] : 0;
}

int32_t ljp_otlp_text_attribute(struct ljp_otlp *w, int32_t key,
                                struct ljp_str value)
{
  Ljp__Otlp__AnyValue any = LJP__OTLP__ANY_VALUE__INIT;
  Ljp__Otlp__Attribute attribute = LJP__OTLP__ATTRIBUTE__INIT;
  struct ljp_str plain = ljp_export_plain(value);
  if (!plain.data)
    w->status = LJP_ERR_MEM;
  any.value_case = LJP__OTLP__ANY_VALUE__VALUE_STRING_VALUE;
  any.string_value =
      (ProtobufCBinaryData){plain.len, (uint8_t *)(char *)plain.data};
  attribute.key_strindex = key;
  attribute.value = &any;
  int32_t index = otlp_add_message(w, LJP_OTLP_ATTRIBUTE, &attribute.base);
  free((char *)plain.data);
  return index;
}

int32_t ljp_otlp_attribute(struct ljp_otlp *w, const char *key,
                           struct ljp_str value)
{
  return ljp_otlp_text_attribute(w, ljp_otlp_name(w, key), value);
}

static int32_t otlp_number_attribute(struct ljp_otlp *w, const char *key,
                                     uint64_t value)
{
  Ljp__Otlp__AnyValue any = LJP__OTLP__ANY_VALUE__INIT;
  Ljp__Otlp__Attribute attribute = LJP__OTLP__ATTRIBUTE__INIT;
  any.value_case = LJP__OTLP__ANY_VALUE__VALUE_INT_VALUE;
  any.int_value = (int64_t)value;
  attribute.key_strindex = ljp_otlp_name(w, key);
  attribute.value = &any;
  return otlp_add_message(w, LJP_OTLP_ATTRIBUTE, &attribute.base);
}

static int32_t otlp_mapping(struct ljp_otlp *w, uint32_t module)
{
  const struct ljp_profile *p = w->e->p;
  const struct ljp_profile_module *m = &p->modules[module];
  Ljp__Otlp__Mapping mapping = LJP__OTLP__MAPPING__INIT;
  static const char digits[] = "0123456789abcdef";
  char hex[2 * 64];
  struct ljp_str id = ljp_profile_str(p, m->build_id);
  uint32_t n = id.len < 64 ? id.len : 64;
  int32_t attribute;
  if (!module || w->mappings[module])
    return w->mappings[module];
  for (uint32_t i = 0; i < n; i++) {
    hex[2 * i] = digits[(uint8_t)id.data[i] >> 4];
    hex[2 * i + 1] = digits[(uint8_t)id.data[i] & 15];
  }
  mapping.memory_start = (uint64_t)module << 32;
  mapping.memory_limit =
      mapping.memory_start +
      (m->span > w->limits[module] ? m->span : w->limits[module]);
  mapping.filename_strindex = otlp_profile_string(w, m->path);
  if (n) {
    attribute = ljp_otlp_attribute(w, "process.executable.build_id.gnu",
                                   ljp_str(hex, (size_t)n * 2));
    mapping.n_attribute_indices = 1;
    mapping.attribute_indices = &attribute;
  }
  w->mappings[module] = otlp_add_message(w, LJP_OTLP_MAPPING, &mapping.base);
  return w->mappings[module];
}

static int32_t otlp_function(struct ljp_otlp *w, uint32_t number)
{
  const struct ljp_profile *p = w->e->p;
  const struct ljp_profile_frame *frame =
      &p->frames[p->functions[number].frame];
  Ljp__Otlp__Function f = LJP__OTLP__FUNCTION__INIT;
  char name[LJP_FRAME_NAME_BYTES];
  if (w->functions[number])
    return w->functions[number];
  size_t len = ljp_function_name(p, number, name, sizeof name);
  if (len >= sizeof name)
    len = sizeof name - 1;
  f.name_strindex = f.system_name_strindex =
      ljp_otlp_string(w, ljp_str(name, len));
  f.filename_strindex = otlp_profile_string(w, frame->file);
  f.start_line = frame->first_line;
  w->functions[number] = otlp_add_message(w, LJP_OTLP_FUNCTION, &f.base);
  return w->functions[number];
}

/* The attribute profile.frame.type. */
static const char *otlp_frame_type(const struct ljp_profile_frame *frame)
{
  if (frame->kind == LJP_FRAME_KERNEL)
    return "kernel";
  if (frame->kind == LJP_FRAME_HOST || frame->kind == LJP_FRAME_CFUNC)
    return "native";
  return "luajit";
}

/* The location of a frame together with the frames that it is inlined into;
** frames[0] is the innermost. */
static int32_t otlp_location(struct ljp_otlp *w, const uint32_t *frames,
                             size_t count)
{
  const struct ljp_profile *p = w->e->p;
  const struct ljp_profile_frame *frame = &p->frames[frames[0]];
  Ljp__Otlp__Location location = LJP__OTLP__LOCATION__INIT;
  Ljp__Otlp__Line lines[LINES_MAX], *list[LINES_MAX];
  int32_t type;
  if (w->locations[frames[0]])
    return w->locations[frames[0]];
  for (size_t i = 0; i < count; i++) {
    const struct ljp_profile_frame *f = &p->frames[frames[i]];
    ljp__otlp__line__init(&lines[i]);
    lines[i].function_index = otlp_function(w, f->function);
    lines[i].line = f->line;
    list[i] = &lines[i];
  }
  if (frame->kind < 16 && frame->module &&
      ljp_frame_shape(frame->kind) == LJP_SHAPE_ADDR) {
    location.mapping_index = otlp_mapping(w, frame->module);
    location.address = ((uint64_t)frame->module << 32) + frame->offset;
  }
  type = ljp_otlp_attribute(
      w, "profile.frame.type",
      ljp_str(otlp_frame_type(frame), strlen(otlp_frame_type(frame))));
  location.n_lines = count;
  location.lines = list;
  location.n_attribute_indices = 1;
  location.attribute_indices = &type;
  w->locations[frames[0]] =
      otlp_add_message(w, LJP_OTLP_LOCATION, &location.base);
  return w->locations[frames[0]];
}

int32_t ljp_otlp_stack(struct ljp_otlp *w, uint32_t node)
{
  static uint32_t path[LJP_EXPORT_DEPTH];
  static int32_t indices[LJP_EXPORT_DEPTH];
  const struct ljp_profile *p = w->e->p;
  Ljp__Otlp__Stack stack = LJP__OTLP__STACK__INIT;
  uint32_t frames[LINES_MAX], depth;
  if (!node || w->stacks[node])
    return w->stacks[node];
  ljp_export_path(p, node, path, &depth);
  while (depth && !w->status) {
    size_t group = 0;
    bool inlined = true;
    while (depth && inlined && group < LINES_MAX) {
      uint32_t frame = p->nodes[path[--depth]].frame;
      frames[group++] = frame;
      inlined = p->frames[frame].flags & LJP_PROFILE_INLINED_C;
    }
    indices[stack.n_location_indices++] = otlp_location(w, frames, group);
  }
  stack.location_indices = indices;
  w->stacks[node] = otlp_add_message(w, LJP_OTLP_STACK, &stack.base);
  return w->stacks[node];
}

size_t ljp_otlp_attributes_most(const struct ljp_profile *p)
{
  size_t most = 0;
  for (uint32_t i = 0; i < p->label_count; i++)
    if (p->labels[i].count > most)
      most = p->labels[i].count;
  return OWN_ATTRIBUTES + most;
}

static size_t otlp_circumstances(struct ljp_otlp *w,
                                 const struct ljp_profile_context *c,
                                 int32_t *list)
{
  const struct ljp_profile *p = w->e->p;
  const struct ljp_profile_thread *t = &p->threads[c->thread];
  const struct ljp_profile_vm *vm = &p->vms[c->vm];
  const char *state = ljp_profile_state_text(c->state);
  const char *type = c->type ? ljp_name_mem_type(c->type) : NULL;
  char text[32];
  size_t n = 0;
  if (c->thread && ljp_profile_str(p, t->name).len) {
    if (!w->threads[c->thread])
      w->threads[c->thread] =
          ljp_otlp_attribute(w, "thread.name", ljp_profile_str(p, t->name));
    list[n++] = w->threads[c->thread];
  }
  if (c->thread) {
    if (!w->thread_ids[c->thread])
      w->thread_ids[c->thread] =
          otlp_number_attribute(w, "thread.id", t->tid ? t->tid : t->id);
    list[n++] = w->thread_ids[c->thread];
  }
  if (c->vm) {
    struct ljp_str name = ljp_profile_str(p, vm->name);
    snprintf(text, sizeof text, "vm %" PRIu64, vm->id);
    if (!w->vms[c->vm])
      w->vms[c->vm] = ljp_otlp_attribute(
          w, "vm", name.len ? name : ljp_str(text, strlen(text)));
    list[n++] = w->vms[c->vm];
  }
  if (state)
    list[n++] = ljp_otlp_attribute(w, "state", ljp_str(state, strlen(state)));
  if (type)
    list[n++] = ljp_otlp_attribute(w, "type", ljp_str(type, strlen(type)));
  return n;
}

/* Keys must be unique: a label of the program goes before one of ours. */
size_t ljp_otlp_context(struct ljp_otlp *w, uint32_t context, int32_t *list)
{
  const struct ljp_profile *p = w->e->p;
  const struct ljp_profile_context *c = &p->contexts[context];
  const struct ljp_profile_labels *set = &p->labels[c->labels];
  static const char *const own[] = {"thread.name", "thread.id", "vm", "state",
                                    "type"};
  size_t n = 0;
  bool clash = false;
  for (uint32_t i = 0; i < set->count; i++) {
    const struct ljp_profile_label_pair *pair = &p->label_pairs[set->first + i];
    if (!pair->key || !pair->value)
      continue;
    struct ljp_str key = ljp_profile_str(p, pair->key);
    for (size_t k = 0; k < sizeof own / sizeof *own; k++)
      clash |=
          key.len == strlen(own[k]) && memcmp(key.data, own[k], key.len) == 0;
    list[n++] = ljp_otlp_text_attribute(w, otlp_profile_string(w, pair->key),
                                        ljp_profile_str(p, pair->value));
  }
  if (!w->e->own_labels && !clash)
    n += otlp_circumstances(w, c, list + n);
  return n;
}
