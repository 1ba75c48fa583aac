/*
** Filter: what a thread's seccomp filters do to system calls. Containers run programs
** under filters that refuse some calls; other sandboxes end a program for them.
*/
#ifndef LJP_TOOLS_FILTER_H
#define LJP_TOOLS_FILTER_H

#include <linux/filter.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Does the filter only permit system calls, or let them fail, whatever their number
** and arguments? Those of this machine's own kind only (x86-64). */
bool ljp_filter_is_harmless(const struct sock_filter *code, size_t count);

enum ljp_filters {
  LJP_FILTERS_HARMLESS,
  LJP_FILTERS_HARMFUL, /* or they cannot be read */
  LJP_FILTERS_UNSEEN,  /* only root may see them */
};

/* Reads all filters of a thread that this process traces and that has stopped. */
void ljp_filters_read(pid_t tid);
/* Judges what was read last. Takes longer, so the thread should go on before. */
enum ljp_filters ljp_filters_judge(void);
/* For a refusal, before "start the program with LJPROF_LISTEN". */
const char *ljp_filters_hint(enum ljp_filters state);

#endif
