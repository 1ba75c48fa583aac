/*
** A sink's files in a store: their names (base/store_name.h) and locks. For
** sink.c; writer thread only, as there.
*/
#ifndef LJP_SINK_STORE_H
#define LJP_SINK_STORE_H

#include "src/writer/sink.h"

/* The folder of the sink's path, which the caller frees. NULL: no memory. */
char *ljp_sink_folder(const struct ljp_sink *sink);

/* The path of the next file, whose sequence is larger than all that the store
** has; the caller frees it. NULL: errno. */
char *ljp_sink_store_path(struct ljp_sink *sink);

/* Gives the file its name, or a later one if another process has taken that since
** it was chosen. A file that is now a copy needs its lock again; until it had it, a
** pruner may have removed it (ESTALE). Returns 0 or an errno. */
int ljp_sink_store_show(struct ljp_sink *sink);

#endif
