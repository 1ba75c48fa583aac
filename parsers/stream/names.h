/*
** Texts of the numbers in a stream, and of frames. Numbers that are not known
** have none (NULL): a view shows the number. Any thread.
*/
#ifndef LJP_PARSERS_NAMES_H
#define LJP_PARSERS_NAMES_H

#include "parsers/stream/model.h"
#include "parsers/stream/record.h"

const char *ljp_name_record(uint64_t tag);
const char *ljp_name_frame_kind(uint64_t kind);
const char *ljp_name_exact(uint64_t flags);
const char *ljp_name_cut(uint64_t cut);
const char *ljp_name_vmstate(uint64_t state);
const char *ljp_name_mem_op(uint64_t op);
const char *ljp_name_mem_type(uint64_t type);
const char *ljp_name_mem_flag(uint64_t one_bit);
const char *ljp_name_gap(uint64_t reason);
const char *ljp_name_bad(uint64_t reason);
const char *ljp_name_loss(uint64_t reason);
/* Of a field that is shown by a list. */
const char *ljp_name_shown(enum ljp_show show, uint64_t number);

/* What a frame refers to; NULL where it is of another kind or not defined. */
struct ljp_frame_view {
  const struct ljp_rec_node *node;
  const struct ljp_rec_proto *proto;
  const struct ljp_rec_module *module;
  const struct ljp_rec_builtin *builtin;
  const struct ljp_rec_trace *trace;
  bool missing; /* It refers to something that is not defined. */
};

void ljp_frame_view(const struct ljp_model *model,
                    const struct ljp_rec_node *node,
                    struct ljp_frame_view *view);

/*
** A line for a frame, such as "f main.lua:12" or "libc.so.6+0x29d90", cut to
** the room there is, terminated. Bytes come as they are in the stream.
** Returns its length.
*/
size_t ljp_frame_text(const struct ljp_model *model,
                      const struct ljp_frame_view *view, char *out,
                      size_t room);

#endif
