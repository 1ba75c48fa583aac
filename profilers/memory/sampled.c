/*
** The allocator of a sampled session: handles the VM's calls that the entry
** (entry.c) does not pass on by itself.
*/
#include "profilers/memory/record_priv.h"

#include <errno.h>
#include <math.h>

/* Draws the number of bytes until the next sample. Each byte is sampled with
** the probability 1 / sample_bytes, so the number is geometric, and
** independent of what came before. */
static void sampled_draw(struct ljp_countdown *down)
{
  uint64_t x = down->random;
  x ^= x >> 12;
  x ^= x << 25;
  x ^= x >> 27;
  down->random = x;
  double u = (double)((x * UINT64_C(0x2545f4914f6cdd1d)) >> 11) + 1;
  down->until = (int64_t)(-log(u * 0x1p-53) * (double)down->sample_bytes);
}

/* -- Begin and end --------------------------------------------------------- */

struct ljp_own ljp_own = {.down = {.until = INT64_MAX}};

void ljp_recorder_begin_sampled(struct ljp_recorder *r)
{
  r->fixed = r->own && !ljp_own.ud && !ljp_own.kept;
  r->here.sample_bytes = r->sample_bytes;
  ljp_recorder_tell_distance(r); /* another VM may have had another distance */
  sampled_draw(&r->here);
  r->down = &r->here;
  r->track.filters = !r->fixed;
  if (!r->fixed)
    return;
  ljp_own.down = r->here;
  r->down = &ljp_own.down;
  ljp_own.recorder = r;
  ljp_own.alloc = r->alloc;
  ljp_guest_listen_refused(r->ud, ljp_sampled_refused, r->ud);
  atomic_store(&ljp_own.ud, r->ud);
}

void ljp_recorder_tell_distance(struct ljp_recorder *r)
{
  enum { AGAIN_NS = 1000000000 };
  const uint64_t bytes = r->sample_bytes, now_ns = r->time_ns;
  if (LJP_LIKELY(r->told_bytes == bytes &&
                 (bytes == r->asked_bytes || now_ns - r->told_ns < AGAIN_NS)))
    return;
  if (!ljp_push_interval(r->producer, now_ns, bytes,
                         bytes < r->told_bytes ? LJP_INTERVAL_RECOVER
                                               : LJP_INTERVAL_LIMIT))
    return;
  r->told_bytes = bytes;
  r->told_ns = now_ns;
}

void ljp_recorder_restart_sampled(struct ljp_recorder *r)
{
  r->sample_bytes = r->down->sample_bytes = r->asked_bytes;
  r->told_bytes = r->asked_bytes;
  r->pace_samples = 0;
  r->pace_ns = 0;
  sampled_draw(r->down);
}

/* Blocks that are still alive keep their flags: the table may hold addresses of
** blocks that were freed unseen, and something else is there now. */
void ljp_recorder_end_sampled(struct ljp_recorder *r, bool ours)
{
  if (r->fixed) {
    ljp_guest_listen_refused(NULL, NULL, NULL);
    atomic_store(&ljp_own.ud, NULL);
    ljp_own.down.until = INT64_MAX;
    ljp_own.kept = !ours;
  }
  ljp_track_fini(&r->track);
}

/* If another VM has a session, these bytes have used up some of its distance to
** the next sample. The distance has no memory, so what remains of it has the
** same mean as a new one. If the bytes have used it up, a new one is drawn. */
void *ljp_sampled_late(void *ud, void *ptr, size_t osize, size_t nsize)
{
  if (ljp_own.down.until < 0)
    sampled_draw(&ljp_own.down);
  return ljp_own.alloc(ud, ptr, osize, nsize);
}

/* -- Blocks ----------------------------------------------------------------- */

