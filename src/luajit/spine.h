/*
** The spine: a segment of guest frames that is remembered, so that the next
** stack on it need only follow what has changed. It gives what the walk
** (frames.h) would find of the topmost segment, from where host code returns to
** the guest. See RFC 3, "Again and again".
**
** For callers that need a stack at every call of the allocator, on the VM's own
** thread and in ordinary code. Not for a signal handler: the spine relies on
** the VM being between two of its own instructions.
*/
#ifndef LJP_GUEST_SPINE_H
#define LJP_GUEST_SPINE_H

#include <stdbool.h>
#include <stdint.h>

#include "src/luajit/frames.h"
#include "src/luajit/heap.h"

enum { LJP_SITE_FRAMES = 14 };

/* An address in the VM's assembly or in compiled code to which host code
** returns, and what is true at each such return. Valid as long as
** ljp_guest_code_generation() does not change. */
enum ljp_guest_site_kind {
  LJP_SITE_NONE,
  LJP_SITE_VM,
  LJP_SITE_TRACE,
  LJP_SITE_EXIT /* a trace's exit that drives the collector; never on top */
};
struct ljp_guest_site {
  enum ljp_guest_site_kind kind;
  uint32_t mode, cframe_bytes; /* VM: as in the map; where BASE is: */
  bool in_rbp, reads_pc, reads_frame;
  uint64_t code; /* TRACE: of the function at BASE; the frames compiled in: */
  uint32_t count;
  uint64_t frame[LJP_SITE_FRAMES]; /* root first */
};

/* The guest's registers at a site. sp: above the return address. */
struct ljp_guest_regs {
  uint64_t rip, sp;
  const uint64_t *rbx, *rbp, *r14; /* where they are saved */
};

/* Where the walk of a segment starts. */
struct ljp_guest_start {
  uint64_t L, base, pc, cframe;
  bool skip;
};

/* Describes a site; regs are those at the return. Sets kind NONE if nothing is
** known about it in advance. */
void ljp_guest_site(const struct ljp_guest_heap *heap,
                    const struct ljp_guest_regs *regs,
                    struct ljp_guest_site *site);

/* Makes the start of the segment that is left at a site. False: a full walk is
** needed. */
bool ljp_guest_start_at(const struct ljp_guest_heap *heap,
                        const struct ljp_guest_site *site,
                        const struct ljp_guest_regs *regs,
                        struct ljp_guest_start *start);

/* One frame of a segment, with the words that it was made from. */
struct ljp_level {
  uint64_t base, link;
  uint64_t pc;     /* the position with which the walk reached it */
  uint64_t shown;  /* the frame to show, unless it is skipped */
  uint32_t frames; /* in stack[] below it */
  bool skip;       /* reached as the lower half of varargs */
  bool beside;     /* checked or continues: */
  bool checked, continues;
  uint8_t ffid;
  uint64_t slot;    /* checked: the word in its function's slot */
  uint64_t body;    /* checked: that function's code word */
  uint64_t word[2]; /* continues: the words of the continuation */
};

/* What the position behind a call has told before, to any spine: where the
** caller's frame is, whose code it is, and which frame to show. */
enum {
#ifdef LJP_DEBUG
  LJP_SPINE_CALLS = 4
#else
  LJP_SPINE_CALLS = 128 /* a power of two */
#endif
};
struct ljp_spine_calls {
  uint64_t generation; /* of the code; with any other, no entry holds */
  struct ljp_spine_call {
    uint64_t pc; /* 0: none */
    uint64_t delta, code;
    uint64_t frame; /* 0: not known yet */
  } call[LJP_SPINE_CALLS];
};

/* A segment as it was the last time, root first. stack[] holds `rest` frames
** that are below it, then the frames of its levels. link[] holds one word for
** each level, side by side: if the word is unchanged, so is the level. */
struct ljp_memo_read;
enum { LJP_SPINE_SPARE = 3 };
struct ljp_spine {
  uint64_t L, low, cframe;
  uint64_t below; /* BASE of the frame below the C boundary */
  uint32_t count; /* levels */
  uint32_t rest, frames;
  /* The owner's arrays: link has `levels` + LJP_SPINE_SPARE entries, level has
  ** `levels`, and stack has `room`. */
  uint32_t levels, room;
  bool tight; /* set when the segment did not fit */
  struct ljp_memo_read *link;
  struct ljp_level *level;
  uint64_t *stack;
  struct ljp_spine_calls *calls; /* the owner's; many spines may share it */
};

/* Brings the spine up to date for a start. *kept: how many of the first
** frames are unchanged. False: the stack is not understood, or does not fit;
** the spine is then as good as empty. A new spine has count 0, and rest
** frames in stack. */
bool ljp_spine_follow(struct ljp_spine *spine,
                      const struct ljp_guest_start *start, uint32_t *kept);

/* Lists the words of memory from which a start and the spine that follows from
** it were made. As long as all of them are unchanged, so are both. Returns
** their number; 0: there is no room. */
unsigned ljp_guest_start_words(const struct ljp_guest_heap *heap,
                               const struct ljp_guest_site *site,
                               const struct ljp_guest_regs *regs,
                               const struct ljp_guest_start *start,
                               const struct ljp_spine *spine,
                               struct ljp_memo_read *out, unsigned room);

/* A number that tells most places of allocation apart. It depends on the trace
** that runs or, outside of traces, on the position, frame and caller of the
** function on top. Fault-safe, since what the VM says about itself may be out
** of date. */
uint64_t ljp_guest_place(const struct ljp_guest_heap *heap);

/* Sets the registers and state for a walk that continues below the spine's C
** frame. False: there is no such C frame. */
bool ljp_spine_leave(const struct ljp_spine *spine, struct ljp_guest *guest,
                     struct ljp_regs *regs);

/* Is this word, on which the frames below a spine depend, unchanged as long as
** the spine's place is? */
bool ljp_spine_pins(const struct ljp_spine *spine, uint64_t address);

/* Sets the registers of the C code that entered the VM by a C frame. */
void ljp_spine_caller(uint64_t cframe, struct ljp_guest_regs *regs);

/* Finds the thread and the C frame of the segment below that of L and cframe.
** site, regs: where it is left, in the VM's assembly. False: a full walk is
** needed. */
bool ljp_guest_below(const struct ljp_guest_heap *heap, uint64_t L,
                     uint64_t cframe, const struct ljp_guest_site *site,
                     const struct ljp_guest_regs *regs, uint64_t *below_L,
                     uint64_t *below_cframe);

/* Makes the start of that segment. *frame: a frame on top of it that does not
** belong to it; 0: none. False: a full walk is needed. */
bool ljp_spine_below(const struct ljp_guest_heap *heap,
                     const struct ljp_spine *spine,
                     const struct ljp_guest_site *site,
                     const struct ljp_guest_regs *regs,
                     struct ljp_guest_start *below, uint64_t *frame);

#endif
