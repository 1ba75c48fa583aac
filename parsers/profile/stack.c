/*
** From a stack's id in a stream to its node in the profile. Ids never change
** their meaning, so what was found holds for good; what was found while
** something was missing holds until the epoch ends.
**
** A frame of machine code means different addresses as the leaf (the
** instruction) and as a caller (where it returns to), so each id has two
** nodes; they differ for such frames only.
*/
#include "parsers/profile/work.h"

#include "parsers/stream/names.h"

static struct ljp_map_entry *entry_of(struct ljp_profile *p, uint64_t id)
{
  uint64_t low = id & (LJP_EPOCH_MAX_NODES - 1);
  struct ljp_map_entry **page = &p->work->map[low / LJP_MAP_PAGE];
  if (LJP_UNLIKELY(!*page)) {
    *page = calloc(LJP_MAP_PAGE, sizeof **page);
    if (!*page)
      return NULL;
  }
  struct ljp_map_entry *entry = *page + low % LJP_MAP_PAGE;
  if (LJP_UNLIKELY(entry->id != id ||
                   (entry->epoch && entry->epoch != p->work->map_epoch)))
    *entry = (struct ljp_map_entry){.id = id};
  return entry;
}

static enum ljp_status chunk_name(struct ljp_profile *p, struct ljp_str chunk,
                                  uint32_t *id)
{
  char room[LJP_CHUNK_NAME_BYTES];
  return ljp_profile_string(p, ljp_chunk_name(chunk, room), id);
}

static uint32_t line_of(uint64_t line)
{
  return line < UINT32_MAX ? (uint32_t)line : UINT32_MAX;
}

enum ljp_status ljp_profile_proto(struct ljp_profile *p, uint64_t id,
                                  struct ljp_proto_entry *proto)
{
  struct ljp_proto_entry *entry = &p->work->protos[id % LJP_PROTO_ENTRIES];
  enum ljp_status status;
  if (!entry->known || entry->id != id || entry->epoch != p->work->map_epoch) {
    static const char main_chunk[] = "main chunk";
    const struct ljp_rec_proto *rec =
        ljp_model_proto(&p->work->reader->model, id);
    struct ljp_proto_entry fresh = {.id = id, .epoch = p->work->map_epoch};
    if (rec) {
      struct ljp_str name = rec->name;
      if (rec->flags & LJP_PROTO_MAIN)
        name = (struct ljp_str){main_chunk, sizeof main_chunk - 1};
      fresh.known = !(rec->flags & LJP_PROTO_UNKNOWN);
      fresh.first_line = line_of(rec->first_line);
      if ((status = ljp_profile_string(p, name, &fresh.name)) ||
          (status = chunk_name(p, rec->chunk, &fresh.file)))
        return status;
    }
    *entry = fresh;
  }
  *proto = *entry;
  return LJP_OK;
}

static enum ljp_status frame_of_lua(struct ljp_profile *p,
                                    const struct ljp_rec_node *node,
                                    uint32_t parent,
                                    struct ljp_profile_frame *f)
{
  struct ljp_proto_entry proto = {0};
  enum ljp_status status = ljp_profile_proto(p, node->ref, &proto);
  if (status)
    return status;
  f->line = line_of(node->value);
  if (proto.known) {
    f->name = proto.name;
    f->file = proto.file;
    f->first_line = proto.first_line;
  } else {
    f->flags |= LJP_PROFILE_UNKNOWN;
    f->offset = node->ref;
  }
  if (node->kind == LJP_FRAME_LUA_INLINED &&
      p->frames[p->nodes[parent].frame].kind == LJP_FRAME_LUA_INLINED)
    f->flags |= LJP_PROFILE_INLINED;
  return LJP_OK;
}

static enum ljp_status frame_of_trace(struct ljp_profile *p,
                                      const struct ljp_rec_node *node,
                                      struct ljp_profile_frame *f)
{
  const struct ljp_rec_trace *trace =
      ljp_model_trace(&p->work->reader->model, node->value);
  struct ljp_proto_entry proto = {0};
  f->offset = node->value;
  if (!trace) {
    f->flags |= LJP_PROFILE_UNKNOWN;
    return LJP_OK;
  }
  f->offset = trace->number;
  f->first_line = line_of(trace->line);
  enum ljp_status status = ljp_profile_trace(p, node->value, &f->trace);
  if (status)
    return status;
  status = ljp_profile_proto(p, trace->proto, &proto);
  f->file = proto.file;
  return status;
}