/* Removes a block from the table. False: it was not there. */
static bool sampled_take(struct ljp_recorder *r, void *ptr,
                         struct ljp_tracked *block)
{
  if (!ptr)
    return false;
  if (r->fixed) {
    if (!ljp_guest_block_flag(ptr))
      return false;
    ljp_guest_set_block_flag(ptr, false);
  }
  return ljp_track_take(&r->track, (uint64_t)(uintptr_t)ptr, block);
}

static bool sampled_put(struct ljp_recorder *r, const struct ljp_tracked *block)
{
  if (!ljp_track_put(&r->track, block))
    return false;
  if (r->fixed)
    ljp_guest_set_block_flag((void *)(uintptr_t)block->address, true);
  return true;
}

/* The bytes that a sampled block stands for: its size, divided by the
** probability that one of its bytes is hit. */
static uint64_t sampled_weight(const struct ljp_recorder *r, uint64_t size)
{
  double chance = -expm1(-(double)size / (double)r->sample_bytes);
  return (uint64_t)((double)size / chance + 0.5);
}

/* -- The limit of samples ---------------------------------------------------- */

/* If samples come faster than the limit allows, the distance between them becomes
** longer; if they come at less than a quarter of the limit, it becomes shorter, down
** to what was asked for. Each block's weight is that of the distance that it was drawn
** with. Given the distance, a draw is independent of all before, so no estimate is
** biased. */
enum { PACE_SAMPLES = 32, PACE_DOUBLINGS = 4 /* at a time */ };

/* How long so many samples take at the limit. */
static uint64_t sampled_pace_ns(const struct ljp_recorder *r)
{
  return PACE_SAMPLES * UINT64_C(1000000000) / r->max_samples;
}

static void sampled_set_pace(struct ljp_recorder *r, uint64_t now_ns,
                             uint64_t bytes)
{
  r->pace_samples = 0;
  r->pace_ns = now_ns;
  r->sample_bytes = r->down->sample_bytes = bytes;
}

/* The distance that suits so few samples in that time. */
static uint64_t sampled_shorter(const struct ljp_recorder *r,
                                uint64_t elapsed_ns)
{
  uint64_t bytes = r->sample_bytes;
  for (; bytes > r->asked_bytes && elapsed_ns > 4 * sampled_pace_ns(r);
       elapsed_ns /= 2)
    bytes /= 2;
  return bytes;
}

static void sampled_keep_pace(struct ljp_recorder *r, uint64_t now_ns)
{
  const uint64_t most = 4 * LJP_MEMPROF_SAMPLE_MAX;
  if (!r->max_samples)
    return;
  uint64_t elapsed_ns = now_ns - r->pace_ns;
  uint64_t bytes = sampled_shorter(r, elapsed_ns);
  if (++r->pace_samples < PACE_SAMPLES && elapsed_ns <= 4 * sampled_pace_ns(r))
    return;
  for (int i = 0;
       i < PACE_DOUBLINGS && elapsed_ns < sampled_pace_ns(r) && bytes < most;
       i++, elapsed_ns *= 2)
    bytes *= 2;
  sampled_set_pace(r, now_ns, bytes);
}

/* The distance has no memory, so what remains of it can be drawn again. */
void ljp_recorder_shorten_distance(struct ljp_recorder *r)
{
  if (LJP_LIKELY(r->sample_bytes == r->asked_bytes))
    return;
  uint64_t now_ns = ljp_recorder_time_now(r);
  uint64_t bytes = sampled_shorter(r, now_ns - r->pace_ns);
  if (bytes == r->sample_bytes || r->down->until < 0)
    return;
  sampled_set_pace(r, now_ns, bytes);
  sampled_draw(r->down);
}

/* -- Calls ------------------------------------------------------------------- */

/* A sampled block is freed, or moves. The event has the stack of the caller,
** which has been found unless the collector sweeps. */
static void sampled_free(struct ljp_recorder *r, const struct ljp_mem *m,
                         const struct ljp_tracked *block, uint8_t flag)
{
  struct ljp_mem gone = *m;
  gone.address = block->address;
  gone.size = block->size;
  gone.weight = block->weight;
  gone.what = flag;
  ljp_recorder_push_free(r, &gone);
}

