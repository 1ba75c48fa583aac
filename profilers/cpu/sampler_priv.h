/*
** Inside of the handler: what sampler.c asks of sampler_place.c. Nobody else.
*/
#ifndef LJP_SAMPLER_PRIV_H
#define LJP_SAMPLER_PRIV_H

#include "profilers/cpu/sampler.h"

/* The interpreter's state is refined by the function that it is in. */
LJP_SIGSAFE enum ljp_vmstate ljp_sampler_state_of(const struct ljp_walk *walk,
                                                  bool *lfunc);

/* Mode L: where it is (the kernel or ourselves, and their caller), and the function
** that this belongs to. */
LJP_SIGSAFE void ljp_sampler_keep_leaf(struct ljp_stack *stack);

/* Puts the kernel, or ourselves, above the frame that had called it; limit:
** frames at most. */
LJP_SIGSAFE void ljp_sampler_put_leaf(struct ljp_stack *stack,
                                      enum ljp_frame_kind kind, uint32_t limit);

/* Host frames by the host's own backtracer, after the guest's. */
LJP_SIGSAFE void ljp_sampler_plug_in(struct ljp_stack *stack);

#endif
