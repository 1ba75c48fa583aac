/*
** The option --time A..B: seconds since the beginning of the session.
*/
#ifndef LJP_TOOLS_TIME_RANGE_H
#define LJP_TOOLS_TIME_RANGE_H

#include <stdint.h>

/* Sets what the text has; *to_ns 0: no end. Returns 0, or the exit code after it
** has reported the error. */
int ljp_time_range(const char *command, const char *text, uint64_t *from_ns,
                   uint64_t *to_ns);

#endif
