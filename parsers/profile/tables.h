/*
** Tables: gives a profile a new stack tree, and counts its rows again there.
** Only the files of parsers/profile include this.
**
**   ljp_tables_take(p, &old);             p has no frames, nodes and rows now
**   ... interns frames and nodes in p; sets node of each of old.rows[]
**   ljp_tables_move_rows(p, &old, row_map);
**   ljp_tables_free(&old);
*/
#ifndef LJP_PARSERS_PROFILE_TABLES_H
#define LJP_PARSERS_PROFILE_TABLES_H

#include "parsers/profile/profile.h"

/* The old tables, which are read while the profile gets the new ones. */
struct ljp_tables {
  struct ljp_profile_frame *frames;
  struct ljp_profile_node *nodes;
  struct ljp_profile_row *rows;
  struct ljp_profile_memory *memory;
  struct ljp_profile_estimates *estimates;
  struct ljp_profile_site *sites;
  uint32_t frame_count, node_count, row_count;
};

/* p->pass must exist; its indexes of frames, nodes and rows must be empty. */
void ljp_tables_take(struct ljp_profile *p, struct ljp_tables *old);
void ljp_tables_free(struct ljp_tables *old);

/* Adds the old rows, whose nodes are already those of p, to the rows of p.
** row_map: zero; from an old row to the new one. LJP_ERR_MEM. */
enum ljp_status ljp_tables_move_rows(struct ljp_profile *p,
                                     const struct ljp_tables *old,
                                     uint32_t *row_map);

void ljp_tables_add_memory(struct ljp_profile_memory *to,
                           const struct ljp_profile_memory *from);
void ljp_tables_add_estimates(struct ljp_profile_estimates *to,
                              const struct ljp_profile_estimates *from);

#endif
