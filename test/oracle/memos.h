/*
** The oracle's test of walks with a memo (src/base/memo.h). They must find what
** a walk without a memo finds: at each instruction, with old memos, and with
** any word of the stacks changed.
*/
#ifndef LJP_TEST_MEMOS_H
#define LJP_TEST_MEMOS_H

#include <stdbool.h>
#include <stdint.h>

#include "profilers/unwind/walk.h"

struct lua_State;

/* False if there is no memory. */
bool memos_init(struct lua_State *L, bool verbose);

/* Call before an instruction, with what the walk from there has found. */
void memos_check(uint64_t step, const struct ljp_unwind_map *map,
                 const void *context, const struct ljp_walk *walk,
                 enum ljp_walk_result result);

/* Prints a line; returns the number of walks that found something else. */
uint64_t memos_report(void);

#endif
