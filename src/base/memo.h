/*
** Memo: what one walk of a thread's stack has read and found, so that the next
** one need not find it again.
**
** Mental picture: a walk is a pure function of the registers that it starts
** with, of the words that it reads, and of tables that have a generation. While
** it is recorded it passes *points* (between two frames), each with the whole
** state that the rest of the walk depends on, and notes each word that it
** reads. A later walk that comes to a point in the same state would go on in
** the same way if it read the same words: these are then compared with memory,
** all at once and without following a pointer, and if they are equal the rest
** of the stack is the remembered one. Nothing is guessed. A walk that ended at
** its limit of frames is a beginning of a longer one: good for a walk that comes
** to its own limit before the remembered frames end, or where they do.
**
** Invariants: who reads memory behind a point notes it, or says ljp_memo_blur().
** read[0 .. reads) is in the order of the walk; a point's rest depends on
** always[] and on the reads from its own on.
** Safety: LJP_SIGSAFE throughout. A memo belongs to one thread at a time.
*/
#ifndef LJP_MEMO_H
#define LJP_MEMO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/regs.h"
#include "src/base/sigsafe.h"

enum {
  LJP_MEMO_POINTS = 512,
  LJP_MEMO_READS = 8704, /* four for a Lua frame */
  LJP_MEMO_ALWAYS = 32,
  LJP_MEMO_FRAMES = 2048,
  LJP_MEMO_WORDS = 9
};

/* A word that was read. The low bits of the address, which is a multiple of 8,
** say how many of its low bytes do not matter. */
struct ljp_memo_read {
  uint64_t at, value;
};

/* Where a walk may be taken up, by place: sp ascending, then order
** descending. */
struct ljp_memo_point {
  uint64_t sp, order;
  uint64_t word[LJP_MEMO_WORDS]; /* the state; flags are part of it */
  uint32_t flags;
  uint32_t read;  /* the first read that its rest depends on */
  uint32_t frame; /* how many came before; ljp_memo_meet() fills it in */
  /* Not 0: the rest is to tell more than frames, so it may not be cut short.
  ** Not compared: the state has it. */
  uint32_t wants;
};

/* What a walk has come to: its root, its limit of frames, or something else. */
enum ljp_memo_extent { LJP_MEMO_BROKEN, LJP_MEMO_WHOLE, LJP_MEMO_CAPPED };

enum ljp_memo_mode { LJP_MEMO_OFF, LJP_MEMO_RECORD, LJP_MEMO_MATCH };

struct ljp_memo {
  enum ljp_memo_mode mode;
  bool valid;         /* what is here is a whole walk */
  bool full;          /* ... and cannot be, for want of room */
  bool met;           /* this walk has found its rest here */
  bool short_of_root; /* what is here ends at a limit of frames */
  bool capped;        /* ... and so does the rest that was found */
  uint64_t generation[2];
  uint32_t points, reads, always_reads, frames;
  uint32_t first; /* points before it are of no use */
  uint32_t next;  /* the next one that may be met */
  uint32_t bad;   /* reads before this one are not all equal */
  uint32_t steps; /* since the last point was taken */
  uint32_t own;   /* frames that this walk has found before it met */
  /* For ljp_memo_forget(): registers that were restored and have not been used
  ** since. Who looks at a register says ljp_memo_use() first. */
  bool lean;
  uint32_t unused;
  struct ljp_memo_read restored[LJP_REGS];
  /* When to record anew. */
  bool stale;
  uint32_t pause, longer;
  /* Of the owner: what the rest has found beside frames. */
  uint32_t vm, state;
  /* For tests and reports. */
  uint64_t matches, misses, records, changed;
  struct ljp_memo_point point[LJP_MEMO_POINTS + 1];
  struct ljp_memo_read always[LJP_MEMO_ALWAYS];
  struct ljp_memo_read read[LJP_MEMO_READS];
  uint64_t frame[LJP_MEMO_FRAMES];
};

/* At the start of a walk. What was recorded under other generations is of no
** use. Sets mode. */
LJP_SIGSAFE void ljp_memo_begin(struct ljp_memo *memo, uint64_t first,
                                uint64_t second);

