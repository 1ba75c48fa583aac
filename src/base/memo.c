/*
** Memo of a walk; see memo.h. LJP_SIGSAFE throughout.
*/
#include "src/base/memo.h"

#include <string.h>

#include "src/base/saferead.h"

/* One walk of up to NEAR frames is cheaper than a recording, but many such
** walks are not. The frame that runs and the VM's frame on top of it differ at
** nearly every sample. When walks have found FIRST_BUDGET frames besides these
** two, the next walk is recorded, in the hope that later walks meet it earlier.
** Since the hope may be in vain, each budget is twice the one before. */
enum {
  NEAR = 12,
  TOP = 2,
  LONGEST_PAUSE = 31,
  FIRST_BUDGET = 64,
  LAST_BUDGET = 16384
};

void ljp_memo_begin(struct ljp_memo *memo, uint64_t first, uint64_t second)
{
  memo->met = memo->capped = memo->lean = false;
  memo->unused = 0;
  if (memo->valid &&
      (memo->generation[0] != first || memo->generation[1] != second))
    memo->valid = false;
  if (memo->valid && !memo->stale) {
    memo->mode = LJP_MEMO_MATCH;
    memo->next = memo->first;
    memo->bad = 0;
    return;
  }
  if (!memo->valid)
    memo->budget = FIRST_BUDGET;
  memo->left = memo->budget;
  memo->stale = memo->valid = false;
  if (memo->pause) {
    memo->pause--;
    memo->mode = LJP_MEMO_OFF;
    return;
  }
  memo->mode = LJP_MEMO_RECORD;
  memo->full = false;
  memo->points = memo->reads = memo->always_reads = memo->frames = 0;
  memo->first = memo->steps = 0;
  memo->generation[0] = first;
  memo->generation[1] = second;
  memo->records++;
}

/* The last recording was useless: waits before the next one, twice as long each
** time. */
LJP_SIGSAFE static void memo_put_off(struct ljp_memo *memo)
{
  memo->pause = memo->longer;
  memo->longer = 2 * memo->longer + 1;
  if (memo->longer > LONGEST_PAUSE)
    memo->longer = LONGEST_PAUSE;
}

/* A walk has met the recorded one after at most NEAR frames of its own. */
LJP_SIGSAFE static void memo_spend(struct ljp_memo *memo)
{
  memo->longer = 0;
  if (LJP_LIKELY(memo->own <= TOP))
    return;
  uint32_t spent = memo->own - TOP;
  if (LJP_LIKELY(spent < memo->left)) {
    memo->left -= spent;
    return;
  }
  if (memo->budget < LAST_BUDGET)
    memo->budget *= 2;
  memo->pause = 0;
  memo->stale = true;
}

void ljp_memo_end(struct ljp_memo *memo, const uint64_t *frames, uint32_t count,
                  enum ljp_memo_extent extent)
{
  if (memo->mode == LJP_MEMO_MATCH) {
    if (memo->met) {
      memo->matches++;
      if (memo->own <= NEAR) {
        memo_spend(memo);
        return;
      }
    } else
      memo->misses++;
    /* The recorded walk is outdated. But a stack that always changes is not
    ** worth recording each time. */
    if (memo->pause)
      memo->pause--;
    else {
      memo_put_off(memo);
      memo->stale = true;
    }
    return;
  }
  if (memo->mode != LJP_MEMO_RECORD)
    return;
  memo->valid = extent != LJP_MEMO_BROKEN && !memo->full &&
                count <= LJP_MEMO_FRAMES && memo->first < memo->points;
  memo->short_of_root = extent == LJP_MEMO_CAPPED;
  if (!memo->valid) {
    memo_put_off(memo);
    return;
  }
  memcpy(memo->frame, frames, count * sizeof *frames);
  memo->frames = count;
  memo->point[memo->points].sp = UINT64_MAX;
  memo->point[memo->points].order = 0;
}

void ljp_memo_note_always(struct ljp_memo *notes, uint64_t address,
                          uint64_t value)
{
  if (!notes)
    return;
  for (uint32_t i = 0; i < notes->always_reads; i++)
    if (notes->always[i].at == address && notes->always[i].value == value)
      return;
  if (notes->always_reads == LJP_MEMO_ALWAYS) {
    notes->full = true;
    return;
  }
  notes->always[notes->always_reads++] = (struct ljp_memo_read){address, value};
}

void ljp_memo_note_behind(struct ljp_memo *notes, uint64_t address,
                          unsigned skip)
{
  uint64_t value;
  const void *from = (const void *)(uintptr_t)(address + skip);
  if (ljp_safe_copy(&value, from, sizeof value) == sizeof value)
    ljp_memo_note(notes, address + skip, value);
  else
    ljp_memo_blur(notes);
}

LJP_SIGSAFE static bool memo_same_state(const struct ljp_memo_point *a,
                                        const struct ljp_memo_point *b)
{
  uint64_t differ = a->flags ^ b->flags;
  for (int i = 0; i < LJP_MEMO_WORDS; i++)
    differ |= a->word[i] ^ b->word[i];
  return !differ;
}

/* Does memory still hold the words that were read behind this point? */
LJP_SIGSAFE static bool memo_still_true(struct ljp_memo *memo,
                                        const struct ljp_memo_point *point)
{
  uint32_t left = memo->reads - point->read;
  ljp_assert(point->read <= memo->reads);
  if (ljp_saferead_equal(memo->always, memo->always_reads) <
      memo->always_reads) {
    memo->bad = UINT32_MAX;
    memo->changed++;
    return false;
  }
  uint32_t equal = ljp_saferead_equal(memo->read + point->read, left);
  if (equal < left) {
    memo->bad = point->read + equal + 1;
    memo->changed++;
  }
  return equal == left;
}

bool ljp_memo_meet(struct ljp_memo *memo, const struct ljp_memo_point *now,
                   uint64_t *frames, uint32_t *count, uint32_t limit)
{
  if (memo->mode == LJP_MEMO_RECORD) {
    if (memo->points == LJP_MEMO_POINTS) {
      memo->full = true;
      return false;
    }
    ljp_assert(now->read <= memo->reads && *count <= limit);
    struct ljp_memo_point *point = &memo->point[memo->points++];
    *point = *now;
    point->frame = *count;
    return false;
  }
  ljp_assert(memo->mode == LJP_MEMO_MATCH && memo->next < memo->points);
  const struct ljp_memo_point *point = &memo->point[memo->next];
  uint32_t more = memo->frames - point->frame, room = limit - *count;
  /* A walk notices its limit only when it adds one frame too many. */
  bool capped = more > room || (more == room && memo->short_of_root);
  if ((memo->short_of_root && !capped) || (capped && now->wants) ||
      point->read < memo->bad || !memo_same_state(point, now) ||
      !memo_still_true(memo, point))
    return false;
  if (more > room)
    more = room;
  ljp_assert(*count + more <= limit);
  memo->own = *count;
  memo->capped = capped;
  memcpy(frames + *count, memo->frame + point->frame, more * sizeof *frames);
  *count += more;
  memo->met = true;
  return true;
}
