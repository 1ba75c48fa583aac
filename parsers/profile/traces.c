/*
** Compiled traces and their events. The first reference to a trace makes its
** place, its definition fills the place in. One thread a profile.
*/
#include "parsers/profile/traces.h"

#include "parsers/base/array.h"
#include "parsers/profile/definitions.h"
#include "parsers/profile/intern.h"
#include "parsers/profile/pass.h"

enum ljp_status ljp_profile_find_trace(struct ljp_profile *p, uint64_t id,
                                       uint32_t *trace)
{
  struct ljp_profile_pass *pass = p->pass;
  struct ljp_index *index = &pass->trace_index;
  *trace = 0;
  if (!id)
    return LJP_OK;
  if (!ljp_index_reserve(index) ||
      !ljp_array_reserve(&p->traces, p->trace_count, &pass->trace_room,
                         sizeof *p->traces))
    return LJP_ERR_MEM;
  uint64_t h = ljp_hash_mix(p->strings.seed, id);
  uint32_t hash = ljp_hash_finish(ljp_hash_mix(h, pass->source));
  struct ljp_index_slot *slot = ljp_index_at(index, hash);
  for (; slot->item; slot = ljp_index_next(index, slot)) {
    const struct ljp_profile_trace *t = &p->traces[slot->item - 1];
    if (slot->hash == hash && t->id == id && t->source == pass->source) {
      *trace = slot->item - 1;
      return LJP_OK;
    }
  }
  if (p->trace_count > LJP_PROFILE_MAX_EVENTS) {
    p->totals.dropped_events++;
    return LJP_OK;
  }
  ljp_index_put(index, slot, hash, p->trace_count);
  p->traces[p->trace_count] =
      (struct ljp_profile_trace){.source = pass->source, .id = id};
  *trace = p->trace_count++;
  return LJP_OK;
}

enum ljp_status ljp_profile_define_trace(struct ljp_profile *p,
                                         const struct ljp_rec_trace *rec)
{
  struct ljp_profile_trace t = {0};
  struct ljp_profile_proto proto = {0};
  enum ljp_status status;
  uint32_t at;
  if ((status = ljp_profile_find_trace(p, rec->id, &at)) || !at ||
      p->traces[at].known)
    return status;
  if ((status = ljp_profile_find_trace(p, rec->parent, &t.parent)) ||
      (status = ljp_profile_find_trace(p, rec->root, &t.root)) ||
      (status = ljp_profile_find_trace(p, rec->link, &t.link)) ||
      (status = ljp_profile_find_proto(p, rec->proto, &proto)) ||
      (status = ljp_profile_find_vm(p, rec->vm, &t.vm)) ||
      (status = ljp_profile_intern_string(p, rec->link_type, &t.link_type)))
    return status;
  t.source = p->traces[at].source;
  t.id = rec->id;
  t.known = true;
  t.number = ljp_clamp_u32(rec->number);
  t.parent_exit = ljp_clamp_u32(rec->parent_exit);
  t.name = proto.name;
  t.file = proto.file;
  t.first_line = proto.first_line;
  t.line = ljp_clamp_u32(rec->line);
  t.code_address = rec->code_address;
  t.code_bytes = rec->code_size;
  t.ir_count = ljp_clamp_u32(rec->ir_count);
  t.snapshots = ljp_clamp_u32(rec->snapshots);
  t.marks = ljp_clamp_u32(rec->marks);
  t.marks_cut = ljp_clamp_u32(rec->marks_cut);
  t.truncated = rec->flags & LJP_TRACE_TRUNCATED;
  p->traces[at] = t;
  p->totals.marks_cut += rec->marks_cut;
  p->totals.truncated += t.truncated;
  return LJP_OK;
}

enum ljp_status
ljp_profile_take_trace_event(struct ljp_profile *p,
                             const struct ljp_rec_trace_event *e)
{
  struct ljp_profile_trace_event t = {
      .time_ns = ljp_profile_since(p, e->time_ns),
      .parent_exit = ljp_clamp_u32(e->parent_exit),
      .line = ljp_clamp_u32(e->line),
      .reason_number = ljp_clamp_u32(e->reason_number),
      .what = (uint8_t)e->action};
  struct ljp_profile_proto proto = {0};
  struct ljp_stack_entry *entry;
  enum ljp_status status;
  if (p->trace_event_count >= LJP_PROFILE_MAX_EVENTS) {
    p->totals.dropped_events++;
    return LJP_OK;
  }
  if ((status = ljp_profile_find_proto(p, e->proto, &proto)) ||
      (status = ljp_profile_find_vm(p, e->vm, &t.vm)) ||
      (status = ljp_profile_find_trace(p, e->trace, &t.trace)) ||
      (status = ljp_profile_find_trace(p, e->parent, &t.parent)) ||
      (status = ljp_profile_intern_string(p, e->reason, &t.reason)))
    return status;
  if (p->options.trace_stacks && e->stack &&
      (status = ljp_profile_find_stack(p, e->stack, &entry, &t.stack)))
    return status;
  t.name = proto.name;
  t.file = proto.file;
  t.first_line = proto.first_line;
  if (!ljp_array_reserve(&p->trace_events, p->trace_event_count,
                         &p->pass->trace_event_room, sizeof *p->trace_events))
    return LJP_ERR_MEM;
  p->trace_events[p->trace_event_count++] = t;
  return LJP_OK;
}