/* At its end: its whole stack. */
LJP_SIGSAFE void ljp_memo_end(struct ljp_memo *memo, const uint64_t *frames,
                              uint32_t count, enum ljp_memo_extent extent);

/* A word that the walk has read; skip: low bytes that do not matter. */
LJP_SIGSAFE static inline void ljp_memo_note(struct ljp_memo *notes,
                                             uint64_t address, uint64_t value,
                                             unsigned skip)
{
  if (LJP_LIKELY(!notes))
    return;
  if (LJP_UNLIKELY(notes->reads == LJP_MEMO_READS)) {
    notes->full = true;
    return;
  }
  struct ljp_memo_read *read = &notes->read[notes->reads++];
  read->at = address | skip;
  read->value = value;
}

/* A word on which the walk depends from any point on. */
LJP_SIGSAFE void ljp_memo_note_always(struct ljp_memo *notes, uint64_t address,
                                      uint64_t value);

/* What has been read since the last point was not noted: no use to begin from
** a point before. */
LJP_SIGSAFE static inline void ljp_memo_blur(struct ljp_memo *notes)
{
  if (LJP_UNLIKELY(notes != NULL))
    notes->first = notes->points;
}

/* The same of a register of a frame above, which the walk may have no use
** for. */
LJP_SIGSAFE static inline void ljp_memo_restore(struct ljp_memo *notes,
                                                enum ljp_reg reg,
                                                uint64_t address,
                                                uint64_t value)
{
  if (LJP_LIKELY(!notes))
    return;
  if (LJP_LIKELY(!notes->lean)) {
    ljp_memo_note(notes, address, value, 0);
    return;
  }
  notes->restored[reg] = (struct ljp_memo_read){address, value};
  notes->unused |= 1u << reg;
}

LJP_SIGSAFE static inline void ljp_memo_use(struct ljp_memo *notes,
                                            uint32_t regs)
{
  if (LJP_LIKELY(!notes || !(notes->unused & regs)))
    return;
  for (int reg = 0; reg < LJP_REGS; reg++)
    if (notes->unused & regs & 1u << reg)
      ljp_memo_note(notes, notes->restored[reg].at, notes->restored[reg].value,
                    0);
  notes->unused &= ~regs;
}

/* Are the VM's own invariants taken for granted? */
LJP_SIGSAFE static inline bool ljp_memo_is_lean(const struct ljp_memo *notes)
{
  return notes && notes->lean;
}

/* For who has use for the notes alone, and walks between two instructions of
** the VM, where what it keeps about itself is true: none yet; and are they all
** there? */
LJP_SIGSAFE static inline void ljp_memo_forget(struct ljp_memo *notes)
{
  notes->lean = true;
  notes->unused = 0;
  notes->valid = notes->full = false;
  notes->reads = notes->always_reads = 0;
  notes->points = 1; /* where it began; ljp_memo_blur() leaves it behind */
  notes->first = 0;
}

LJP_SIGSAFE static inline bool ljp_memo_noted_all(const struct ljp_memo *notes)
{
  return !notes->full && notes->first == 0;
}

/* Is there, or might there be, a point at this place? Ask before the state is
** put together. Places only go up. */
LJP_SIGSAFE static inline bool ljp_memo_near(struct ljp_memo *memo, uint64_t sp,
                                             uint64_t order)
{
  if (memo->mode == LJP_MEMO_RECORD)
    return memo->points < 64 || (++memo->steps & 7) == 0;
  if (LJP_UNLIKELY(memo->mode != LJP_MEMO_MATCH))
    return false;
  /* The last one is above everything. */
  const struct ljp_memo_point *p = &memo->point[memo->next];
  while (p->sp < sp || (p->sp == sp && p->order > order))
    p++;
  memo->next = (uint32_t)(p - memo->point);
  return p->sp == sp && p->order == order;
}

/* A point: recorded, or compared with the remembered one. True if the rest of
** the stack is known: it has been appended up to the limit, and memo->met is set;
** memo->capped says that there is more of it. */
LJP_SIGSAFE bool ljp_memo_meet(struct ljp_memo *memo,
                               const struct ljp_memo_point *now,
                               uint64_t *frames, uint32_t *count,
                               uint32_t limit);

#endif
