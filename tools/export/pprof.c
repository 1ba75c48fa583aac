/*
** Writes the format of pprof: a protobuf message compressed by gzip. It is
** written in pieces: each is a message with a few fields, and their
** concatenation is the whole message.
**
** A place in machine code and the C functions inlined there form one location
** with several lines. Modules have no fixed address in a profile, which may be
** of several processes: each module gets a range of 4 GiB, and an address is
** the start of the range plus the offset in the file.
*/
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "parsers/stream/names.h"
#include "src/base/assert.h"
#include "tools/export/pprof.h"

enum { LINES_MAX = 512, GZIP_WINDOW = 15 + 16 };

static void pprof_compress(struct ljp_pprof *w, const void *data, size_t len,
                           int flush)
{
  uint8_t out[1 << 14];
  w->z.next_in = (Bytef *)data;
  w->z.avail_in = (uInt)len;
  do {
    w->z.next_out = out;
    w->z.avail_out = sizeof out;
    if (deflate(&w->z, flush) == Z_STREAM_ERROR) {
      w->status = LJP_ERR_MEM;
      return;
    }
    ljp_print_raw(w->e->out, (const char *)out, sizeof out - w->z.avail_out);
  } while (w->z.avail_out == 0);
}

typedef Ljp__Pprof__Profile Piece;

/* A buffer for protobuf-c that passes all data to the compressor. */
struct into {
  ProtobufCBuffer base;
  struct ljp_pprof *w;
};

static void pprof_append(ProtobufCBuffer *buffer, size_t len,
                         const uint8_t *data)
{
  pprof_compress(((struct into *)buffer)->w, data, len, Z_NO_FLUSH);
}

static void pprof_put(struct ljp_pprof *w, const Piece *piece)
{
  struct into into = {{pprof_append}, w};
  if (!w->status)
    ljp__pprof__profile__pack_to_buffer(piece, &into.base);
}

static Piece pprof_piece(void)
{
  Piece piece = LJP__PPROF__PROFILE__INIT;
  return piece;
}

/* Adds a string without checks. Returns its index in the table. */
static int64_t pprof_add_string(struct ljp_pprof *w, const char *text,
                                size_t len)
{
  Piece piece = pprof_piece();
  ProtobufCBinaryData data = {len, (uint8_t *)text};
  piece.n_string_table = 1;
  piece.string_table = &data;
  pprof_put(w, &piece);
  return w->string_count++;
}

int64_t ljp_pprof_add_text(struct ljp_pprof *w, struct ljp_str text)
{
  struct ljp_str plain = ljp_export_plain(text);
  if (!plain.data) {
    w->status = LJP_ERR_MEM;
    return 0;
  }
  int64_t place = pprof_add_string(w, plain.data, plain.len);
  free((char *)plain.data);
  return place;
}

int64_t ljp_pprof_profile_string(struct ljp_pprof *w, uint32_t number,
                                 uint32_t *place)
{
  if (!number)
    return 0;
  if (!*place)
    *place = (uint32_t)ljp_pprof_add_text(w, ljp_profile_str(w->e->p, number));
  return *place;
}

int64_t ljp_pprof_add_name(struct ljp_pprof *w, const char *text)
{
  return pprof_add_string(w, text, strlen(text));
}

/* Returns the id. Ids are 1, 2 ... in the order of the file: Parca takes no
** others. */
static uint64_t pprof_add_function(struct ljp_pprof *w, uint32_t number)
{
  const struct ljp_profile *p = w->e->p;
  const struct ljp_profile_frame *frame =
      &p->frames[p->functions[number].frame];
  char name[LJP_FRAME_NAME_BYTES];
  uint32_t file = 0;
  Ljp__Pprof__Function f = LJP__PPROF__FUNCTION__INIT;
  Ljp__Pprof__Function *list = &f;
  Piece piece = pprof_piece();
  if (w->functions[number])
    return w->functions[number];
  w->functions[number] = ++w->function_count;
  size_t len = ljp_function_name(p, number, name, sizeof name);
  if (len >= sizeof name)
    len = sizeof name - 1;
  f.id = w->functions[number];
  f.name = f.system_name = ljp_pprof_add_text(w, ljp_str(name, len));
  f.filename = ljp_pprof_profile_string(w, frame->file, &file);
  f.start_line = frame->first_line;
  piece.n_function = 1;
  piece.function = &list;
  pprof_put(w, &piece);
  return f.id;
}

