/*
** What unwind_oracle runs one instruction at a time, and what a workload has to
** tell the oracle because stepping cannot show it.
*/
#ifndef UNWIND_WORKLOADS_H
#define UNWIND_WORKLOADS_H

#include <stdint.h>

struct unwind_workload {
  const char *name;
  void (*run)(void);
};
extern const struct unwind_workload unwind_workloads[];
extern const unsigned unwind_workloads_count;

/* The body of SIGUSR1's handler, which the oracle installs. */
void unwind_workload_in_signal(int number);

/* The stack of the one fiber. */
extern char unwind_fiber_stack[1 << 16];

/* In the oracle: the fiber begins anew, with a return address pc at that
** place. */
void oracle_begin_fiber(uint64_t pc, uint64_t place);

#endif
