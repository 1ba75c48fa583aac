/*
** Compiled traces, known by input and id.
*/
#ifndef LJP_PARSERS_PROFILE_TRACES_H
#define LJP_PARSERS_PROFILE_TRACES_H

#include "parsers/profile/profile.h"

/* The trace's place in p->traces, made when something first refers to it.
** 0: id is 0, or there are too many traces. LJP_ERR_MEM, as for all below. */
enum ljp_status ljp_profile_find_trace(struct ljp_profile *p, uint64_t id,
                                       uint32_t *trace);

/* A TRACE definition: fills in the trace. */
enum ljp_status ljp_profile_define_trace(struct ljp_profile *p,
                                         const struct ljp_rec_trace *rec);

/* A TRACE_EVENT. */
enum ljp_status
ljp_profile_take_trace_event(struct ljp_profile *p,
                             const struct ljp_rec_trace_event *e);

#endif
