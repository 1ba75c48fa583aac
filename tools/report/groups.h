/*
** Groups: the functions, lines, threads ... that the rows of a report are
** about, with their sums. `--by` chooses the kind of group.
*/
#ifndef LJP_TOOLS_REPORT_GROUPS_H
#define LJP_TOOLS_REPORT_GROUPS_H

#include "tools/report/report.h"

struct ljp_group_value {
  struct ljp_value self, total;
};

/* The groups of a selection, unsorted. */
struct ljp_groups {
  uint32_t count;
  struct ljp_group_value *values;
  /* The group of each node. NULL if groups do not consist of frames. */
  uint32_t *of_node;
  /* For each group a frame, node or other index that its name is made of. */
  uint32_t *first;
};

/* Whether groups of this kind consist of frames. */
bool ljp_by_of_frame(enum ljp_by by);

/* False: out of memory; then *groups is empty. */
bool ljp_groups_make(const struct ljp_report *r, struct ljp_groups *groups);
void ljp_groups_fini(struct ljp_groups *groups);

/* sites.c: what happened at the places of each group, if the file tells it. */
struct ljp_site_sums {
  uint64_t reallocs, realloc_bytes, realloc_old_bytes, frees, free_bytes;
};
bool ljp_report_has_sites(const struct ljp_report *r);
/* By group; the caller frees it. NULL: out of memory. */
struct ljp_site_sums *ljp_report_sites(const struct ljp_report *r,
                                       const struct ljp_groups *groups);
void ljp_report_json_site(const struct ljp_report *r,
                          const struct ljp_site_sums *sums);
void ljp_report_text_site(const struct ljp_report *r,
                          const struct ljp_site_sums *sums);

/* callers.c: the Lua function for which a group counts most. */
struct ljp_caller {
  uint32_t function;
  uint64_t weight; /* 0: there is none. */
};
/* By group, for groups of functions; the caller frees it. NULL: out of
** memory. */
struct ljp_caller *ljp_report_callers(const struct ljp_report *r,
                                      const struct ljp_groups *groups);

/* holders.c: what holds most of what a group leaked, in the file's heap
** snapshot. */
struct ljp_holder {
  uint32_t way; /* While it is looked for. */
  double share; /* Of the group's bytes in the snapshot. */
  char *text;   /* "_G.cache[*]"; NULL: not known. */
};
bool ljp_report_has_holders(const struct ljp_report *r);
/* By group. NULL: out of memory. */
struct ljp_holder *ljp_report_holders(const struct ljp_report *r,
                                      const struct ljp_groups *groups);
void ljp_report_holders_free(struct ljp_holder *holders, uint32_t count);

/* group_names.c: the name of a group, terminated and cut to room. */
void ljp_group_name(const struct ljp_report *r, const struct ljp_groups *groups,
                    uint32_t group, char *out, size_t room);

/* Machine code, which has an address in a module. */
static inline bool ljp_group_is_code(unsigned kind)
{
  return kind == LJP_FRAME_CFUNC || kind == LJP_FRAME_HOST ||
         kind == LJP_FRAME_VM;
}

static inline bool ljp_group_is_lua(unsigned kind)
{
  return kind == LJP_FRAME_LUA || kind == LJP_FRAME_LUA_INLINED;
}

#endif
