/*
** The stack of a sample of Tarantool's sysprof: one stack from the two that the
** file has, of guest frames and of host addresses.
**
** Nothing in the file says where the two interleave, but for C functions that
** Lua called: those are in both. They divide both stacks into sections. Within
** a section the guest frames are called by the innermost host frame that enters
** the VM (by its name: lj_vm_*, lua_pcall ...), or by the innermost of all if
** none does. Whatever is wrong with that, each frame of the file is in the
** stack, in its order.
*/
#ifndef LJP_PARSERS_PROFILE_TARANTOOL_STACK_H
#define LJP_PARSERS_PROFILE_TARANTOOL_STACK_H

#include "parsers/profile/tarantool_symbols.h"

struct ljp_tarantool_stack_frame {
  uint64_t start; /* Of a C function with a symbol; else 0. */
  uint32_t frame;
  uint8_t kind;   /* enum ljp_frame_kind */
  uint8_t asked;  /* The kind that the file says; 0: none. */
  bool enters_vm; /* This C function calls Lua code. */
};

/* The frame that was made last for an address or number of the file. */
struct ljp_tarantool_stack_memo {
  uint64_t number;
  uint64_t generation; /* Of the symbols, when it was made. */
  struct ljp_tarantool_stack_frame frame;
};

/* Memory that is used again for each sample. */
struct ljp_tarantool_stacks {
  struct ljp_tarantool_stack_frame guest[LJP_STACK_MAX_FRAMES];
  struct ljp_tarantool_stack_frame host[LJP_STACK_MAX_FRAMES];
  uint32_t guest_count, host_count; /* Leaf first. */
  /* By hash of a function's start: the innermost of its host frames, + 1. */
  uint16_t innermost[LJP_STACK_MAX_FRAMES * 2];
  uint32_t path[LJP_STACK_MAX_FRAMES * 2 + 1]; /* The frames of both. */
  uint32_t path_count;                         /* Outermost first. */
  /* By hash of the number. It grows when many numbers take others' places. */
  struct ljp_tarantool_stack_memo *memo;
  unsigned memo_bits;
  uint32_t evicted; /* Since it grew. */
};

/* stacks: all zero. LJP_ERR_MEM. */
enum ljp_status ljp_tarantool_stacks_init(struct ljp_tarantool_stacks *stacks);
void ljp_tarantool_stacks_fini(struct ljp_tarantool_stacks *stacks);

/* The node of a sample's stack; *cut says why it is not whole. LJP_ERR_MEM. */
enum ljp_status ljp_tarantool_stack(struct ljp_tarantool_stacks *stacks,
                                    struct ljp_tarantool_symbols *symbols,
                                    struct ljp_profile *p,
                                    const struct ljp_tarantool_sample *sample,
                                    uint32_t *node, uint8_t *cut);

#endif
