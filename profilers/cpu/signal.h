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
enum ljp_status ljp_signal_install(int signal, struct ljp_failure *why);
/* The signal for a user who has chosen none. */
int ljp_signal_default(void);

/* A signal of others that asks for a sample (signal_owner.h): handles it until it is
** given back. Returns the signal, or 0 if the program handles or ignores it. */
int ljp_signal_borrow(int signal);
void ljp_signal_give_back(void);

enum ljp_handler {
  LJP_HANDLER_OURS,
  LJP_HANDLER_NONE, /* the program has reset the signal */
  LJP_HANDLER_OTHER
};
enum ljp_handler ljp_signal_handler(int signal);
/* Installs our handler once more. False: the program has one of its own. */
bool ljp_signal_set_again(int signal);

#endif
