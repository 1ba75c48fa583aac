/*
** Facts about the process and its machine, for PROCESS and INFO. A fact that
** cannot be read from /proc is left empty. Writer thread only.
*/
#ifndef LJP_PROCESS_H
#define LJP_PROCESS_H

#include "src/writer/builder.h"

/* Appends the fields of PROCESS. */
void ljp_process_put(struct ljp_body *body);

/* Calls fact() for each fact about the machine ("host.kernel" ...). */
void ljp_process_facts(void (*fact)(void *ctx, const char *key,
                                    const char *value),
                       void *ctx);

/* True if the main thread has exited and only own_threads are left: nothing but
** our threads keeps the process alive. */
bool ljp_process_deserted(unsigned own_threads);

#endif