static uint64_t pprof_module_start(uint32_t module)
{
  return (uint64_t)module << 32;
}

static bool pprof_is_address(const struct ljp_profile_frame *f)
{
  return f->kind < 16 && f->module &&
         ljp_frame_shape(f->kind) == LJP_SHAPE_ADDR;
}

/* Adds the location of a frame together with the frames it is inlined into.
** frames[0] is the innermost. Returns the id, as for functions. */
static uint64_t pprof_add_location(struct ljp_pprof *w, const uint32_t *frames,
                                   size_t count)
{
  const struct ljp_profile *p = w->e->p;
  Ljp__Pprof__Line lines[LINES_MAX];
  Ljp__Pprof__Line *list[LINES_MAX];
  Ljp__Pprof__Location location = LJP__PPROF__LOCATION__INIT;
  Ljp__Pprof__Location *locations = &location;
  const struct ljp_profile_frame *frame = &p->frames[frames[0]];
  ljp_assert(count > 0 && count <= LINES_MAX);
  if (w->locations[frames[0]])
    return w->locations[frames[0]];
  w->locations[frames[0]] = ++w->location_count;
  for (size_t i = 0; i < count; i++) {
    const struct ljp_profile_frame *f = &p->frames[frames[i]];
    ljp__pprof__line__init(&lines[i]);
    lines[i].function_id = pprof_add_function(w, f->function);
    lines[i].line = f->line;
    list[i] = &lines[i];
    if (pprof_is_address(frame) && f->line)
      w->has_lines[frame->module] = true;
  }
  location.id = w->locations[frames[0]];
  if (pprof_is_address(frame)) {
    location.mapping_id = frame->module;
    location.address = pprof_module_start(frame->module) + frame->offset;
    if (frame->offset >= w->limits[frame->module])
      w->limits[frame->module] = frame->offset + 1;
  }
  location.n_line = count;
  location.line = list;
  Piece piece = pprof_piece();
  piece.n_location = 1;
  piece.location = &locations;
  pprof_put(w, &piece);
  return location.id;
}

/* Fills ids with the locations of a path, leaf first. */
static size_t pprof_locate(struct ljp_pprof *w, const uint32_t *path,
                           uint32_t count, uint64_t *ids)
{
  const struct ljp_profile *p = w->e->p;
  uint32_t frames[LINES_MAX];
  size_t n = 0;
  while (count) {
    size_t group = 0;
    bool inlined = true;
    while (count && inlined && group < LINES_MAX) {
      uint32_t frame = p->nodes[path[--count]].frame;
      frames[group++] = frame;
      inlined = p->frames[frame].flags & LJP_PROFILE_INLINED_C;
    }
    ids[n++] = pprof_add_location(w, frames, group);
  }
  return n;
}

struct types {
  enum ljp_value_id values[LJP_VALUE_COUNT];
  size_t count;
};

static struct types pprof_choose_types(const struct ljp_export *e)
{
  struct types types = {.count = 0};
  for (unsigned v = 0; v < LJP_VALUE_COUNT; v++) {
    /* Readers expect both values of a group. */
    bool cpu = v <= LJP_VALUE_CPU &&
               (v < LJP_VALUE_CPU || !e->p->recorded_by) &&
               (e->has[LJP_VALUE_SAMPLES] || e->has[LJP_VALUE_CPU]);
    bool heap =
        v >= LJP_VALUE_ALLOC_OBJECTS && !e->apart &&
        (e->has[LJP_VALUE_ALLOC_OBJECTS] || e->has[LJP_VALUE_ALLOC_SPACE] ||
         e->has[LJP_VALUE_INUSE_SPACE]);
    if (cpu || heap || e->has[v])
      types.values[types.count++] = (enum ljp_value_id)v;
  }
  return types;
}

