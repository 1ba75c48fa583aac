/*
** The process's signal handler. The first session that needs the signal
** installs the handler; nothing ever removes it. Without a session the handler
** does nothing. Under the lock of the CPU profiler.
*/
#ifndef LJP_SIGNAL_H
#define LJP_SIGNAL_H

#include <stdbool.h>

#include "profilers/cpu/timer.h"
#include "profilers/session/failure.h"

/* Installs our handler. Fails if the program has a handler of its own for the
** signal. */
enum ljp_status ljp_signal_install(int signal,
                                   const struct ljp_timer_source *source,
                                   struct ljp_failure *why);
/* Is our handler still in place? */
bool ljp_signal_is_ours(int signal);
/* The option by which a user chooses another signal with this source. */
const char *ljp_signal_option(const struct ljp_timer_source *source);

#endif
