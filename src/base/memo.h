/*
** Memo: what one walk of a thread's stack has read and found, so that the next
** walk need not find it again.
**
** Mental picture: a walk is a pure function of the registers that it starts
** with, of the words that it reads, and of tables that have a generation. A
** walk that is recorded passes *points* (between two frames). Each point holds
** the whole state on which the rest of the walk depends, and the walk notes
** each word that it reads. If a later walk comes to a point in the same state
** and would read the same words, it would continue in the same way. So the
** noted words are compared with memory, all at once and without following a
** pointer. If they are equal, the remembered rest of the stack is the rest of
** this one. Nothing is guessed. A walk that ended at its limit of frames is the
** beginning of a longer one: its rest is good for a walk that comes to its own
** limit where the remembered frames end, or before.
**
** Invariants: code that reads memory behind a point notes the word, or calls
** ljp_memo_blur(). read[0 .. reads) is in the order of the walk. The rest
** behind a point depends on always[] and on the reads from the point's own on.
** Safety: LJP_SIGSAFE throughout. A memo belongs to one thread at a time.
*/
#ifndef LJP_MEMO_H
#define LJP_MEMO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/assert.h"
#include "src/base/regs.h"
#include "src/base/sigsafe.h"

enum {
  LJP_MEMO_POINTS = 512,
  LJP_MEMO_READS = 8704, /* Four for each Lua frame. */
  LJP_MEMO_ALWAYS = 32,
  LJP_MEMO_FRAMES = 2048,
  LJP_MEMO_WORDS = 9
};

/* Eight bytes that were read, at any address. */
struct ljp_memo_read {
  uint64_t at, value;
};

/* Where a walk may continue from memory. Sorted: sp ascends; for the same sp,
** order descends. */
struct ljp_memo_point {
  uint64_t sp, order;
  uint64_t word[LJP_MEMO_WORDS]; /* The state; flags are part of it. */
  uint32_t flags;
  uint32_t read;  /* The first read on which its rest depends. */
  uint32_t frame; /* The number of frames before; set by ljp_memo_meet(). */
  /* Not 0: the walk wants more from the rest than frames, so the rest must not
  ** be cut. It is not compared, since the state implies it. */
  uint32_t wants;
};

/* Where a walk ended: at the root (WHOLE), at its limit of frames (CAPPED), or
** anywhere else (BROKEN). */
enum ljp_memo_extent { LJP_MEMO_BROKEN, LJP_MEMO_WHOLE, LJP_MEMO_CAPPED };

enum ljp_memo_mode { LJP_MEMO_OFF, LJP_MEMO_RECORD, LJP_MEMO_MATCH };

struct ljp_memo {
  enum ljp_memo_mode mode;
  bool valid;         /* A whole walk is recorded. */
  bool full;          /* There was no room to record it. */
  bool met;           /* This walk has found its rest here. */
  bool short_of_root; /* The recorded walk ended at a limit of frames. */
  bool capped;        /* So does the rest that was found. */
  uint64_t generation[2];
  uint32_t points, reads, always_reads, frames;
  uint32_t first; /* Points before it are useless. */
  uint32_t next;  /* The next point that may be met. */
  uint32_t bad;   /* A read before this one is known to differ. */
  uint32_t steps; /* Since the last point was recorded. */
  uint32_t own;   /* Frames that this walk has found itself. */
  /* Lean notes (ljp_memo_begin_lean()): registers that were restored and have
  ** not been used since. Code that looks at a register calls ljp_memo_use()
  ** first. */
  bool lean;
  uint32_t unused;
  struct ljp_memo_read restored[LJP_REGS];
  /* When to record again. */
  bool stale;
  uint32_t pause, longer;
  uint32_t budget, left; /* Own frames of walks until it is stale. */
  /* The owner's: what the rest has found besides frames. */
  uint32_t vm, state;
  uint64_t thread; /* of that VM */
  /* For tests and reports. */
  uint64_t matches, misses, records, changed;
  struct ljp_memo_point point[LJP_MEMO_POINTS + 1];
  struct ljp_memo_read always[LJP_MEMO_ALWAYS];
  struct ljp_memo_read read[LJP_MEMO_READS];
  uint64_t frame[LJP_MEMO_FRAMES];
};

/* Begins a walk and sets mode. A walk recorded under other generations is
** discarded. */
LJP_SIGSAFE void ljp_memo_begin(struct ljp_memo *memo, uint64_t first,
                                uint64_t second);

/* Ends the walk; frames: its whole stack. */
LJP_SIGSAFE void ljp_memo_end(struct ljp_memo *memo, const uint64_t *frames,
                              uint32_t count, enum ljp_memo_extent extent);