/* What a reader shows first: of time, its amount. Of memory only, readers
** show the last type, as for Go's heap profiles. */
static enum ljp_value_id pprof_first_shown(const struct ljp_export *e,
                                           const struct types *types)
{
  enum ljp_value_id first = LJP_VALUE_COUNT;
  if (e->asked)
    return e->value;
  for (size_t i = types->count; i-- > 0;)
    if (types->values[i] == LJP_VALUE_WALL ||
        types->values[i] == LJP_VALUE_CPU ||
        (types->values[i] == LJP_VALUE_SAMPLES && e->p->recorded_by))
      first = types->values[i];
  return first;
}

static void pprof_add_types(struct ljp_pprof *w, const struct types *types)
{
  enum ljp_value_id opens = pprof_first_shown(w->e, types);
  for (size_t i = 0; i < types->count; i++) {
    Ljp__Pprof__ValueType type = LJP__PPROF__VALUE_TYPE__INIT;
    Ljp__Pprof__ValueType *list = &type;
    Piece piece = pprof_piece();
    type.type = ljp_pprof_add_name(w, ljp_value_name(types->values[i]));
    type.unit = ljp_pprof_add_name(w, ljp_value_unit(types->values[i]));
    piece.n_sample_type = 1;
    piece.sample_type = &list;
    if (types->values[i] == opens)
      piece.default_sample_type = type.type;
    pprof_put(w, &piece);
  }
}

static void pprof_add_samples(struct ljp_pprof *w, const struct types *types,
                              struct ljp_pprof_labels *names)
{
  static uint32_t path[LJP_EXPORT_DEPTH];
  static uint64_t ids[LJP_EXPORT_DEPTH];
  const struct ljp_profile *p = w->e->p;
  ljp_export_start(w->e);
  for (uint32_t row = 0; row < p->row_count && !w->status; row++) {
    int64_t values[LJP_VALUE_COUNT];
    Ljp__Pprof__Sample sample = LJP__PPROF__SAMPLE__INIT;
    Ljp__Pprof__Sample *samples = &sample;
    uint32_t depth;
    bool any = false;
    for (size_t i = 0; i < types->count; i++) {
      uint64_t value = ljp_export_value(w->e, row, types->values[i]);
      values[i] = value <= INT64_MAX ? (int64_t)value : INT64_MAX;
      any |= value != 0;
    }
    if (!any)
      continue;
    ljp_export_path(p, p->rows[row].node, path, &depth);
    sample.n_location_id = pprof_locate(w, path, depth, ids);
    sample.location_id = ids;
    sample.n_value = types->count;
    sample.value = values;
    sample.n_label = ljp_pprof_label_sample(w, names, p->rows[row].context);
    sample.label = names->list;
    Piece piece = pprof_piece();
    piece.n_sample = 1;
    piece.sample = &samples;
    pprof_put(w, &piece);
  }
}

static void pprof_add_mappings(struct ljp_pprof *w)
{
  static const char digits[] = "0123456789abcdef";
  const struct ljp_profile *p = w->e->p;
  for (uint32_t i = 1; i < p->module_count && !w->status; i++) {
    const struct ljp_profile_module *m = &p->modules[i];
    Ljp__Pprof__Mapping mapping = LJP__PPROF__MAPPING__INIT;
    Ljp__Pprof__Mapping *list = &mapping;
    struct ljp_str id = ljp_profile_str(p, m->build_id);
    char hex[2 * 64];
    uint32_t n = id.len < 64 ? id.len : 64, path = 0;
    for (uint32_t k = 0; k < n; k++) {
      hex[2 * k] = digits[(uint8_t)id.data[k] >> 4];
      hex[2 * k + 1] = digits[(uint8_t)id.data[k] & 15];
    }
    uint64_t limit = m->span > w->limits[i] ? m->span : w->limits[i];
    mapping.id = i;
    mapping.memory_start = pprof_module_start(i);
    mapping.memory_limit = mapping.memory_start + limit;
    mapping.filename = ljp_pprof_profile_string(w, m->path, &path);
    mapping.build_id = n ? pprof_add_string(w, hex, (size_t)n * 2) : 0;
    mapping.has_functions = mapping.has_filenames = true;
    mapping.has_line_numbers = mapping.has_inline_frames = w->has_lines[i];
    Piece piece = pprof_piece();
    piece.n_mapping = 1;
    piece.mapping = &list;
    pprof_put(w, &piece);
  }
}

