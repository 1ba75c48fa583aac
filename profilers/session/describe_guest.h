/*
** What the guest has to say to a session's writer: names and lines of
** functions, names of builtins, what a trace was compiled from. See
** src/base/describe.h, which the writer calls by.
*/
#ifndef LJP_DESCRIBE_GUEST_H
#define LJP_DESCRIBE_GUEST_H

#include "src/base/describe.h"
#include "src/luajit/functions.h"

/* Fills *describe for the writer of the session that has this hold. */
void ljp_describe_guest(struct ljp_describe *describe,
                        const struct ljp_guest_hold *hold);

#endif