/* Notes a word that the walk has read. */
LJP_SIGSAFE static inline void ljp_memo_note(struct ljp_memo *notes,
                                             uint64_t address, uint64_t value)
{
  if (LJP_LIKELY(!notes))
    return;
  if (LJP_UNLIKELY(notes->reads == LJP_MEMO_READS)) {
    notes->full = true;
    return;
  }
  struct ljp_memo_read *read = &notes->read[notes->reads++];
  read->at = address;
  read->value = value;
}

/* The same for a word whose low bytes (skip of them) do not matter: notes the
** eight bytes behind them. That these include low bytes of the next word does
** no harm: the walk only is not repeated if those have changed. */
LJP_SIGSAFE void ljp_memo_note_behind(struct ljp_memo *notes, uint64_t address,
                                      unsigned skip);

/* Notes a word on which the rest behind every point depends. */
LJP_SIGSAFE void ljp_memo_note_always(struct ljp_memo *notes, uint64_t address,
                                      uint64_t value);

/* Something was read since the last point that could not be noted: no walk may
** continue from a point before. */
LJP_SIGSAFE static inline void ljp_memo_blur(struct ljp_memo *notes)
{
  if (LJP_UNLIKELY(notes != NULL))
    notes->first = notes->points;
}

/* Notes the word from which a register of the frame above was restored. In lean
** notes it counts only if the walk uses the register: see ljp_memo_use(). */
LJP_SIGSAFE static inline void ljp_memo_restore(struct ljp_memo *notes,
                                                enum ljp_reg reg,
                                                uint64_t address,
                                                uint64_t value)
{
  if (LJP_LIKELY(!notes))
    return;
  if (LJP_LIKELY(!notes->lean)) {
    ljp_memo_note(notes, address, value);
    return;
  }
  notes->restored[reg] = (struct ljp_memo_read){address, value};
  notes->unused |= 1u << reg;
}

/* The walk is about to use these registers (one bit for each). */
LJP_SIGSAFE static inline void ljp_memo_use(struct ljp_memo *notes,
                                            uint32_t regs)
{
  if (LJP_LIKELY(!notes || !(notes->unused & regs)))
    return;
  for (int reg = 0; reg < LJP_REGS; reg++)
    if (notes->unused & regs & 1u << reg)
      ljp_memo_note(notes, notes->restored[reg].at, notes->restored[reg].value);
  notes->unused &= ~regs;
}

/* Do the notes take the VM's own invariants for granted? */
LJP_SIGSAFE static inline bool ljp_memo_is_lean(const struct ljp_memo *notes)
{
  return notes && notes->lean;
}

/* Begins lean notes, for a caller that needs the noted words alone. It must
** walk between two instructions of the VM, where the VM's own invariants hold.
** */
LJP_SIGSAFE static inline void ljp_memo_begin_lean(struct ljp_memo *notes)
{
  notes->lean = true;
  notes->unused = 0;
  notes->valid = notes->full = false;
  notes->reads = notes->always_reads = 0;
  notes->points = 1; /* The start, which ljp_memo_blur() excludes. */
  notes->first = 0;
}

/* Has every word that was read since ljp_memo_begin_lean() been noted? */
LJP_SIGSAFE static inline bool
ljp_memo_notes_complete(const struct ljp_memo *notes)
{
  return !notes->full && notes->first == 0;
}

/* Is there a point at this place, or would one be recorded? Ask before you put
** the state together. During a walk, places only go up. */
LJP_SIGSAFE static inline bool ljp_memo_near(struct ljp_memo *memo, uint64_t sp,
                                             uint64_t order)
{
  if (memo->mode == LJP_MEMO_RECORD)
    return memo->points < 64 || (++memo->steps & 7) == 0;
  if (LJP_UNLIKELY(memo->mode != LJP_MEMO_MATCH))
    return false;
  /* The last point is above all places. */
  const struct ljp_memo_point *p = &memo->point[memo->next];
  while (p->sp < sp || (p->sp == sp && p->order > order))
    p++;
  memo->next = (uint32_t)(p - memo->point);
  return p->sp == sp && p->order == order;
}

/* Comes to a point: records it, or compares it with the remembered one. True:
** the rest of the stack is known, has been appended up to the limit, and
** memo->met is set. memo->capped says whether there is more. */
LJP_SIGSAFE bool ljp_memo_meet(struct ljp_memo *memo,
                               const struct ljp_memo_point *now,
                               uint64_t *frames, uint32_t *count,
                               uint32_t limit);

#endif