/* The frame of a node that stands above parent. */
static enum ljp_status frame_of(struct ljp_profile *p,
                                const struct ljp_rec_node *node,
                                uint32_t parent, bool caller, uint32_t *id)
{
  const struct ljp_model *model = &p->work->reader->model;
  struct ljp_profile_frame f = {.kind = node->kind, .flags = node->flags};
  const struct ljp_rec_builtin *builtin;
  enum ljp_status status = LJP_OK;
  switch (node->kind) {
  case LJP_FRAME_LUA:
  case LJP_FRAME_LUA_INLINED:
    status = frame_of_lua(p, node, parent, &f);
    break;
  case LJP_FRAME_HOST:
  case LJP_FRAME_VM:
    if (caller)
      f.flags |= LJP_PROFILE_CALLER;
    /* Fall through. */
  case LJP_FRAME_CFUNC:
    f.offset = node->value;
    status = ljp_profile_module(p, node->ref, &f.module);
    if (node->ref && !f.module)
      f.flags |= LJP_PROFILE_UNKNOWN;
    break;
  case LJP_FRAME_BUILTIN:
    f.offset = node->value;
    builtin = ljp_model_builtin(model, node->value);
    if (builtin)
      status = ljp_profile_string(p, builtin->name, &f.name);
    else
      f.flags |= LJP_PROFILE_UNKNOWN;
    break;
  case LJP_FRAME_TRACE:
    status = frame_of_trace(p, node, &f);
    break;
  default:
    f.offset = node->value;
  }
  return status ? status : ljp_profile_frame(p, &f, id);
}

static bool has_address(unsigned kind)
{
  return kind == LJP_FRAME_HOST || kind == LJP_FRAME_VM;
}

/* Whether a frame is not what it will be when all is defined. */
static bool is_lossy(const struct ljp_profile *p, uint32_t node)
{
  return p->frames[p->nodes[node].frame].flags & LJP_PROFILE_UNKNOWN;
}

/* The node of the frame rec above parent. */
static enum ljp_status step(struct ljp_profile *p,
                            const struct ljp_rec_node *rec, uint32_t parent,
                            bool caller, uint32_t *node)
{
  uint32_t frame;
  enum ljp_status status = frame_of(p, rec, parent, caller, &frame);
  if (status)
    return status;
  if (p->frames[frame].kind == LJP_FRAME_TOO_MANY) {
    *node = LJP_NODE_TOO_MANY;
    return LJP_OK;
  }
  return ljp_profile_node(p, parent, frame, node);
}

enum ljp_status ljp_profile_stack(struct ljp_profile *p, uint64_t stack,
                                  struct ljp_map_entry **entry, uint32_t *node)
{
  const struct ljp_rec_node *frames[LJP_STACK_MAX_FRAMES];
  struct ljp_map_entry *e;
  enum ljp_status status;
  unsigned count = 0;
  uint32_t epoch = 0, at = 0;
  *entry = NULL;
  if (!stack) {
    *node = LJP_NODE_NO_STACK;
    return LJP_OK;
  }
  /* Down to where callers are known. */
  for (uint64_t id = stack; id;) {
    if (!(e = entry_of(p, id)))
      return LJP_ERR_MEM;
    if (id == stack && e->leaf) {
      *entry = e;
      *node = e->leaf - 1;
      return LJP_OK;
    }
    if (id != stack && e->caller) {
      at = e->caller - 1;
      epoch = e->epoch;
      break;
    }
    const struct ljp_rec_node *rec =
        ljp_model_node(&p->work->reader->model, id);
    if (!rec || count == LJP_STACK_MAX_FRAMES) {
      at = LJP_NODE_LOST;
      epoch = p->work->map_epoch;
      break;
    }
    frames[count++] = rec;
    id = rec->up ? id - rec->up : 0;
  }
  if (!count) { /* The leaf itself is not defined. */
    *node = at;
    return LJP_OK;
  }
  /* And up again. */
  for (unsigned i = count; i-- > 0;) {
    const struct ljp_rec_node *rec = frames[i];
    uint32_t leaf = 0;
    if (i == 0) {
      if ((status = step(p, rec, at, false, &leaf)))
        return status;
      at = leaf;
    } else if ((status = step(p, rec, at, true, &at))) {
      return status;
    }
    if (is_lossy(p, at))
      epoch = p->work->map_epoch;
    if (!(e = entry_of(p, rec->id)))
      return LJP_ERR_MEM;
    e->epoch = epoch;
    if (i == 0)
      e->leaf = leaf + 1;
    if (i > 0 || !has_address(rec->kind))
      e->caller = at + 1;
  }
  *entry = e;
  *node = at;
  return LJP_OK;
}
