/*
** Points: what was counted at a row within a short span of time (a tick); see
** struct ljp_profile_point.
*/
#ifndef LJP_PARSERS_PROFILE_POINTS_H
#define LJP_PARSERS_PROFILE_POINTS_H

#include "parsers/profile/profile.h"

/* time_ns is since the origin. LJP_ERR_MEM. */
enum ljp_status ljp_profile_add_point(struct ljp_profile *p, uint64_t time_ns,
                                      uint32_t row, uint64_t count,
                                      uint64_t weight, bool live);

/* Sorts the points and adds up those of the same tick and row. */
void ljp_profile_merge_points(struct ljp_profile *p);

#endif
