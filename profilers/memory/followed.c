/*
** See followed.h.
*/
#include "profilers/memory/followed.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "profilers/session/host.h"
#include "profilers/session/shared.h"
#include "src/base/assert.h"
#include "src/base/clock.h"
#include "src/base/futex.h"
#include "src/base/saferead.h"
#include "src/luajit/stubs.h"
#include "src/luajit/vms.h"

enum {
  IDLE = 16,       /* recorders that wait for another VM */
  NAMES_ROOM = 16, /* at first */
  RING_SHARE = 4   /* so many rings have each size, but the smallest */
};
#define LARGEST_RING ((size_t)4 << 20)
#define SMALLEST_RING ((size_t)64 << 10)

struct followed_name {
  uint32_t number, id;
};

static struct {
  struct ljp_follow how;
  struct ljp_recorder *_Atomic first; /* of the followed VMs */
  struct ljp_recorder *_Atomic idle;  /* latest first */
  struct ljp_recorder *_Atomic left;  /* below other allocators, for good */
  uint32_t count, lingering, rings;
  struct ljp_memprof_counts counts; /* of VMs that are not followed now */
  struct followed_name *names; /* of VMs that got no id from the CPU session */
  uint32_t name_count, name_room;
} followed;

void ljp_followed_begin(const struct ljp_follow *how)
{
  ljp_assert(!followed.first && !followed.count);
  followed.how = *how;
  followed.name_count = 0;
  memset(&followed.counts, 0, sizeof followed.counts);
}

uint32_t ljp_followed_lingering(void)
{
  return followed.lingering;
}

/* -- Ids ------------------------------------------------------------------- */

static struct followed_name *followed_name(uint32_t number)
{
  for (uint32_t i = 0; i < followed.name_count; i++)
    if (followed.names[i].number == number)
      return &followed.names[i];
  return NULL;
}

enum ljp_status ljp_followed_define(uint32_t number, uint32_t *id)
{
  struct followed_name *known = followed_name(number);
  char text[24];
  *id = followed.how.shared ? ljp_shared_vm_id(number) : 0;
  if (!*id && known)
    *id = known->id;
  if (*id)
    return LJP_OK;
  if (followed.name_count == followed.name_room) {
    uint32_t room = followed.name_room ? 2 * followed.name_room : NAMES_ROOM;
    struct followed_name *more = realloc(followed.names, room * sizeof *more);
    if (!more)
      return LJP_ERR_MEM;
    followed.names = more;
    followed.name_room = room;
  }
  snprintf(text, sizeof text, "VM %u", number);
  enum ljp_status status =
      ljp_session_add_vm(followed.how.session, 0, text, id);
  if (!status)
    followed.names[followed.name_count++] =
        (struct followed_name){.number = number, .id = *id};
  return status;
}

struct followed_numbers {
  uint32_t count, room;
  uint32_t *number; /* NULL: only counts */
};

static void followed_add_number(void *ctx, uint32_t number)
{
  struct followed_numbers *n = ctx;
  if (n->number && n->count < n->room)
    n->number[n->count] = number;
  n->count += !n->number || n->count < n->room;
}

/* Not under the lock of ljp_guest_each_vm(). */
void ljp_followed_define_all(void)
{
  struct followed_numbers n = {.count = 0};
  uint32_t id;
  ljp_guest_each_vm(followed_add_number, &n);
  n.room = n.count;
  n.number = calloc(n.room, sizeof *n.number);
  n.count = 0;
  if (n.number)
    ljp_guest_each_vm(followed_add_number, &n);
  for (uint32_t i = 0; n.number && i < n.count; i++)
    ljp_followed_define(n.number[i], &id);
  free(n.number);
}

static void followed_forget_name(uint32_t number)
{
  struct followed_name *known = followed_name(number);
  if (!known)
    return;
  ljp_session_end_vm(followed.how.session, known->id);
  *known = followed.names[--followed.name_count];
}

/* -- Recorders ------------------------------------------------------------- */

static size_t followed_bytes(void)
{
  return (sizeof(struct ljp_recorder) + 4095) & ~(size_t)4095;
}

static void followed_insert(struct ljp_recorder *_Atomic *list,
                            struct ljp_recorder *r)
{
  r->next = *list;
  *list = r;
}

static void followed_unlink(struct ljp_recorder *_Atomic *list,
                            const struct ljp_recorder *r)
{
  while (*list && *list != r)
    list = &(*list)->next;
  if (*list)
    *list = r->next;
}

/* Rings get smaller when there are many: at most 16 + 4 + 1 MiB and 64 KiB for
** each ring more. */
static size_t followed_ring_bytes(void)
{
  size_t bytes = LARGEST_RING;
  for (uint32_t n = followed.rings; n >= RING_SHARE && bytes > SMALLEST_RING;
       n -= RING_SHARE)
    bytes /= 4;
  return bytes;
}

