/*
** Facts about the process and its machine, for PROCESS and INFO. Reads /proc;
** what cannot be read is left empty. Writer thread only.
*/
#ifndef LJP_PROCESS_H
#define LJP_PROCESS_H

#include "src/writer/builder.h"

/* Appends PROCESS's fields. */
void ljp_process_put(struct ljp_body *body);

/* Calls back with each fact about the host ("host.kernel" ...). */
void ljp_process_facts(void (*fact)(void *ctx, const char *key,
                                    const char *value),
                       void *ctx);

/* True if the main thread has exited and only own_threads are left: the
** process lives on for our sake alone. */
bool ljp_process_deserted(unsigned own_threads);

#endif
