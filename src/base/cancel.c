/*
** See cancel.h.
*/
#include "src/base/cancel.h"

#include <pthread.h>

#include "src/base/tls.h"

/* How many calls of ljp_cancel_off() are open, and the state before the first.
** Addressed like the handler's variables, because VMs' allocators call this. */
static __thread unsigned cancel_depth LJP_TLS_SIGSAFE;
static __thread int cancel_before LJP_TLS_SIGSAFE;

void ljp_cancel_off(void)
{
  if (!cancel_depth++)
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_before);
}

void ljp_cancel_on(void)
{
  int ignored;
  if (!--cancel_depth)
    pthread_setcancelstate(cancel_before, &ignored);
}
