/*
** The oracle's test of walks that know few registers, as those of a waiting
** thread do: the program counter, the stack pointer and, in a system call, its
** arguments. Such a walk finds the same stack, or says that it was cut.
*/
#ifndef LJP_TEST_FEW_H
#define LJP_TEST_FEW_H

#include <stdbool.h>
#include <stdint.h>

#include "profilers/unwind/walk.h"

void few_init(bool verbose);

/* Call before an instruction, with what the walk from there has found. */
void few_check(const struct ljp_unwind_map *map, const void *context,
               const struct ljp_walk *walk, enum ljp_walk_result result);

/* Prints a line; returns the number of walks that found something else. */
uint64_t few_report(void);

#endif
