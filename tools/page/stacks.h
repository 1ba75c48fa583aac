/*
** Stacks: the stack tree of a profile, as frames and nodes of a page. Two
** profiles may be added to one page, to compare them. One thread.
*/
#ifndef LJP_TOOLS_PAGE_STACKS_H
#define LJP_TOOLS_PAGE_STACKS_H

#include "parsers/profile/profile.h"
#include "tools/page/page.h"

struct ljp_page_stacks {
  struct ljp_page *page;
  const struct ljp_profile *p;
  uint32_t *frames;   /* The page's frame of each frame of the profile. */
  uint32_t *nodes;    /* The page's node of each node of the profile. */
  uint32_t *gc_nodes; /* The same for samples of the collector; 0: not made. */
  bool lines;         /* Nodes of one function are told apart by line. */
  /* Of a comparison: traces are left out where they have a caller, and a Lua function is one frame
  ** whether it was compiled or not. It has the name and place of same[function]
  ** in after->frames, if that is not 0. */
  bool compared;
  const uint32_t *same;
  const struct ljp_profile *after;
};

/* LJP_ERR_MEM. Call _fini even after an error. */
enum ljp_status ljp_page_stacks_init(struct ljp_page_stacks *stacks,
                                     struct ljp_page *page,
                                     const struct ljp_profile *profile,
                                     bool lines);
/* The same for a comparison. same: of ljp_page_match(); NULL for the profile
** after. */
enum ljp_status ljp_page_stacks_init_compared(struct ljp_page_stacks *stacks,
                                              struct ljp_page *page,
                                              const struct ljp_profile *profile,
                                              const uint32_t *same,
                                              const struct ljp_profile *after);
void ljp_page_stacks_fini(struct ljp_page_stacks *stacks);

/* The page's node of a row of the profile, and the view the row belongs to. */
uint32_t ljp_page_stacks_node(struct ljp_page_stacks *stacks,
                              const struct ljp_profile_row *row);
enum ljp_page_view ljp_page_stacks_view(const struct ljp_page_stacks *stacks,
                                        const struct ljp_profile_row *row);

#endif
