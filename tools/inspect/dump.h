/*
** Dump: prints one line or JSON object for each item of a reader.
*/
#ifndef LJP_TOOLS_DUMP_H
#define LJP_TOOLS_DUMP_H

#include "parsers/stream/reader.h"
#include "tools/shared/print.h"

/* The item must be the reader's current one. */
void ljp_dump_item(struct ljp_print *out, const struct ljp_reader *reader,
                   const struct ljp_item *item, bool json);

#endif
