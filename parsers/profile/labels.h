/*
** Labels: what the program calls its work (RFC 1). During the pass a set of
** labels is the outermost frame of a stack, so that counting an event costs
** nothing more. When the pass is over, rebuild.c takes these frames off and
** puts the sets into the contexts of the rows. One thread a profile.
*/
#ifndef LJP_PARSERS_PROFILE_LABELS_H
#define LJP_PARSERS_PROFILE_LABELS_H

#include "parsers/profile/profile.h"

struct ljp_tables;

/* Makes the profile's own sets. LJP_ERR_MEM, as for all below that may fail. */
enum ljp_status ljp_labels_init(struct ljp_profile *p);

/* Finds or adds a set of the stream. */
enum ljp_status ljp_labels_define(struct ljp_profile *p,
                                  const struct ljp_rec_labels *rec,
                                  uint32_t *labels);

/* The set with an id of the stream; LJP_LABELS_LOST: it is not defined. */
enum ljp_status ljp_labels_find(struct ljp_profile *p, uint64_t id,
                                uint32_t *labels);

/* Clears *wanted if the options exclude an event by its time or its labels. */
enum ljp_status ljp_profile_filter(struct ljp_profile *p, uint64_t time_ns,
                                   uint64_t stack, bool *wanted);

/* The string of a key; 0: no set has it. */
uint32_t ljp_labels_key(const struct ljp_profile *p, struct ljp_str key);

/* The string of the value that a set has for a key; 0: it has none, or an empty
** one. Of sets that are not known it says so. */
uint32_t ljp_labels_value(const struct ljp_profile *p, uint32_t labels,
                          uint32_t key);

/* The n-th key of the sets of the file, sorted, and the number of its values;
** false: there is none, or no memory. */
struct ljp_labels_keys {
  struct ljp_labels_key {
    uint32_t key, values;
  } * list;
  uint32_t count;
};
bool ljp_labels_keys(const struct ljp_profile *p, struct ljp_labels_keys *keys);

/* If options.labels or options.label_key ask for what no set has, p->error says
** which there are. LJP_ERR_USE, LJP_ERR_MEM. */
enum ljp_status ljp_labels_check(struct ljp_profile *p);

/* -- For rebuild.c: the pass is over ---------------------------------------- */

/* The labels of events at a node of the pass, by those of its parent. With
** LJP_LABELS_ONLY it is the node of the labels themselves. */
#define LJP_LABELS_ONLY (1u << 31)
uint32_t ljp_labels_at(const struct ljp_tables *old, const uint32_t *labels,
                       uint32_t i);

/* Puts the labels of an old row into its context. *node: its new one. */
enum ljp_status ljp_labels_move_row(struct ljp_profile *p,
                                    const struct ljp_tables *old,
                                    struct ljp_profile_row *row,
                                    uint32_t labels, uint32_t *node);

/* label_frames.c: gives each stack one more outermost frame, KEY=VALUE
** (options.label_frames). */
enum ljp_status ljp_profile_frame_labels(struct ljp_profile *p);

#endif
