/*
** The oracle's questions to walks with a memo (src/base/memo.h): do they find
** what a walk without one finds, at each instruction, from memos that are old,
** and with any word of the stacks changed under them?
*/
#ifndef LJP_TEST_MEMOS_H
#define LJP_TEST_MEMOS_H

#include <stdbool.h>
#include <stdint.h>

#include "profilers/unwind/walk.h"

struct lua_State;

/* False if there is no memory. */
bool memos_init(struct lua_State *L, bool verbose);

/* Before an instruction: what the walk from there has found. */
void memos_check(uint64_t step, const struct ljp_unwind_map *map,
                 const void *context, const struct ljp_walk *walk,
                 enum ljp_walk_result result);

/* Prints a line; returns how many walks found something else. */
uint64_t memos_report(void);

#endif
