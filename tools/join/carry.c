/*
** Carries a stopped thread into the library's entry; see visit_priv.h. The
** frame by which the thread comes back is written first, so that from then on
** the client may die at any step.
**
** The kernel forgets what it knew about a wait with a time when the thread
** returns by a signal frame. For such a thread the entry lingers: the client
** finds it there, and gives it back the registers with which the kernel
** continues the wait to its old end. If the client comes too late, the wait
** begins anew.
*/
#include <elf.h>
#include <signal.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "src/base/call_number.h"
#include "src/base/waits.h"
#include "tools/join/visit_priv.h"

enum {
  RESTART_BLOCK = -516,
  MASK_BYTES = 8,
  SETXID = 33, /* glibc's own signal: programs cannot block it */
  DIRECTION = 0x400,
  GET_RSEQ = 0x420f
};

static bool carry_get_regs(pid_t tid, struct ljp_thread_state *t)
{
  struct iovec regs = {&t->regs, sizeof t->regs};
  return !ptrace(PTRACE_GETREGSET, tid, (void *)NT_PRSTATUS, &regs) &&
         regs.iov_len == sizeof t->regs;
}

static bool carry_get_rest(pid_t tid, struct ljp_thread_state *t)
{
  struct iovec xstate = {t->xstate, sizeof t->xstate};
  bool good = !ptrace(PTRACE_GETREGSET, tid, (void *)NT_X86_XSTATE, &xstate) &&
              !ptrace(PTRACE_GETSIGMASK, tid, (void *)MASK_BYTES, &t->mask);
  t->xstate_bytes = xstate.iov_len;
  return good;
}

static bool carry_set_regs(pid_t tid, const struct user_regs_struct *r)
{
  struct iovec regs = {(void *)(uintptr_t)r, sizeof *r};
  return !ptrace(PTRACE_SETREGSET, tid, (void *)NT_PRSTATUS, &regs);
}

static bool carry_set_mask(pid_t tid, uint64_t mask)
{
  return !ptrace(PTRACE_SETSIGMASK, tid, (void *)MASK_BYTES, &mask);
}

/* The address of its structure; 0: none, or the kernel is too old to tell. */
static uint64_t carry_rseq(pid_t tid)
{
  struct {
    uint64_t at;
    uint32_t size, signature, flags, padding;
  } config = {.at = 0};
  return syscall(SYS_ptrace, GET_RSEQ, tid, sizeof config, &config) > 0
             ? config.at
             : 0;
}

static bool carry_read(const void *pid, void *out, uint64_t at, size_t bytes)
{
  return ljp_memory_read(*(const pid_t *)pid, at, out, bytes);
}

/* A wait that was continued before is in the call restart_syscall, which cannot
** be made anew. Puts the number of the first call in its place, if the code tells
** it. */
static void carry_find_call(const struct ljp_visitor *v,
                            struct user_regs_struct *r)
{
  const struct ljp_call_place place = {
      .reg = {r->rax, r->rcx, r->rdx, r->rbx, r->rsp, r->rbp, r->rsi, r->rdi,
              r->r8, r->r9, r->r10, r->r11, r->r12, r->r13, r->r14, r->r15},
      .rip = r->rip,
      .read = carry_read,
      .ctx = &v->pid};
  uint8_t code[LJP_CALL_CODE];
  uint64_t number;
  if (r->orig_rax == SYS_restart_syscall && ljp_call_code(&place, code) &&
      ljp_call_number(&place, code, &number) && ljp_call_waits((long)number))
    r->orig_rax = number;
}

static bool carry_in_entry(const struct ljp_visitor *v, uint64_t rip)
{
  return rip >= v->note->entry && rip <= v->note->end;
}

bool ljp_carry_inside(const struct ljp_visitor *v, uint64_t rip, uint64_t rsp)
{
  uint64_t top = v->note->stack_top;
  return carry_in_entry(v, rip) ||
         (rsp <= top && rsp > top - LJP_JOIN_STACK_BYTES);
}

