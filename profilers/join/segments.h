/*
** Segments: the file segments of a session that a client has begun. The client
** makes and names each of them, and sends its descriptor before it is needed.
** Helper's thread, but for what the writer calls through ljp_sink_next.
*/
#ifndef LJP_JOIN_SEGMENTS_H
#define LJP_JOIN_SEGMENTS_H

#include <stdint.h>

#include "src/session/session.h"

/* Of a session that is to begin. */
extern const struct ljp_sink_next ljp_segments_next;

/* The session has begun. */
void ljp_segments_begin(void);

/* The client has sent this segment. Takes the descriptor. */
void ljp_segments_give(uint64_t segment, int fd);

/* Now and then: closes what is not used any more, and asks the client for the
** next segment. *output: the descriptor of the segment that is written. */
void ljp_segments_turn(int socket, int *output);

/* The session has ended: likewise, but nobody is asked. */
void ljp_segments_end(int *output);

#endif
