/*
** Calls of the kernel that wait, and that may be made again with their arguments
** when a signal, or a stop by ptrace, has interrupted them. No allocator and no
** lock of libc waits so, but for the futex.
*/
#ifndef LJP_WAITS_H
#define LJP_WAITS_H

#include <stdbool.h>
#include <sys/syscall.h>

#include "src/base/sigsafe.h"

LJP_SIGSAFE static inline bool ljp_call_waits(long call)
{
  switch (call) {
  case SYS_poll:
  case SYS_ppoll:
  case SYS_select:
  case SYS_pselect6:
  case SYS_epoll_wait:
  case SYS_epoll_pwait:
  case 441: /* epoll_pwait2, which older headers lack */
  case SYS_nanosleep:
  case SYS_clock_nanosleep:
  case SYS_futex:
  case SYS_pause:
  case SYS_rt_sigsuspend:
  case SYS_rt_sigtimedwait:
  case SYS_semop:
  case SYS_semtimedop:
  case SYS_msgrcv:
  case SYS_msgsnd:
  case SYS_mq_timedreceive:
  case SYS_mq_timedsend:
  case SYS_io_getevents:
  case 333: /* io_pgetevents */
  case 426: /* io_uring_enter */
  case SYS_connect:
  case SYS_recvfrom:
  case SYS_recvmsg:
  case SYS_recvmmsg:
  case SYS_sendto:
  case SYS_sendmsg:
  case SYS_accept:
  case SYS_accept4:
  case SYS_read:
  case SYS_readv:
    return true;
  default:
    return false;
  }
}

#endif