/* Most threads that cannot be used are known by their registers: these are let go
** before anything else is read. */
static const char *carry_check(struct ljp_visitor *v, pid_t tid,
                               const struct ljp_thread_state *t)
{
  uint64_t self;
  if (ljp_carry_inside(v, t->regs.rip, t->regs.rsp))
    return "it is on its way back from an earlier attempt";
  const char *why = ljp_moment_glance(&v->code, v->maps, &t->regs);
  if (why)
    return why;
  /* By the ABI, fs_base points to its own address. A thread that a raw clone()
  ** has made may have no such word. */
  if (!ljp_memory_read(v->pid, t->regs.fs_base, &self, sizeof self) ||
      self != t->regs.fs_base)
    return "libc does not know it";
  if (ljp_moment_interrupted(&t->regs) && ljp_stop_has_signal(tid))
    return "it is about to handle a signal";
  return ljp_moment_unsafe(&v->code, v->pid, v->maps, &t->regs,
                           carry_rseq(tid));
}

/* Waits until the thread lingers, and gives it what it had. If that cannot be
** done, the thread comes back by its frame. */
static void carry_back(struct ljp_visitor *v, pid_t tid,
                       const struct ljp_thread_state *t, uint64_t frame)
{
  enum { PATIENCE_S = 10, LOOK_US = 20 };
  struct ljp_join_state state = {0};
  struct user_regs_struct now;
  struct iovec regs = {&now, sizeof now};
  uint64_t until = ljp_visit_now() + PATIENCE_S * UINT64_C(1000000000);
  do {
    if (!ljp_visit_state(v, &state) || ljp_visit_now() > until)
      return;
    if (state.step != LJP_JOIN_LEFT) {
      ljp_stop_serve();
      usleep(LOOK_US);
    }
  } while (state.step != LJP_JOIN_LEFT);
  ljp_join_step("left");
  if (ljp_stop_thread(tid) != LJP_STOP_GOOD ||
      ptrace(PTRACE_GETREGSET, tid, (void *)NT_PRSTATUS, &regs))
    return;
  if (carry_in_entry(v, now.rip) && now.rsp == frame) {
    struct iovec xstate = {(void *)(uintptr_t)t->xstate, t->xstate_bytes};
    /* The registers last: until then the thread is in the entry, and comes back
    ** by its frame, whatever becomes of this process. */
    ptrace(PTRACE_SETREGSET, tid, (void *)NT_X86_XSTATE, &xstate);
    carry_set_mask(tid, t->mask);
    ljp_join_step("restored");
    carry_set_regs(tid, &t->regs);
  }
  ljp_stop_release(tid);
  v->visit->pause_ns = ljp_visit_now() - v->stopped_ns;
}

const char *ljp_carry(struct ljp_visitor *v, pid_t tid, pid_t ns_tid)
{
  static struct ljp_thread_state t;
  static struct ljp_frame_image frame;
  /* Whoever comes later looks for this thread. */
  struct ljp_join_state state = {
      .attach = (uint32_t)getpid(), .pid = v->ns_pid, .tid = ns_tid};
  if (!carry_get_regs(tid, &t))
    return "its registers cannot be read";
  const struct user_regs_struct regs = t.regs;
  carry_find_call(v, &t.regs);
  const char *why = carry_check(v, tid, &t);
  if (why)
    return why;
  if (!carry_get_rest(tid, &t))
    return "its registers cannot be read";
  ljp_join_step("checked");
  if (!ljp_frame_make(&frame, &t, v->note->stack_top))
    return "its registers need more room than there is";
  state.linger =
      (int64_t)t.regs.orig_rax >= 0 && (int64_t)t.regs.rax == RESTART_BLOCK;
  if (!ljp_memory_put(v->memory, v->note->state, &state, sizeof state))
    return "its memory cannot be written";
  ljp_join_step("claimed");
  if (!ljp_memory_put(v->memory, frame.at, frame.data, frame.bytes))
    return "its memory cannot be written";
  ljp_join_step("framed");
  struct user_regs_struct entry = t.regs;
  entry.rip = v->note->entry;
  entry.rsp = frame.at;
  entry.orig_rax = UINT64_MAX;
  entry.eflags &= ~(uint64_t)DIRECTION;
  if (!carry_set_regs(tid, &entry))
    return "its registers cannot be set";
  ljp_join_step("registers");
  /* The other order would leave a thread with all signals blocked if the client
  ** died in between. */
  carry_set_mask(tid, ~(UINT64_C(1) << (SETXID - 1)));
  ljp_join_step("masked");
  if (state.linger) {
    t.regs = regs;
    ptrace(PTRACE_CONT, tid, NULL, NULL);
    carry_back(v, tid, &t, frame.at);
  } else {
    ljp_stop_release(tid);
  }
  ljp_join_step("detached");
  return NULL;
}
