/*
** Entry: the function that a client makes one thread of the program run, once,
** to join the program (RFC 8), with the note by which the client finds it.
**
** The client has chosen a moment at which the thread may call malloc(), has
** stopped it, and has written a signal frame onto the top of the stack below.
** The entry makes the thread of the door and returns through rt_sigreturn,
** which takes the thread's own registers and mask from that frame. All signals
** are blocked meanwhile. Nothing of this runs, or takes memory, before somebody
** joins.
*/
#include "profilers/join/entry.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <unistd.h>

#include "profilers/join/door.h"
#include "src/base/clock.h"
#include "src/base/shown.h"

struct ljp_join_state ljp_join_state;

/* The entry's stack, with the frame on top. There is no guard page: what is below
** it is other data, so the entry's calls must fit beside the largest frame. */
__attribute__((visibility("hidden"),
               aligned(4096))) char ljp_join_stack[LJP_JOIN_STACK_BYTES];

_Static_assert(offsetof(struct ljp_join_state, linger) == 4,
               "the entry reads it");

/* rsp: the frame, aligned to 16 bytes, as for a call. rbx is the thread's own,
** but the frame has it. With `linger` the thread waits here for the client, which
** restores its registers. ppoll() leaves alone what the kernel knows of an
** earlier wait. */
__asm__(".pushsection .text\n"
        ".balign 16\n"
        ".globl ljp_join_entry\n"
        ".hidden ljp_join_entry\n"
        ".hidden ljp_join_end\n"
        ".globl ljp_join_end\n"
        ".type ljp_join_entry, @function\n"
        "ljp_join_entry:\n"
        ".cfi_startproc\n"
        ".cfi_signal_frame\n"
        ".cfi_undefined rip\n"
        "  cld\n"
        "  movq %rsp, %rbx\n"
        "  call ljp_join_enter\n"
        "  movq %rbx, %rsp\n"
        "  cmpl $0, 4+ljp_join_state(%rip)\n"
        "  je 1f\n"
        "  xorl %edi, %edi\n"
        "  xorl %esi, %esi\n"
        "  leaq 2f(%rip), %rdx\n"
        "  xorl %r10d, %r10d\n"
        "  movl $8, %r8d\n"
        "  movl $271, %eax\n" /* ppoll */
        "  syscall\n"
        "1: movl $15, %eax\n" /* rt_sigreturn */
        "  syscall\n"
        "ljp_join_end:\n"
        "  hlt\n"
        ".cfi_endproc\n"
        ".size ljp_join_entry, . - ljp_join_entry\n"
        ".balign 8\n"
        "2: .quad 0, 100000000\n"
        ".popsection\n");

/* A program that has this library says so before it runs, even if it is
** stripped (tools/record/image.c), and says where the entry is. */
__asm__(
    ".pushsection .note.ljprof, \"a\", %note\n"
    ".balign 4\n"
    ".long 7, 24, 1\n"
    ".asciz \"" LJP_NOTE_NAME "\"\n"
    ".balign 4\n"
    ".long " LJP_JOIN_TEXT(
        LJP_JOIN_NOTE_VERSION) "\n"
                               ".long ljp_join_entry - .\n"
                               ".long ljp_join_end - .\n"
                               ".long ljp_join_state - .\n"
                               ".long ljp_join_stack + " LJP_JOIN_TEXT(
                                   LJP_JOIN_STACK_TOP) " - .\n"
                                                       ".long ljp_shown - .\n"
                                                       ".popsection\n");

/* Called by the entry only. */
__attribute__((used)) void ljp_join_enter(void)
{
  struct ljp_join_state *s = &ljp_join_state;
  int saved = errno;
  s->pid = getpid();
  s->tid = gettid();
  /* Release: whoever sees the step sees the rest. */
  __atomic_store_n(&s->step, LJP_JOIN_ENTERED, __ATOMIC_RELEASE);
  ljp_join_step("entered");
  __atomic_store_n(&s->door, LJP_JOIN_DOOR_COMING, __ATOMIC_RELEASE);
  int error = ljp_door_start();
  if (error) {
    s->error = error;
    __atomic_store_n(&s->door, LJP_JOIN_DOOR_FAILED, __ATOMIC_RELEASE);
  }
  ljp_join_step("made");
  s->left_ns = ljp_clock_ns();
  errno = saved;
  __atomic_store_n(&s->step, LJP_JOIN_LEFT, __ATOMIC_RELEASE);
}
