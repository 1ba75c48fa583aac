/*
** From a profile to the page's form. Neither file nor profile is needed after.
*/
#ifndef LJP_TOOLS_PAGE_LOAD_H
#define LJP_TOOLS_PAGE_LOAD_H

#include "parsers/profile/profile.h"
#include "tools/page/page.h"

/* Fills a page that is new. The profile was read with points. LJP_ERR_MEM. */
enum ljp_status ljp_page_load(struct ljp_page *page,
                              const struct ljp_profile *profile,
                              const char *file);

/* Puts the text of measured lines beside them, from files below this folder;
** what was changed since is told. LJP_ERR_IO: no such folder; LJP_ERR_MEM. */
enum ljp_status ljp_page_sources(struct ljp_page *page, const char *dir,
                                 uint64_t since_wall_ns);

/* Only the stacks, into a page that may hold others already: for comparing.
** lines: the same place in a function by its line, too. */
struct ljp_page_stacks {
  struct ljp_page *page;
  const struct ljp_profile *p;
  uint32_t *frames;   /* Page's frame of each frame of the profile. */
  uint32_t *nodes;    /* Page's node of each node of the profile. */
  uint32_t *gc_nodes; /* The same where the collector was at work. */
  bool lines;
};

/* LJP_ERR_MEM; _fini in any case. */
enum ljp_status ljp_page_stacks_init(struct ljp_page_stacks *stacks,
                                     struct ljp_page *page,
                                     const struct ljp_profile *profile,
                                     bool lines);
void ljp_page_stacks_fini(struct ljp_page_stacks *stacks);

/* The page's node of a row of the profile, and the view it belongs to. */
uint32_t ljp_page_stacks_node(struct ljp_page_stacks *stacks,
                              const struct ljp_profile_row *row);
enum ljp_page_view ljp_page_stacks_view(const struct ljp_page_stacks *stacks,
                                        const struct ljp_profile_row *row);

#endif
