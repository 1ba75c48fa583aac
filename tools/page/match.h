/*
** Match: which Lua function of an earlier profile is which of a later one. One
** thread.
*/
#ifndef LJP_TOOLS_PAGE_MATCH_H
#define LJP_TOOLS_PAGE_MATCH_H

#include "parsers/profile/profile.h"

/* For each function of `before`, the frame of `after` that names it; 0: none. The
** caller frees it. NULL: out of memory.
**
** Functions of one name and file are the same, in the order of their lines. If
** one file has more of them than the other, those with equal lines are the same,
** and then, unless they have no name, the others in their order. If all that is
** left of a name is in one file on each side, that is the same, too: the file was
** renamed, or a function moved to another. */
uint32_t *ljp_page_match(const struct ljp_profile *before,
                         const struct ljp_profile *after);

#endif
