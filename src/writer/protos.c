/*
** Prototypes as the writer knows them: by numbers of its own (refs.h), since a
** reference is used again. A number's definition is kept, and repeated by epoch,
** as long as the stack tree may name it.
*/
#include <string.h>

#include "src/writer/writer_impl.h"

/* Asks what a reference stands for now. 0: nobody knows. */
static uint32_t meet(struct ljp_writer *w, uint32_t ref)
{
  struct ljp_proto_info info;
  memset(&info, 0, sizeof info);
  if (!w->options.describe.proto ||
      !w->options.describe.proto(w->options.describe.ctx, ref, &info) ||
      !info.id)
    return 0;
  uint32_t number = ljp_refs_give(&w->refs, ref);
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
  if (!ljp_writer_keep(w, LJP_DEF_PROTO, number, info.id, LJP_REC_PROTO)) {
    ljp_refs_forget(&w->refs, ref);
    return 0;
  }
  return number;
}

uint32_t ljp_writer_proto(struct ljp_writer *w, uint32_t ref)
{
  if (!ref)
    return 0;
  uint32_t number = ljp_refs_number(&w->refs, ref);
  return number ? number : meet(w, ref);
}

uint64_t ljp_writer_need_proto(struct ljp_writer *w, uint32_t number)
{
  struct ljp_def *def =
      number ? ljp_defs_find(&w->defs, LJP_DEF_PROTO, number) : NULL;
  ljp_writer_put(w, def);
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
      ljp_refs_forget(&w->refs, refs[i]);
}
