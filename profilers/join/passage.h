/*
** Passage: from a door to a helper: a thread of ours that takes one end of a
** socket into a table of descriptors of its own (helper.h).
*/
#ifndef LJP_JOIN_PASSAGE_H
#define LJP_JOIN_PASSAGE_H

#include <stddef.h>

/* Makes a thread that nobody waits for, with all signals blocked from its first
** instruction on. It is counted as ours (ljp_session_helper()), and takes itself
** off again. Returns 0 or an errno. */
int ljp_passage_thread(size_t stack_bytes, void *(*run)(void *), void *arg);

struct ljp_passage;
/* Makes a helper for this end of a socket. Returns 0 or an errno. The
** descriptor stays the caller's. */
int ljp_passage_make(struct ljp_passage **out, int fd);
/* Waits until the caller may close the descriptor: the client has said hello,
** or will not. Then the passage is gone. */
void ljp_passage_await(struct ljp_passage *p);

#endif
