/*
** Objects output: writes the objects of heap snapshots and their references (RFC 7)
** from the items of a reader. A record is built at a time; it is written when it is
** full, when another snapshot follows, and by ljp_objects_flush(), which must come
** before anything else is written to the stream and before a block ends. One
** thread.
*/
#ifndef LJP_TOOLS_OBJECTS_OUT_H
#define LJP_TOOLS_OBJECTS_OUT_H

#include "tools/rewrite/stream_out.h"

struct ljp_objects_out;

/* NULL: out of memory. out: outlives it. */
struct ljp_objects_out *ljp_objects_out_new(struct ljp_stream_out *out);
void ljp_objects_out_free(struct ljp_objects_out *o);

/* An item of kind OBJECTS or REF. */
void ljp_objects_put(struct ljp_objects_out *o, const struct ljp_item *item);

void ljp_objects_flush(struct ljp_objects_out *o);

#endif
