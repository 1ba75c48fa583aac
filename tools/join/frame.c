/*
** See frame.h. The layout is the kernel's: struct rt_sigframe without its return
** address, and above it the vector registers, as PTRACE_GETREGSET has them, with
** the words by which the kernel knows their size.
*/
#include "tools/join/frame.h"

#include <cpuid.h>
#include <string.h>

#include "src/base/join.h"
#include "tools/join/moment.h"

struct frame_context {
  uint64_t r8, r9, r10, r11, r12, r13, r14, r15, di, si, bp, bx, dx, ax, cx, sp,
      ip, flags;
  uint16_t cs, gs, fs, ss;
  uint64_t error, trap, old_mask, cr2, xstate, reserved[8];
};

struct frame {
  uint64_t flags, link, stack[3]; /* 0: the alternate stack stays */
  struct frame_context context;
  uint64_t mask;
};

/* In the part of the vector registers' area that is the software's. */
struct frame_software {
  uint32_t magic, extended_bytes;
  uint64_t features;
  uint32_t xstate_bytes, padding[7];
};

enum {
  XSTATE_FLAG = 1,
  SS_FLAG = 2,
  STRICT_SS_FLAG = 4,
  SOFTWARE_AT = 464,
  HEADER_AT = 512,
  LEGACY_BYTES = 576,
  MAGIC_1 = 0x46505853,
  MAGIC_2 = 0x46505845,
  TILE_CONFIG = 17,
  TILE_DATA = 18
};

void ljp_frame_restart(struct user_regs_struct *regs)
{
  if (!ljp_moment_interrupted(regs))
    return;
  regs->rax = regs->orig_rax;
  regs->rip -= 2;
}

/* If a thread does not use tiles (AMX), its frame needs no room for them. */
static size_t frame_xstate_bytes(const struct ljp_thread_state *t,
                                 uint64_t *features)
{
  uint64_t used;
  unsigned size, offset, c, d;
  size_t bytes = LEGACY_BYTES;
  memcpy(features, t->xstate + SOFTWARE_AT, sizeof *features);
  memcpy(&used, t->xstate + HEADER_AT, sizeof used);
  if (!(*features >> TILE_DATA & 1) || (used >> TILE_DATA & 1))
    return t->xstate_bytes;
  *features &= ~(UINT64_C(1) << TILE_DATA);
  for (unsigned i = 2; i < 63; i++)
    if (*features >> i & 1) {
      __cpuid_count(0xd, i, size, offset, c, d);
      if (offset + (size_t)size > bytes)
        bytes = offset + (size_t)size;
    }
  return bytes < t->xstate_bytes ? bytes : t->xstate_bytes;
}

static void frame_put_registers(struct frame_context *c,
                                const struct user_regs_struct *r)
{
  *c = (struct frame_context){.r8 = r->r8,
                              .r9 = r->r9,
                              .r10 = r->r10,
                              .r11 = r->r11,
                              .r12 = r->r12,
                              .r13 = r->r13,
                              .r14 = r->r14,
                              .r15 = r->r15,
                              .di = r->rdi,
                              .si = r->rsi,
                              .bp = r->rbp,
                              .bx = r->rbx,
                              .dx = r->rdx,
                              .ax = r->rax,
                              .cx = r->rcx,
                              .sp = r->rsp,
                              .ip = r->rip,
                              .flags = r->eflags,
                              .cs = (uint16_t)r->cs,
                              .ss = (uint16_t)r->ss};
}

bool ljp_frame_make(struct ljp_frame_image *out,
                    const struct ljp_thread_state *thread, uint64_t stack_top)
{
  const uint32_t end = MAGIC_2;
  struct frame frame = {.flags = XSTATE_FLAG | SS_FLAG | STRICT_SS_FLAG,
                        .mask = thread->mask};
  struct frame_software software = {.magic = MAGIC_1};
  struct user_regs_struct regs = thread->regs;
  if (thread->xstate_bytes < LEGACY_BYTES ||
      thread->xstate_bytes > LJP_JOIN_FRAME_BYTES - 1024)
    return false;
  size_t bytes = frame_xstate_bytes(thread, &software.features);
  software.xstate_bytes = (uint32_t)bytes;
  software.extended_bytes = (uint32_t)(bytes + sizeof end);
  uint64_t xstate = (stack_top - bytes - 64) & ~UINT64_C(63);
  out->at = (xstate - sizeof frame) & ~UINT64_C(63);
  size_t gap = xstate - out->at;
  ljp_frame_restart(&regs);
  frame_put_registers(&frame.context, &regs);
  frame.context.xstate = xstate;
  memset(out->data, 0, gap);
  memcpy(out->data, &frame, sizeof frame);
  memcpy(out->data + gap, thread->xstate, bytes);
  memcpy(out->data + gap + SOFTWARE_AT, &software, sizeof software);
  memcpy(out->data + gap + bytes, &end, sizeof end);
  out->bytes = gap + bytes + sizeof end;
  return true;
}