/* Frees what belongs to a session. */
static void followed_cool(struct ljp_recorder *r)
{
  char *stacks = (char *)&r->stacks;
  char *page = (char *)(((uintptr_t)stacks + 4095) & ~(uintptr_t)4095);
  ljp_stacks_fini(&r->stacks);
  memset(stacks, 0, (size_t)(page - stacks));
  madvise(page, (size_t)((char *)r + followed_bytes() - page), MADV_DONTNEED);
  if (r->producer && !r->abandoned) {
    ljp_producer_retire(r->producer);
    followed.rings--;
  }
  r->producer = NULL;
  r->abandoned = false;
}

static enum ljp_status followed_warm(struct ljp_recorder *r)
{
  if (r->producer) {
    ljp_stacks_renew(&r->stacks);
    ljp_producer_pass_on(r->producer);
    return LJP_OK;
  }
  followed_cool(r); /* in a child of fork() it may still be warm */
  r->stacks.heap = &r->heap;
  r->stacks.native = followed.how.native;
  r->stacks.depth = followed.how.depth;
  r->stacks.unwind = ljp_host_tables();
  if (!ljp_stacks_init(&r->stacks))
    return LJP_ERR_MEM;
  enum ljp_status status = ljp_session_add_producer(
      followed.how.session, LJP_PRODUCER_MEMORY, 0, followed.how.sample_bytes,
      followed_ring_bytes(), &r->producer);
  followed.rings += !status;
  r->told_bytes = followed.how.sample_bytes;
  return status;
}

/* A host may have kept a session's allocator (lua_getallocf) and may still call
** it. So its recorder stays and passes calls on, until there are IDLE later
** ones. Before that it may only serve a VM with the same allocator, and be of
** the same kind, unless nobody can call it. */
static void followed_give_back(struct ljp_recorder *r, bool closed)
{
  struct ljp_recorder *_Atomic *at = &followed.idle, *last;
  /* Once its VM is closed, LuaJIT's own allocator is of no use to anybody. */
  bool spare = r->fixed || !r->alloc || (closed && r->own);
  ljp_recorder_reset(r);
  r->spare = spare;
  followed_insert(&followed.idle, r);
  for (int i = 0; *at && i < IDLE; i++)
    at = &(*at)->next;
  last = *at;
  if (!last)
    return;
  *at = NULL;
  followed_cool(last);
  munmap(last, followed_bytes());
}

