/*
** Descriptions of the guest for a session's writer; see describe_guest.h. All
** callbacks run on the writer thread. Their context is the hold's ticket, which
** may still be used when the hold has been released.
*/
#include "profilers/session/describe_guest.h"

#include <stdio.h>

#include "profilers/session/labels.h"
#include "profilers/session/vms.h"
#include "src/base/format.h"
#include "src/luajit/traces.h"

static bool describe_proto(void *ctx, uint32_t ref, struct ljp_proto_info *out)
{
  struct ljp_guest_proto proto;
  (void)ctx;
  if (!ljp_guest_proto(ref, &proto))
    return false;
  out->id = proto.id;
  out->first_line = proto.first_line;
  out->last_line = proto.last_line;
  out->flags = proto.flags;
  snprintf(out->chunk, sizeof out->chunk, "%s", proto.chunk);
  snprintf(out->name, sizeof out->name, "%s", proto.name);
  return true;
}

static bool describe_builtin(void *ctx, uint64_t ffid,
                             char name[LJP_NAME_BYTES])
{
  const char *known = ljp_guest_builtin((uint32_t)ffid);
  (void)ctx;
  if (known)
    snprintf(name, LJP_NAME_BYTES, "%s", known);
  return known != NULL;
}

static bool describe_labels(void *ctx, uint64_t id, char text[LJP_NAME_BYTES],
                            size_t *bytes)
{
  (void)ctx;
  return ljp_labels_describe(id, text, bytes);
}

static bool describe_trace(void *ctx, uint64_t id, struct ljp_trace_info *out)
{
  struct ljp_guest_trace trace;
  (void)ctx;
  if (!ljp_guest_trace(id, &trace))
    return false;
  out->vm = ljp_vms_id(trace.vm);
  out->number = trace.number;
  out->parent = trace.parent;
  out->parent_exit = trace.parent_exit;
  out->root = trace.root;
  out->link = trace.link;
  out->place =
      ljp_frame_lua(LJP_FRAME_LUA, 0, trace.place_ref, trace.place_line);
  out->code_address = trace.code;
  out->code_bytes = trace.code_bytes;
  snprintf(out->link_type, sizeof out->link_type, "%s", trace.link_type);
  out->ir_count = trace.ir_count;
  out->snapshots = trace.snapshots;
  out->marks = trace.marks;
  out->marks_cut = trace.marks_cut;
  out->flags = trace.truncated ? LJP_TRACE_TRUNCATED : 0;
  return true;
}

static void describe_round(void *ticket)
{
  ljp_guest_protos_round((uintptr_t)ticket);
}

static size_t describe_gone(void *ticket, uint32_t *refs, size_t room)
{
  return ljp_guest_protos_gone((uintptr_t)ticket, refs, room);
}

static void describe_end(void *ticket)
{
  ljp_guest_protos_end((uintptr_t)ticket);
}

void ljp_describe_guest(struct ljp_describe *describe,
                        const struct ljp_guest_hold *hold)
{
  *describe = (struct ljp_describe){.ctx = (void *)(uintptr_t)hold->ticket,
                                    .proto = describe_proto,
                                    .trace = describe_trace,
                                    .builtin = describe_builtin,
                                    .labels = describe_labels,
                                    .round = describe_round,
                                    .gone = describe_gone,
                                    .end = describe_end};
}
