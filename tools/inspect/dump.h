/*
** Dump: one line (or JSON object) for each event of a reader.
*/
#ifndef LJP_TOOLS_DUMP_H
#define LJP_TOOLS_DUMP_H

#include "parsers/stream/reader.h"
#include "tools/shared/print.h"

/* The event is the reader's current one. */
void ljp_dump_event(struct ljp_print *out, const struct ljp_reader *reader,
                    const struct ljp_item *event, bool json);

#endif
