/*
** The spine: the same stack once more. For callers that need a stack at every
** call of the allocator, on the VM's own thread and in ordinary code: what the
** walk (frames.h) would find of the topmost segment, from where host code
** returns to the guest, by following only what has changed since the last time.
** RFC 3, "Again and again". Not for a handler: it relies on the VM being between
** two instructions of its own.
*/
#ifndef LJP_GUEST_SPINE_H
#define LJP_GUEST_SPINE_H

#include <stdbool.h>
#include <stdint.h>

#include "src/luajit/frames.h"
#include "src/luajit/heap.h"

enum { LJP_SITE_FRAMES = 14 };

/* An address in the VM's assembly or in compiled code that host code returns
** to, and what is true whenever it does. Good as long as
** ljp_guest_code_generation() does not change. */
enum ljp_guest_site_kind {
  LJP_SITE_NONE,
  LJP_SITE_VM,
  LJP_SITE_TRACE,
  LJP_SITE_EXIT /* of a trace, which drives the collector; never on top */
};
struct ljp_guest_site {
  enum ljp_guest_site_kind kind;
  uint32_t mode, cframe_bytes; /* VM: as in the map; BASE: */
  bool in_rbp, reads_pc, reads_frame;
  uint64_t code; /* TRACE: of the function at BASE; and what is compiled: */
  uint32_t count;
  uint64_t frame[LJP_SITE_FRAMES]; /* root first */
};

/* The registers of the guest at a site: sp behind the return address. */
struct ljp_guest_regs {
  uint64_t rip, sp;
  const uint64_t *rbx, *rbp, *r14; /* where they are saved */
};

/* Where a segment begins; what the walk calls a start. */
struct ljp_guest_start {
  uint64_t L, base, pc, cframe;
  bool skip;
};

/* kind NONE: nothing is known of it beforehand. regs are those of now. */
void ljp_guest_site(const struct ljp_guest_heap *heap,
                    const struct ljp_guest_regs *regs,
                    struct ljp_guest_site *site);

/* False: this is something else, ask the walk. */
bool ljp_guest_start_at(const struct ljp_guest_heap *heap,
                        const struct ljp_guest_site *site,
                        const struct ljp_guest_regs *regs,
                        struct ljp_guest_start *start);

/* One frame of a segment, with the words that it was made of. */
struct ljp_level {
  uint64_t base, link;
  uint64_t pc;     /* with which it was come to */
  uint64_t shown;  /* its frame, unless it is skipped */
  uint32_t frames; /* on the stack below it */
  bool skip;       /* come to as the lower half of varargs */
  bool beside;     /* one of these: */
  bool checked, continues;
  uint8_t ffid;
  uint64_t slot;    /* checked: its function, and a word of that */
  uint64_t body;    /* checked: the function's code */
  uint64_t word[2]; /* of: a continuation */
};

/* What a position behind a call told the last time, of any spine: where the
** caller's frame is, whose code that is, and what it shows. */
enum {
#ifdef LJP_DEBUG
  LJP_SPINE_CALLS = 4
#else
  LJP_SPINE_CALLS = 128 /* a power of two */
#endif
};
struct ljp_spine_calls {
  uint64_t generation; /* of the code: of an older one, nothing is true */
  struct ljp_spine_call {
    uint64_t pc; /* 0: none */
    uint64_t delta, code;
    uint64_t frame; /* 0: not known yet */
  } call[LJP_SPINE_CALLS];
};

/* A segment as it was the last time, root first. stack[]: `rest` frames that
** are below it, then those of its levels. link[]: of each level the word that
** tells whether it is what it was, side by side. */
struct ljp_memo_read;
enum { LJP_SPINE_SPARE = 3 };
struct ljp_spine {
  uint64_t L, low, cframe;
  uint64_t below; /* BASE of the frame below the C boundary */
  uint32_t count; /* levels */
  uint32_t rest, frames;
  /* The owner's arrays: `levels` of the first two, of links LJP_SPINE_SPARE
  ** more; `room` frames. */
  uint32_t levels, room;
  bool tight; /* set when it did not fit */
  struct ljp_memo_read *link;
  struct ljp_level *level;
  uint64_t *stack;
  struct ljp_spine_calls *calls; /* the owner's; many spines may share them */
};

/* Makes the spine that of a start; *kept: the first frames that stay what they
** were, this many. False: it is not understood, or does not fit; the spine is as
** good as empty then. A spine is begun with count 0, rest frames in stack. */
bool ljp_spine_follow(struct ljp_spine *spine,
                      const struct ljp_guest_start *start, uint32_t *kept);

/* The words of memory that a start and the spine that is followed from it were
** made of: as long as all of them are what they were, so are both. Those of
** which the low byte does not matter: as in memo.h. 0: there is no room. */
unsigned ljp_guest_start_words(const struct ljp_guest_heap *heap,
                               const struct ljp_guest_site *site,
                               const struct ljp_guest_regs *regs,
                               const struct ljp_guest_start *start,
                               const struct ljp_spine *spine,
                               struct ljp_memo_read *out, unsigned room);

/* A number that tells most places of allocation apart: of the trace that runs, or
** else of the position, frame and caller of the function on top. Fault-safe: what
** the VM says of itself may be out of date. */
uint64_t ljp_guest_place(const struct ljp_guest_heap *heap);

/* Registers and state of a walk that goes on below the spine's C frame. False:
** there is no such C frame. */
bool ljp_spine_leave(const struct ljp_spine *spine, struct ljp_guest *guest,
                     struct ljp_regs *regs);

/* Of the words that what is below a spine was made of: is this one true as long as
** the spine's place is what it was? */
bool ljp_spine_tells(const struct ljp_spine *spine, uint64_t address);

/* Registers of the C code that entered the VM by a C frame. */
void ljp_spine_caller(uint64_t cframe, struct ljp_guest_regs *regs);

/* Where the segment below one of that thread and C frame is left: at that site
** of the VM's assembly, by which C frame of whose. False: ask the walk. */
bool ljp_guest_below(const struct ljp_guest_heap *heap, uint64_t L,
                     uint64_t cframe, const struct ljp_guest_site *site,
                     const struct ljp_guest_regs *regs, uint64_t *below_L,
                     uint64_t *below_cframe);

/* That segment's start, with the frame on top of it if that is none of it (or
** else 0). False: ask the walk. */
bool ljp_spine_below(const struct ljp_guest_heap *heap,
                     const struct ljp_spine *spine,
                     const struct ljp_guest_site *site,
                     const struct ljp_guest_regs *regs,
                     struct ljp_guest_start *below, uint64_t *frame);

#endif