/* NULL: out of memory. */
static struct ljp_recorder *followed_take(struct lua_State *L)
{
  void *ud;
  lua_Alloc alloc = lua_getallocf(L, &ud);
  bool every = followed.how.sample_bytes == 0;
  struct ljp_recorder *r = followed.idle, *oldest = NULL;
  int count = 0;
  for (; r && !r->spare; r = r->next, count++) {
    if (r->alloc == alloc && r->ud == ud && r->every == every)
      break;
    oldest = r;
  }
  if (!r && count == IDLE)
    r = oldest;
  if (r) {
    followed_unlink(&followed.idle, r);
    r->spare = false;
    return r;
  }
  r = mmap(NULL, followed_bytes(), PROT_READ | PROT_WRITE,
           MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (r == MAP_FAILED)
    return NULL;
  ljp_recorder_reset(r);
  return r;
}

/* Another allocator is on top of the recorder: it has to pass calls on for
** good. Its first pages are enough for that. */
static void followed_leave(struct ljp_recorder *r)
{
  size_t head = (offsetof(struct ljp_recorder, stacks) + 4095) & ~(size_t)4095;
  followed_cool(r);
  if (head < followed_bytes())
    munmap((char *)r + head, followed_bytes() - head);
  followed_insert(&followed.left, r);
}

static void followed_put_away(struct ljp_recorder *r, bool removed, bool closed)
{
  if (removed)
    followed_give_back(r, closed);
  else
    followed_leave(r);
}

/* -- VMs come and go ------------------------------------------------------- */

static enum ljp_status followed_prepare(struct lua_State *L,
                                        struct ljp_recorder *r)
{
  uint32_t number = ljp_guest_vm_id(L);
  if (!ljp_guest_heap(L, &r->heap))
    return LJP_ERR_NOTSUP;
  r->number = number;
  r->sample_bytes = r->asked_bytes = followed.how.sample_bytes;
  r->max_samples = followed.how.max_samples;
  r->told_at_once = followed.how.told_at_once;
  r->here.random = ((ljp_clock_ns() ^ (uint64_t)number << 40) *
                    UINT64_C(0x9e3779b97f4a7c15)) |
                   1;
  enum ljp_status status = ljp_followed_define(number, &r->vm);
  return status ? status : followed_warm(r);
}

enum ljp_status ljp_followed_add(struct lua_State *L)
{
  ljp_followed_clear(L);
  if (ljp_guest_recorder(L))
    return LJP_OK;
  if (followed.count == LJP_FOLLOWED_MAX)
    return LJP_ERR_LIMIT;
  struct ljp_recorder *r = followed_take(L);
  if (!r)
    return LJP_ERR_MEM;
  enum ljp_status status = followed_prepare(L, r);
  if (status) {
    followed_cool(r);
    followed_give_back(r, false);
    return status;
  }
  atomic_store(&r->moves, true);
  followed.count++;
  followed_insert(&followed.first, r);
  ljp_guest_set_recorder(L, r, &r->log);
  ljp_recorder_begin(r);
  atomic_store(&r->moves, false);
  return LJP_OK;
}

static void followed_end(struct lua_State *L, struct ljp_recorder *r,
                         bool closed)
{
  atomic_store(&r->moves, true);
  bool removed = ljp_recorder_end(r, closed);
  ljp_recorder_add_counts(r, &followed.counts);
  followed_unlink(&followed.first, r);
  followed.count--;
  atomic_store(&r->moves, false);
  ljp_guest_set_recorder(L, NULL, NULL);
  followed_put_away(r, removed, closed);
}

static void followed_remove(struct lua_State *L, struct ljp_recorder *r,
                            bool closed)
{
  bool removed = ljp_recorder_remove(r);
  followed.lingering--;
  ljp_guest_set_recorder(L, NULL, NULL);
  followed_put_away(r, removed, closed);
}

void ljp_followed_gone(struct lua_State *L)
{
  struct ljp_recorder *r = ljp_guest_recorder(L);
  if (r && r->ended)
    followed_remove(L, r, true);
  else if (r)
    followed_end(L, r, true);
  followed_forget_name(ljp_guest_vm_id(L));
}

void ljp_followed_clear(struct lua_State *L)
{
  ljp_guest_stub_clear(L);
  struct ljp_recorder *r = ljp_guest_recorder(L);
  if (r && r->ended)
    followed_remove(L, r, false);
}

void ljp_followed_counts(struct ljp_memprof_counts *sums, uint64_t *heap_bytes)
{
  *sums = followed.counts;
  *heap_bytes = 0;
  for (struct ljp_recorder *r = followed.first; r; r = r->next) {
    ljp_recorder_add_counts(r, sums);
    uint64_t bytes; /* the VM may have gone with its memory, unseen */
    if (ljp_safe_load(r->heap.bytes, &bytes))
      *heap_bytes += bytes;
  }
}

/* The VMs' threads may be changing it. */
__attribute__((no_sanitize("thread"))) uint64_t ljp_followed_sample_bytes(void)
{
  uint64_t most = followed.how.sample_bytes;
  for (const struct ljp_recorder *r = followed.first; r; r = r->next)
    if (r->sample_bytes > most)
      most = r->sample_bytes;
  return most;
}

/* -- The end --------------------------------------------------------------- */

/* Returns false if the VM's thread is stuck in the recorder. */
static bool followed_end_elsewhere(struct ljp_recorder *r, uint64_t until_ns)
{
  bool done = ljp_recorder_end_elsewhere(r, until_ns);
  ljp_recorder_add_counts(r, &followed.counts);
  followed_unlink(&followed.first, r);
  followed.count--;
  followed.lingering++;
  if (done) {
    followed_cool(r);
  } else {
    ljp_producer_abandon(r->producer);
    r->abandoned = true;
    followed.rings--;
  }
  return done;
}

bool ljp_followed_stop(struct lua_State *L)
{
  struct ljp_recorder *own = L ? ljp_guest_recorder(L) : NULL, *r;
  _Atomic uint32_t never = 0;
  bool done = true;
  if (own && !own->ended)
    followed_end(L, own, false);
  for (r = followed.first; r; r = r->next)
    ljp_recorder_switch_off(r);
  if (followed.first)
    ljp_futex_wait(&never, 0, LJP_RECORDER_SETTLE_NS);
  /* One patience for all: the caller holds the profiler's lock. */
  const uint64_t until_ns = ljp_clock_ns() + LJP_RECORDER_PATIENCE_NS;
  while ((r = followed.first) != NULL)
    done = followed_end_elsewhere(r, until_ns) && done;
  for (r = followed.idle; r; r = r->next)
    followed_cool(r);
  followed.name_count = 0;
  return done;
}

/* From now on the recorder only passes calls on. It must not ask its producer,
** which goes with the session when the child starts another one. */
static void followed_forget(struct ljp_recorder *r)
{
  ljp_recorder_switch_off(r);
  r->ended = true;
  r->producer = NULL;
  followed_unlink(&followed.first, r);
  followed.count--;
  followed.lingering++;
}

void ljp_followed_forked(bool recording)
{
  struct ljp_recorder *r, *next;
  memset(&followed.counts, 0, sizeof followed.counts);
  for (r = followed.first; r && recording; r = next) {
    next = r->next;
    /* A thread that the child does not have was making the VM, or closing it:
    ** the VM need not have the recorder's allocator. */
    if (!atomic_load(&r->moves)) {
      ljp_recorder_forked(r);
    } else {
      followed.rings -= r->producer != NULL;
      followed_forget(r);
    }
  }
  if (recording)
    return;
  for (r = followed.idle; r; r = r->next)
    r->producer = NULL;
  while ((r = followed.first) != NULL)
    followed_forget(r);
  followed.rings = 0;
}
