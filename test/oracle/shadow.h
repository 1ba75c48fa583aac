/*
** The oracle's truth: the stack as it is known without the tested walk.
**
** Host side: the oracle sees each instruction, and so each call and return. The
** shadow holds the return addresses that are on the machine's stack.
** Guest side: at the first instruction of the code of a bytecode or a fast
** function, the interpreter's registers and frames are in the state that
** LuaJIT's own headers describe. At these settled points the frames are read
** with LuaJIT's own macros. Between two such points the stack is that of either
** point.
*/
#ifndef LJP_TEST_SHADOW_H
#define LJP_TEST_SHADOW_H

#include <stdbool.h>
#include <stdint.h>

enum { SHADOW_MAX = 4096, TRUTH_MAX = 65536, SEGMENTS_MAX = 512 };

struct shadow_entry {
  uint64_t ret; /* return address */
  uint64_t at;  /* where it lies on the stack */
};

struct shadow {
  struct shadow_entry entry[SHADOW_MAX]; /* root first */
  uint32_t count;
  uint64_t last_rip, last_rsp;
};

/* Call before each instruction. */
void shadow_step(struct shadow *shadow, uint64_t rip, uint64_t rsp);

/* Guest frames of one C frame. */
struct truth_segment {
  uint64_t cframe;
  uint32_t first, count; /* in the list of frames */
};

struct truth {
  uint64_t frame[TRUTH_MAX]; /* words of src/base/format.h, leaf first */
  struct truth_segment segment[SEGMENTS_MAX];
  uint64_t at[TRUTH_MAX];    /* where its link lies on the Lua stack */
  uint64_t slot[TRUTH_MAX];  /* the word below that: the function */
  uint64_t entry[TRUTH_MAX]; /* its C frame */
  struct lua_State *thread[TRUTH_MAX];
  uint32_t put[TRUTH_MAX]; /* in the last expected stack, leaf first */
  uint32_t frames, segments, puts;
  bool valid;
};

/* Is this a settled point, where the truth can be read? */
bool truth_settled(uint64_t rip);

/* Reads the truth, from the registers of the interrupted instruction. */
void truth_read(struct truth *truth, const struct shadow *shadow, uint64_t rsp,
                uint64_t rdx, uint64_t rbx);

/* Has the machine's stack risen above the innermost C frames of the truth? Then
** their guest frames are gone, which settles the stacks before. */
bool truth_left(struct truth *truth, uint64_t rsp);

/* A builtin may overwrite its own frame with another function or with its
** results before the next settled point. Then the stack is for a moment that of
** its caller. The same happens when the function that pcall called returns
** through pcall. */
bool truth_top_is_builtin(const struct truth *truth);
void truth_top_replaced(struct truth *truth, bool replaced);

/* Has the VM, in its present state and about to run rip, really removed that
** many of the innermost guest frames of the last expected stack from the Lua
** stack? */
bool truth_taken_off(const struct truth *truth, uint32_t missing, uint64_t rip);

/* The whole stack, host and guest, that the walk should find for the leaf rip.
** False if it does not fit. */
bool truth_expect(struct truth *truth, const struct shadow *shadow,
                  uint64_t rip, uint64_t rsp, uint64_t *frames, uint32_t *count,
                  uint32_t limit);

#endif
