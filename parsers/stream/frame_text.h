/*
** Frames of the stream as text, before any profile is made (`ljprof dump`).
** Views of a profile use parsers/profile/frame_name.h. Any thread.
*/
#ifndef LJP_PARSERS_FRAME_TEXT_H
#define LJP_PARSERS_FRAME_TEXT_H

#include "parsers/stream/model.h"

/* The definitions that a frame refers to; NULL for those that its kind does
** not have and for those that are not defined. */
struct ljp_frame_refs {
  const struct ljp_rec_node *node;
  const struct ljp_rec_proto *proto;
  const struct ljp_rec_module *module;
  const struct ljp_rec_builtin *builtin;
  const struct ljp_rec_trace *trace;
  const struct ljp_rec_labels *labels;
  bool missing; /* The frame refers to something that is not defined. */
};

void ljp_frame_resolve(const struct ljp_model *model,
                       const struct ljp_rec_node *node,
                       struct ljp_frame_refs *refs);

/*
** Writes a line for a frame, such as "f main.lua:12" or "libc.so.6+0x29d90".
** The line is cut to the room there is and terminated; strings are copied as
** they are in the stream. Returns the length written.
*/
size_t ljp_frame_text(const struct ljp_model *model,
                      const struct ljp_frame_refs *refs, char *out,
                      size_t room);

#endif
