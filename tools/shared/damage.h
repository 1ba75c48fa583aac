/*
** Damage: what messages add if a file lacks something, and may have had it.
*/
#ifndef LJP_TOOLS_DAMAGE_H
#define LJP_TOOLS_DAMAGE_H

#include "parsers/profile/profile.h"

/* Whether the profile has all that was recorded until the session's end. */
static inline bool ljp_is_whole(const struct ljp_profile *p)
{
  const struct ljp_profile_totals *t = &p->totals;
  return !t->gaps && !t->missing_blocks && !t->bad_records && !t->unclosed &&
         !t->recording && !t->end_status;
}

/* Whether all that it lacks is still being recorded. */
static inline bool ljp_is_growing(const struct ljp_profile *p)
{
  const struct ljp_profile_totals *t = &p->totals;
  return t->recording && !t->gaps && !t->missing_blocks && !t->bad_records &&
         !t->unclosed;
}

/* The end of a message that something is not in the file. */
static inline const char *ljp_damage_hint(const struct ljp_profile *p)
{
  return ljp_is_whole(p)     ? ""
         : ljp_is_growing(p) ? "; it is still being recorded"
                             : "; it is damaged or was not closed ('ljprof "
                               "check' tells more)";
}

#endif
