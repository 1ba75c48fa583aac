/*
** Definitions that the writer asks the session's owner for (describe.h):
** prototypes, traces and builtins. They are written when an epoch first needs
** them. Writer thread only.
** Invariant: the definition of a prototype's number is kept as long as the
** stack tree may name the number.
*/
#include <string.h>

#include "src/writer/writer_impl.h"

/* -- Prototypes ------------------------------------------------------------ */

/* Asks what a reference stands for now, and numbers it. 0: nobody knows. */
static uint32_t describe_proto(struct ljp_writer *w, uint32_t ref)
{
  struct ljp_proto_info info;
  memset(&info, 0, sizeof info);
  if (!w->options.describe.proto ||
      !w->options.describe.proto(w->options.describe.ctx, ref, &info) ||
      !info.id)
    return 0;
  uint32_t number = ljp_proto_number_give(&w->proto_numbers, ref);
  if (!number)
    return 0;
  struct ljp_body *b = ljp_writer_body(w);
  ljp_body_u(b, info.id);
  ljp_body_u(b, info.first_line);
  ljp_body_u(b, info.last_line);
  ljp_body_u(b, info.flags);
  ljp_body_str(b, info.chunk, strnlen(info.chunk, LJP_NAME_BYTES),
               LJP_NAME_BYTES);
  ljp_body_str(b, info.name, strnlen(info.name, LJP_NAME_BYTES),
               LJP_NAME_BYTES);
  if (!ljp_writer_keep_def(w, LJP_DEF_PROTO, number, info.id, LJP_REC_PROTO)) {
    ljp_proto_number_forget(&w->proto_numbers, ref);
    return 0;
  }
  return number;
}

uint32_t ljp_writer_proto_number(struct ljp_writer *w, uint32_t ref)
{
  if (!ref)
    return 0;
  uint32_t number = ljp_proto_number_find(&w->proto_numbers, ref);
  return number ? number : describe_proto(w, ref);
}

uint64_t ljp_writer_need_proto(struct ljp_writer *w, uint32_t number)
{
  struct ljp_def *def =
      number ? ljp_defs_find(&w->defs, LJP_DEF_PROTO, number) : NULL;
  ljp_writer_put_def(w, def);
  return def ? def->id : 0;
}

void ljp_writer_forget_protos(struct ljp_writer *w)
{
  const struct ljp_describe *describe = &w->options.describe;
  uint32_t refs[LJP_GONE_AT_ONCE];
  size_t n;
  while (describe->gone &&
         (n = describe->gone(describe->ctx, refs, LJP_GONE_AT_ONCE)) > 0)
    for (size_t i = 0; i < n; i++)
      ljp_proto_number_forget(&w->proto_numbers, refs[i]);
}

/* -- Traces and builtins --------------------------------------------------- */

static void describe_trace(struct ljp_writer *w, uint64_t id)
{
  struct ljp_trace_info info;
  memset(&info, 0, sizeof info);
  if (!w->options.describe.trace ||
      !w->options.describe.trace(w->options.describe.ctx, id, &info))
    return;
  uint32_t ref = info.place ? ljp_frame_proto_ref(info.place) : 0;
  uint32_t number = ljp_writer_proto_number(w, ref);
  uint64_t proto = ljp_writer_need_proto(w, number);
  /* Only now: the prototype's definition uses the same body. */
  struct ljp_body *b = ljp_writer_body(w);
  const uint64_t fields[] = {id,
                             info.vm,
                             info.number,
                             info.parent,
                             info.parent_exit,
                             info.root,
                             proto,
                             info.place ? ljp_frame_line(info.place) : 0,
                             info.link,
                             info.code_address,
                             info.code_bytes};
  for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++)
    ljp_body_u(b, fields[i]);
  ljp_body_str(b, info.link_type,
               strnlen(info.link_type, sizeof info.link_type),
               sizeof info.link_type);
  ljp_body_u(b, info.ir_count);
  ljp_body_u(b, info.snapshots);
  ljp_body_u(b, info.marks);
  ljp_body_u(b, info.flags);
  ljp_body_u(b, info.marks_cut);
  struct ljp_def *def =
      ljp_writer_define(w, LJP_DEF_TRACE, id, id, LJP_REC_TRACE);
  if (def)
    def->proto = number;
}

void ljp_writer_need_trace(struct ljp_writer *w, uint64_t id)
{
  struct ljp_def *def = ljp_defs_find(&w->defs, LJP_DEF_TRACE, id);
  if (!def) {
    describe_trace(w, id);
    return;
  }
  ljp_writer_need_proto(w, def->proto);
  ljp_writer_put_def(w, def);
}

void ljp_writer_need_builtin(struct ljp_writer *w, uint64_t ffid)
{
  struct ljp_def *def = ljp_defs_find(&w->defs, LJP_DEF_BUILTIN, ffid);
  if (def) {
    ljp_writer_put_def(w, def);
    return;
  }
  char name[LJP_NAME_BYTES] = "";
  if (!w->options.describe.builtin ||
      !w->options.describe.builtin(w->options.describe.ctx, ffid, name))
    return;
  struct ljp_body *b = ljp_writer_body(w);
  ljp_body_u(b, ffid);
  ljp_body_str(b, name, strnlen(name, sizeof name), sizeof name);
  ljp_writer_define(w, LJP_DEF_BUILTIN, ffid, ffid, LJP_REC_BUILTIN);
}

void ljp_writer_need_labels(struct ljp_writer *w, uint64_t id)
{
  struct ljp_def *def = ljp_defs_find(&w->defs, LJP_DEF_LABELS, id);
  const struct ljp_describe *d = &w->options.describe;
  char text[LJP_NAME_BYTES];
  size_t bytes = 0;
  if (def) {
    ljp_writer_put_def(w, def);
    return;
  }
  if (!d->labels || !d->labels(d->ctx, id, text, &bytes))
    return;
  struct ljp_body *b = ljp_writer_body(w);
  ljp_body_u(b, id);
  ljp_body_str(b, text, bytes, sizeof text);
  ljp_writer_define(w, LJP_DEF_LABELS, id, id, LJP_REC_LABELS);
}

void ljp_writer_name_builtins(struct ljp_writer *w)
{
  char name[LJP_NAME_BYTES] = "";
  const struct ljp_describe *d = &w->options.describe;
  for (uint64_t ffid = 2; d->builtin && d->builtin(d->ctx, ffid, name); ffid++)
    ljp_writer_need_builtin(w, ffid);
}
