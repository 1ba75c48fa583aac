/*
** Recent: what was counted in the last seconds, while a profile is still being
** read. The profile goes on; a view gets a part of it: a finished profile with
** the rows of these seconds.
**
**   ljp_recent_cut(&recent, p, now_ns);   now and then: ends a window
**   ljp_recent_open(&recent, p, &query, &part);
**   ... the part is read like any finished profile
**   ljp_recent_close(p, part);
**
** Memory is bounded by LJP_RECENT_MAX_ENTRIES and by the rows of the profile. If
** there is no room, the oldest windows are dropped. One thread a profile.
*/
#ifndef LJP_PARSERS_RECENT_H
#define LJP_PARSERS_RECENT_H

#include "parsers/profile/profile.h"

#define LJP_RECENT_WINDOWS 64u
#ifdef LJP_DEBUG /* Tests reach the limit. */
#define LJP_RECENT_MAX_ENTRIES (1u << 10)
#else
#define LJP_RECENT_MAX_ENTRIES (1u << 20)
#endif

/* What a row had, or what came to it. */
struct ljp_recent_sums {
  uint64_t count, weight;
  uint64_t objects; /* Allocated, in 1/LJP_OBJECT. */
};

struct ljp_recent_entry {
  uint32_t row;
  struct ljp_recent_sums sums;
};

struct ljp_recent_window {
  uint64_t begin_ns, end_ns; /* Since the profile's origin. */
  struct ljp_recent_entry *entries;
  uint32_t count;
};

struct ljp_recent {
  struct ljp_recent_window windows[LJP_RECENT_WINDOWS]; /* Oldest first. */
  uint32_t window_count;
  uint32_t entry_count;         /* Of all windows. */
  uint64_t cut_ns;              /* The end of the newest window. */
  struct ljp_recent_sums *seen; /* By row of the profile, at the last cut. */
  uint32_t seen_count, seen_room;
};

struct ljp_recent_query {
  uint64_t from_ns;    /* Windows that end after it. */
  bool all;            /* Everything since the profile's begin. */
  bool native;         /* The native view, not the Lua view. */
  uint32_t thread, vm; /* In threads[], vms[]; 0: all of them. */
};

/* Ends a window at this time: it has what was counted since the last one. */
enum ljp_status ljp_recent_cut(struct ljp_recent *recent,
                               const struct ljp_profile *p, uint64_t now_ns);

/* The beginning of the oldest window that a query from this time finds; its end
** if there is none. */
uint64_t ljp_recent_begin(const struct ljp_recent *recent, uint64_t from_ns);

/* Makes a part. Until it is closed, p must not be used. LJP_ERR_MEM: *part is
** NULL, and p can be used. */
enum ljp_status ljp_recent_open(const struct ljp_recent *recent,
                                struct ljp_profile *p,
                                const struct ljp_recent_query *query,
                                struct ljp_profile **part);
void ljp_recent_close(struct ljp_profile *p, struct ljp_profile *part);

void ljp_recent_fini(struct ljp_recent *recent);

#endif