/* Adds times, the period, and the notices about losses. */
static void pprof_add_facts(struct ljp_pprof *w)
{
  const struct ljp_profile *p = w->e->p;
  Ljp__Pprof__ValueType period = LJP__PPROF__VALUE_TYPE__INIT;
  Piece piece = pprof_piece();
  const char *text;
  uint8_t kind = w->e->has[LJP_VALUE_SAMPLES]        ? LJP_PRODUCER_CPU
                 : w->e->has[LJP_VALUE_WALL_SAMPLES] ? LJP_PRODUCER_WALL
                                                     : LJP_PRODUCER_MEMORY;
  const char *unit = kind == LJP_PRODUCER_MEMORY ? "bytes"
                     : p->recorded_by            ? "count"
                                                 : "nanoseconds";
  period.type = ljp_pprof_add_name(w, kind == LJP_PRODUCER_CPU    ? "cpu"
                                      : kind == LJP_PRODUCER_WALL ? "wall"
                                                                  : "space");
  period.unit = ljp_pprof_add_name(w, unit);
  piece.period_type = &period;
  piece.period = (int64_t)p->interval_ns[kind];
  piece.time_nanos = (int64_t)p->origin_wall_ns;
  /* Parca takes what has a duration for a difference. What is in use is none. */
  if (!w->e->apart || !w->e->has[LJP_VALUE_INUSE_SPACE])
    piece.duration_nanos = (int64_t)p->end_ns;
  pprof_put(w, &piece);
  for (uint32_t i = 0; (text = ljp_profile_notice(p, i)); i++) {
    int64_t comment = ljp_pprof_add_text(w, ljp_str(text, strlen(text)));
    piece = pprof_piece();
    piece.n_comment = 1;
    piece.comment = &comment;
    pprof_put(w, &piece);
  }
}

enum ljp_status ljp_export_pprof(struct ljp_export *e)
{
  const struct ljp_profile *p = e->p;
  struct ljp_pprof w = {.e = e};
  struct ljp_pprof_labels names = {0};
  struct types types = pprof_choose_types(e);
  w.functions = calloc(p->function_count + 1, sizeof *w.functions);
  w.locations = calloc(p->frame_count + 1, sizeof *w.locations);
  w.limits = calloc(p->module_count + 1, sizeof *w.limits);
  w.has_lines = calloc(p->module_count + 1, sizeof *w.has_lines);
  names.threads = calloc(p->thread_count + 1, sizeof *names.threads);
  names.vms = calloc(p->vm_count + 1, sizeof *names.vms);
  if (!w.functions || !w.locations || !w.limits || !w.has_lines ||
      !names.threads || !names.vms || !ljp_pprof_init_labels(p, &names) ||
      deflateInit2(&w.z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, GZIP_WINDOW, 8,
                   Z_DEFAULT_STRATEGY) != Z_OK) {
    w.status = LJP_ERR_MEM;
  } else {
    ljp_pprof_add_name(&w,
                       ""); /* The table must begin with the empty string. */
    pprof_add_types(&w, &types);
    names.thread = ljp_pprof_add_name(&w, "thread");
    names.vm = ljp_pprof_add_name(&w, "vm");
    names.state = ljp_pprof_add_name(&w, "state");
    names.type = ljp_pprof_add_name(&w, "type");
    if (ljp_pprof_name_keys(&w, &names))
      pprof_add_samples(&w, &types, &names);
    pprof_add_mappings(&w);
    pprof_add_facts(&w);
    pprof_compress(&w, NULL, 0, Z_FINISH);
    deflateEnd(&w.z);
  }
  free(w.functions);
  free(w.locations);
  free(w.limits);
  free(w.has_lines);
  ljp_pprof_free_labels(&names);
  return w.status;
}
