/*
** What the oracle reports: the number of stacks with each verdict, and the
** places of the incomplete ones.
*/
#ifndef ORACLE_REPORT_H
#define ORACLE_REPORT_H

#include <stdint.h>

enum verdict { COMPLETE, CUT, DEFERRED, PARTIAL, WRONG, VERDICTS };

/* Counts a stack with that verdict; reason: that of a cut. May be called in the
** handler that steps the program. */
void report_note(enum verdict verdict, uint32_t reason, uint64_t rip);
uint64_t report_count(enum verdict verdict);
/* Adds stacks that got no verdict while the program ran. */
void report_add(enum verdict verdict, uint64_t count);

/* Frames as text, to stderr. */
void report_host(uint64_t address);
void report_frames(const char *title, const uint64_t *frame, uint32_t count);

/* Prints the counts, then a line for each function and reason. */
void report_print(uint64_t steps);

#endif
