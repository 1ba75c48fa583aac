/*
** Segments: makes and names the file segments PATH.s1, PATH.s2 ... of a session
** in a joined program, when the program asks for one.
*/
#ifndef LJP_TOOLS_JOIN_SEGMENTS_H
#define LJP_TOOLS_JOIN_SEGMENTS_H

#include "tools/join/talk.h"

struct ljp_join_segments {
  const char *command, *path;
  uint32_t keep;    /* 0: all */
  uint32_t begun;   /* the program writes this one; 0: the first */
  uint32_t given;   /* the last one that was made */
  uint32_t removed; /* so many of the first ones */
  int fd;           /* of `given`, if it may be unused yet; else -1 */
  bool wanted, told;
};

void ljp_join_segments_init(struct ljp_join_segments *s, const char *command,
                            const char *path, uint32_t keep);
/* The program has said which segments it writes and wants. */
void ljp_join_segments_heard(struct ljp_join_segments *s,
                             struct ljp_talk *talk);
/* Now and then: if a segment could not be made. */
void ljp_join_segments_retry(struct ljp_join_segments *s,
                             struct ljp_talk *talk);
/* Removes a segment that was not used. over: the program writes no more. */
void ljp_join_segments_end(struct ljp_join_segments *s, bool over);

#endif
