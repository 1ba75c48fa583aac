/*
** See moment.h.
**
** A thread that the stop has interrupted in a wait (epoll_wait, poll, read of
** nothing ...) is not inside libc's allocator, which never waits so; only a
** signal handler that has interrupted the allocator may be waiting. For any
** other thread every word of its stack is looked at: none may be an address in
** one of the forbidden functions. A word that an earlier call has left there
** only costs another attempt.
*/
#include "tools/join/moment.h"

#include <errno.h>
#include <linux/futex.h>
#include <stddef.h>
#include <string.h>
#include <sys/syscall.h>

#include "src/base/waits.h"

/* What the kernel leaves in rax when a signal, or a stop, interrupts a call. */
enum {
  RESTARTSYS = -512,
  RESTARTNOINTR = -513,
  RESTARTNOHAND = -514,
  RESTART_BLOCK = -516
};

/* -- Calls ----------------------------------------------------------------- */
bool ljp_moment_waits(long call)
{
  return ljp_call_waits(call) || call == SYS_wait4 || call == SYS_waitid;
}

bool ljp_moment_is_timed(long call)
{
  return call != SYS_pause && call != SYS_read && call != SYS_readv &&
         call != SYS_accept && call != SYS_accept4 && call != SYS_wait4 &&
         call != SYS_waitid && call != SYS_rt_sigsuspend;
}

bool ljp_moment_interrupted(const struct user_regs_struct *r)
{
  int64_t result = (int64_t)r->rax;
  return (int64_t)r->orig_rax >= 0 &&
         (result == RESTARTSYS || result == RESTARTNOINTR ||
          result == RESTARTNOHAND || result == RESTART_BLOCK ||
          (result == -EINTR && ljp_moment_waits((long)r->orig_rax)));
}

/* The locks of libc wait by FUTEX_WAIT; conditions, semaphores and joins by
** FUTEX_WAIT_BITSET. */
static bool moment_takes_lock(const struct user_regs_struct *r)
{
  return r->orig_rax == SYS_futex &&
         (r->rsi & (uint64_t)FUTEX_CMD_MASK) != FUTEX_WAIT_BITSET;
}

/* Calls that are made by allocators, or to create threads. */
static bool moment_is_allocator_call(long call)
{
  switch (call) {
  case SYS_mmap:
  case SYS_munmap:
  case SYS_mremap:
  case SYS_brk:
  case SYS_madvise:
  case SYS_mprotect:
  case SYS_clone:
  case 435: /* clone3 */
  case SYS_fork:
  case SYS_vfork:
  case SYS_rt_sigprocmask:
  case SYS_rt_sigreturn:
  case SYS_sched_yield:
  case SYS_futex:
  case SYS_exit:
  case SYS_execve:
  case SYS_setuid:
  case SYS_setgid:
  case SYS_setresuid:
  case SYS_setresgid:
  case SYS_set_robust_list:
  case 334: /* rseq */
    return true;
  default:
    return false;
  }
}

/* -- The stack ------------------------------------------------------------- */
static bool moment_is_in(const struct ljp_range *ranges, unsigned count,
                         uint64_t at)
{
  for (unsigned i = 0; i < count; i++)
    if (at >= ranges[i].low && at < ranges[i].high)
      return true;
  return false;
}

static bool moment_is_forbidden(const struct ljp_code *code, uint64_t at)
{
  return moment_is_in(code->forbidden, code->forbidden_count, at);
}

/* Has a signal interrupted a wait? Then the frame leads to the call, which is to be
** made again, or behind it, if it has failed with EINTR. No wait by futex counts: libc's
** locks wait so. */
static bool moment_is_call_of_wait(pid_t pid, uint64_t rax, uint64_t rip)
{
  static const uint8_t call[] = {0x0f, 0x05};
  struct {
    uint8_t move; /* mov $NUMBER, %eax */
    uint8_t number[4], call[2];
  } failed;
  uint8_t now[sizeof call];
  uint32_t number = (uint32_t)rax;
  if (!ljp_memory_read(pid, rip, now, sizeof now))
    return false;
  if (memcmp(now, call, sizeof call) != 0) {
    if ((int64_t)rax != -EINTR ||
        !ljp_memory_read(pid, rip - sizeof failed, &failed, sizeof failed) ||
        failed.move != 0xb8 || memcmp(failed.call, call, sizeof call) != 0)
      return false;
    memcpy(&number, failed.number, sizeof number);
  }
  return number != SYS_futex && ljp_moment_waits(number);
}

