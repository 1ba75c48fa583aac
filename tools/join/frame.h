/*
** Frame: the signal frame by which a thread returns from the entry to what it
** did before (rt_sigreturn).
*/
#ifndef LJP_TOOLS_FRAME_H
#define LJP_TOOLS_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/user.h>

enum { LJP_XSTATE_BYTES = 32 << 10 };

/* The registers and the signal mask of a stopped thread. */
struct ljp_thread_state {
  struct user_regs_struct regs;
  uint64_t mask;
  size_t xstate_bytes;
  _Alignas(64) unsigned char xstate[LJP_XSTATE_BYTES];
};

struct ljp_frame_image {
  uint64_t at; /* where it belongs: the entry's rsp */
  size_t bytes;
  _Alignas(64) unsigned char data[LJP_XSTATE_BYTES + 1024];
};

/* The registers as the kernel would leave them when it makes the interrupted
** call again. */
void ljp_frame_restart(struct user_regs_struct *regs);

/* Makes the frame of a thread, below stack_top. False: its registers need more
** room than there is. */
bool ljp_frame_make(struct ljp_frame_image *out,
                    const struct ljp_thread_state *thread, uint64_t stack_top);

#endif