static void sampled_allocate(struct ljp_recorder *r, struct ljp_mem *m)
{
  const struct ljp_tracked block = {m->address, m->size,
                                    sampled_weight(r, m->size)};
  sampled_keep_pace(r, m->time_ns);
  sampled_draw(r->down);
  if (!sampled_put(r, &block)) {
    r->counts.lost[LJP_LOSS_TRACK_FULL]++;
    ljp_count_loss(r->producer, LJP_LOSS_TRACK_FULL, 1);
    return;
  }
  if (m->op == LJP_MEM_REALLOC)
    m->what |= LJP_MEM_MOVED;
  m->op = LJP_MEM_ALLOC;
  m->weight = block.weight;
  r->counts.allocs++;
  r->counts.alloc_bytes += block.weight;
  r->held = *m;
  ljp_recorder_hold(r);
}

void *ljp_recorder_sampled(struct ljp_recorder *r, void *ptr, size_t osize,
                           size_t nsize, const struct ljp_caller *caller,
                           bool failed)
{
  bool sampled = nsize && !failed && r->down->until < 0;
  if (LJP_UNLIKELY(!ljp_recorder_enter(r))) {
    if (sampled) /* no more samples, for good */
      r->down->until = INT64_MAX;
    return failed ? NULL : r->alloc(r->ud, ptr, osize, nsize);
  }
  int *error = &errno, saved = *error;
  struct ljp_tracked block;
  ljp_stand_in(caller);
  bool tracked = sampled_take(r, ptr, &block);
  struct ljp_mem m = {.vm = 0};
  bool swept = false, tells = tracked || sampled || failed;
  if (tells) {
    ljp_recorder_flush(r);
    ljp_recorder_check_phase(r, nsize ? 0 : osize);
    m = ljp_recorder_mem(r, ptr, osize, nsize);
    m.vmstate = (uint8_t)ljp_guest_heap_state(&r->heap);
    swept = !nsize && m.vmstate == LJP_VMSTATE_GC && ljp_is_sweeping(r);
    if (!swept) {
      ljp_recorder_see_labels(r);
      ljp_stacks_find(&r->stacks, caller, &r->stack);
      m.vmstate = (uint8_t)ljp_recorder_state(r, &r->stack);
    }
  }
  *error = saved;
  ljp_stand_in(NULL);
  ljp_recorder_leave(r);
  r->down->last_size = 0;
  void *result = failed ? NULL : r->alloc(r->ud, ptr, osize, nsize);
  if (LJP_UNLIKELY(!ljp_recorder_enter(r)))
    return result;
  saved = *error;
  ljp_stand_in(caller);
  if (nsize && !result) {
    if (tracked) /* the block has not moved */
      sampled_put(r, &block);
    if (sampled)
      sampled_draw(r->down);
    if (!tells) {
      ljp_recorder_flush(r);
      ljp_recorder_see_labels(r);
      m = ljp_recorder_mem(r, ptr, osize, nsize);
      ljp_stacks_find(&r->stacks, caller, &r->stack);
      m.vmstate = (uint8_t)ljp_recorder_state(r, &r->stack);
    }
    ljp_recorder_failed(r, &m, ptr, osize);
  } else {
    if (tracked)
      sampled_free(r, &m, &block,
                   nsize   ? LJP_MEM_MOVED
                   : swept ? LJP_MEM_SWEPT
                           : 0);
    if (sampled) {
      if (ptr) {
        m.old_address = m.address;
        m.old_size = osize;
      }
      m.address = (uint64_t)(uintptr_t)result;
      sampled_allocate(r, &m);
    }
  }
  ljp_stand_in(NULL);
  ljp_recorder_leave(r);
  *error = saved;
  return result;
}
