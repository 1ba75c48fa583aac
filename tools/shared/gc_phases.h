/*
** The collector's time by phase, as a sentence that report and page show.
*/
#ifndef LJP_TOOLS_GC_PHASES_H
#define LJP_TOOLS_GC_PHASES_H

#include "parsers/profile/profile.h"
#include "tools/shared/print.h"

/* "marking 206 ms, sweeping 472 ms, in 714 samples (+- 7 % ...)". */
void ljp_gc_phases(struct ljp_print *out, const struct ljp_profile_gc_cost *c);

#endif
