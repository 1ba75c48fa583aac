/*
** Interning: each different string, frame, node, context and row of the
** profile is stored once. A function here returns the number of what it is
** given, which it adds if it is new. Beyond a limit it returns the number that
** stands for everything beyond. LJP_ERR_MEM is the only failure.
*/
#ifndef LJP_PARSERS_PROFILE_INTERN_H
#define LJP_PARSERS_PROFILE_INTERN_H

#include "parsers/profile/profile.h"

/* Nodes that always exist during the pass, with these numbers; their frames
** have the same numbers. */
enum {
  LJP_NODE_NO_STACK = 1,
  LJP_NODE_LOST,
  LJP_NODE_TOO_MANY,
  LJP_NODE_BEFORE,
  LJP_NODE_UNRECORDED
};

/* Makes the strings, the nodes above, and memory[0]. */
enum ljp_status ljp_profile_init_intern(struct ljp_profile *p);
/* Only the nodes and memory[0]. */
enum ljp_status ljp_profile_init_nodes(struct ljp_profile *p);

enum ljp_status ljp_profile_intern_string(struct ljp_profile *p,
                                          struct ljp_str s, uint32_t *id);
enum ljp_status ljp_profile_intern_frame(struct ljp_profile *p,
                                         const struct ljp_profile_frame *frame,
                                         uint32_t *id);
enum ljp_status ljp_profile_intern_node(struct ljp_profile *p, uint32_t parent,
                                        uint32_t frame, uint32_t *id);
/* The node below node *id that these frames lead to, outermost first. */
enum ljp_status ljp_profile_intern_path(struct ljp_profile *p,
                                        const uint32_t *frames, uint32_t count,
                                        uint32_t *id);
enum ljp_status
ljp_profile_intern_context(struct ljp_profile *p,
                           const struct ljp_profile_context *context,
                           uint32_t *id);
enum ljp_status ljp_profile_intern_row(struct ljp_profile *p, uint32_t node,
                                       uint32_t context, uint32_t *id);

/* The place of a row in memory[]. */
enum ljp_status ljp_profile_intern_memory(struct ljp_profile *p, uint32_t row,
                                          uint32_t *memory);

/* Makes memory[0], which no row uses. */
enum ljp_status ljp_profile_init_memory(struct ljp_profile *p);

/* Gives estimates[] as many places as memory[] has room for. After the first
** call it grows with memory[]. */
enum ljp_status ljp_profile_reserve_estimates(struct ljp_profile *p);

/* The same for sites[]. */
enum ljp_status ljp_profile_reserve_sites(struct ljp_profile *p);

bool ljp_profile_same_frame(const struct ljp_profile_frame *a,
                            const struct ljp_profile_frame *b);

#endif
