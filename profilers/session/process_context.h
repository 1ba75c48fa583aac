/*
** The process context of OTEP 4719: a small mapping named OTEL_CTX that tells
** readers outside of the process what its threads publish (OTEP 4947). A process has
** one, so there is none of ours where another library has made one. It is not
** inherited by children.
**
** For published.c, under its lock. Takes no memory but the mapping.
*/
#ifndef LJP_PROCESS_CONTEXT_H
#define LJP_PROCESS_CONTEXT_H

#include <stdbool.h>

/* An index of a key is one byte. */
enum { LJP_CONTEXT_KEYS = 256, LJP_CONTEXT_KEY_BYTES = 64 };

/* Makes the context, which has the names of the keys; index by index. Returns 0 or
** an errno: EEXIST (the process has one of another library), ENOTSUP (readers could not
** find it), or what mmap() says. */
int ljp_context_start(const char *const *keys, unsigned count);
/* There are more keys now. Nothing happens without a context. */
void ljp_context_update(const char *const *keys, unsigned count);
void ljp_context_stop(void);

bool ljp_context_exists(void);

/* In a child of fork() or another copy, which does not have the mapping. */
void ljp_context_forget(void);

#endif