/* A signal frame, from its return address on: what did the signal interrupt?
** If the word is only left from an earlier frame, no frame follows it. entered: the
** thread is at the first instruction of the handler, so the frame is of now. */
enum moment_frame { FRAME_NONE, FRAME_HARMLESS, FRAME_OF_WAIT, FRAME_FORBIDS };

static enum moment_frame moment_frame(const struct ljp_code *code, pid_t pid,
                                      const uint64_t *word, size_t left,
                                      bool entered)
{
  enum { RAX = 1 + 5 + 13, RSP = 1 + 5 + 15, RIP, FLAGS, SEGMENTS, WORDS };
  enum { CODE_SEGMENT = 0x33 };
  if (left < WORDS)
    return FRAME_FORBIDS;
  if ((word[SEGMENTS] & 0xffff) != CODE_SEGMENT)
    return FRAME_NONE;
  if (moment_is_forbidden(code, word[RIP]))
    return FRAME_FORBIDS;
  if (entered && moment_is_call_of_wait(pid, word[RAX], word[RIP]))
    return FRAME_OF_WAIT;
  return moment_is_in(code->libc, code->libc_count, word[RIP]) ? FRAME_FORBIDS
                                                               : FRAME_HARMLESS;
}

/* waits: the thread is in a wait, so in none of the forbidden functions. */
static const char *moment_stack(const struct ljp_code *code, pid_t pid,
                                const struct ljp_maps *maps,
                                const struct user_regs_struct *r, bool waits)
{
  static uint64_t words[LJP_MOMENT_WORDS];
  const struct ljp_mapping *stack = ljp_maps_at(maps, r->rsp);
  if (!stack || r->rsp % 8)
    return "its stack was not found";
  size_t count = (stack->high - r->rsp) / 8;
  bool whole = count <= LJP_MOMENT_WORDS;
  if (!whole && !waits)
    return "its stack is too deep";
  count = whole ? count : LJP_MOMENT_WORDS;
  if (!ljp_memory_read(pid, r->rsp, words, count * 8))
    return "its stack cannot be read";
  for (size_t i = 0; i < count; i++) {
    if (!waits && moment_is_forbidden(code, words[i]))
      return "it may be in the allocator or the loader";
    if (!code->restorer || words[i] != code->restorer)
      continue;
    /* The kernel passes the address of what follows to a handler. */
    bool entered = i == 0 && r->rdx == r->rsp + sizeof *words;
    enum moment_frame frame =
        moment_frame(code, pid, words + i, count - i, entered);
    if (frame == FRAME_FORBIDS)
      return "it may be handling a signal that interrupted the allocator";
    /* What lies above belongs to a thread that waited. */
    waits |= frame == FRAME_OF_WAIT;
  }
  return NULL;
}

/* A restartable sequence would be cut in two. rseq_at: of the thread's
** structure, or 0. */
static bool moment_in_sequence(pid_t pid, uint64_t rseq_at, uint64_t rip)
{
  enum { CS = 8 };
  struct {
    uint32_t version, flags;
    uint64_t start, length, abort;
  } sequence;
  uint64_t at = 0;
  if (!rseq_at || !ljp_memory_read(pid, rseq_at + CS, &at, sizeof at) || !at)
    return false;
  return !ljp_memory_read(pid, at, &sequence, sizeof sequence) ||
         rip - sequence.start < sequence.length;
}

static bool moment_is_wait(const struct user_regs_struct *r)
{
  return ljp_moment_interrupted(r) && ljp_moment_waits((long)r->orig_rax) &&
         !moment_takes_lock(r);
}

const char *ljp_moment_glance(const struct ljp_code *code,
                              const struct ljp_maps *maps,
                              const struct user_regs_struct *r)
{
  long call = (long)r->orig_rax;
  if (r->cs != 0x33)
    return "it runs code of 32 bits";
  if (moment_is_wait(r))
    return NULL;
  if (code->bare)
    return "it does not wait, and the program has no table of functions";
  if (call >= 0 && moment_is_allocator_call(call))
    return "it is in a call that allocators make";
  if (call < 0 && (moment_is_in(code->libc, code->libc_count, r->rip) ||
                   moment_is_forbidden(code, r->rip)))
    return "it is in libc";
  if (call < 0 && !ljp_maps_at(maps, r->rip))
    return "it runs code of no known mapping";
  return NULL;
}

const char *ljp_moment_unsafe(const struct ljp_code *code, pid_t pid,
                              const struct ljp_maps *maps,
                              const struct user_regs_struct *r,
                              uint64_t rseq_at)
{
  bool waits = moment_is_wait(r);
  if (!waits && moment_in_sequence(pid, rseq_at, r->rip))
    return "it is in a restartable sequence";
  return moment_stack(code, pid, maps, r, waits);
}
