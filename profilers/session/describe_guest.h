/*
** Descriptions of the guest for a session's writer: names and lines of
** functions, names of builtins, what a trace was compiled from. The writer
** calls them through src/base/describe.h.
*/
#ifndef LJP_DESCRIBE_GUEST_H
#define LJP_DESCRIBE_GUEST_H

#include "src/base/describe.h"
#include "src/luajit/functions.h"

/* Fills *describe for the writer of the session that has this hold. */
void ljp_describe_guest(struct ljp_describe *describe,
                        const struct ljp_guest_hold *hold);

#endif
