/*
** Joins the guest's and the host's stack of a sample. One thread.
*/
#include "parsers/profile/tarantool_stack.h"

#include "parsers/profile/intern.h"
#include "parsers/tarantool/walk.h"
#include "src/base/assert.h"

typedef struct ljp_tarantool_stack_frame stack_frame;
typedef struct ljp_tarantool_stack_memo stack_memo;

#ifdef LJP_DEBUG
enum { FIRST_BITS = 2, MOST_BITS = 5 };
#else
enum { FIRST_BITS = 12, MOST_BITS = 18 };
#endif

/* -- Frames ---------------------------------------------------------------- */

enum ljp_status ljp_tarantool_stacks_init(struct ljp_tarantool_stacks *t)
{
  t->memo_bits = FIRST_BITS;
  t->memo = ljp_pages_take(sizeof *t->memo << t->memo_bits);
  return t->memo ? LJP_OK : LJP_ERR_MEM;
}

void ljp_tarantool_stacks_fini(struct ljp_tarantool_stacks *t)
{
  ljp_pages_give_back(t->memo, sizeof *t->memo << t->memo_bits);
  t->memo = NULL;
}

static inline stack_memo *stack_memo_at(const struct ljp_tarantool_stacks *t,
                                        const struct ljp_profile *p,
                                        uint8_t asked, uint64_t number)
{
  uint64_t hash = ljp_hash_mix(p->strings.seed + asked, number);
  return &t->memo[hash >> (64 - t->memo_bits)];
}

/* Doubles the memo, if there is memory. */
static void stack_grow_memo(struct ljp_tarantool_stacks *t,
                            const struct ljp_profile *p)
{
  stack_memo *old = t->memo;
  const size_t count = (size_t)1 << t->memo_bits;
  stack_memo *memo = ljp_pages_take(sizeof *memo * count * 2);
  t->evicted = 0;
  if (!memo)
    return;
  t->memo = memo;
  t->memo_bits++;
  for (size_t i = 0; i < count; i++)
    if (old[i].frame.asked)
      *stack_memo_at(t, p, old[i].frame.asked, old[i].number) = old[i];
  ljp_pages_give_back(old, sizeof *old * count);
}

/* Whether a frame is a C function that calls Lua code. */
static bool stack_enters_vm(const struct ljp_profile *p, uint32_t frame)
{
  static const char *const begins[] = {"lj_vm_",    "lj_BC_",    "lj_ff_",
                                       "lua_call",  "lua_pcall", "lua_cpcall",
                                       "lua_resume"};
  struct ljp_str name = ljp_profile_str(p, p->frames[frame].name);
  for (size_t i = 0; i < sizeof begins / sizeof *begins; i++) {
    size_t n = strlen(begins[i]);
    if (name.len >= n && memcmp(name.data, begins[i], n) == 0)
      return true;
  }
  return false;
}

/* Makes the frame of an address or number, and keeps it in the memo. */
static __attribute__((noinline)) enum ljp_status
stack_make_frame(struct ljp_tarantool_stacks *t,
                 struct ljp_tarantool_symbols *symbols, struct ljp_profile *p,
                 uint8_t asked, uint64_t number, stack_frame *to)
{
  stack_frame f = {.asked = asked};
  enum ljp_status status;
  if (asked == LJP_FRAME_LUA)
    /* The file has the line of the definition, not the current one. */
    status = ljp_tarantool_frame_lua(symbols, p, number, 0, &f.frame);
  else if (asked == LJP_FRAME_BUILTIN)
    status = ljp_tarantool_frame_builtin(p, number, &f.frame);
  else
    status =
        ljp_tarantool_frame_c(symbols, p, asked, number, &f.frame, &f.start);
  if (status)
    return status;
  f.kind = p->frames[f.frame].kind;
  f.enters_vm = asked == LJP_FRAME_HOST && stack_enters_vm(p, f.frame);
  stack_memo *memo = stack_memo_at(t, p, asked, number);
  if (memo->frame.asked && memo->number != number &&
      ++t->evicted >> t->memo_bits && t->memo_bits < MOST_BITS) {
    stack_grow_memo(t, p);
    memo = stack_memo_at(t, p, asked, number);
  }
  *memo = (stack_memo){number, symbols->generation, f};
  *to = f;
  return LJP_OK;
}

static inline enum ljp_status
stack_find_frame(struct ljp_tarantool_stacks *t,
                 struct ljp_tarantool_symbols *symbols, struct ljp_profile *p,
                 uint8_t asked, uint64_t number, stack_frame *to)
{
  const stack_memo *memo = stack_memo_at(t, p, asked, number);
  bool holds =
      asked == LJP_FRAME_LUA
          ? ljp_tarantool_symbols_same(symbols, number, memo->generation)
          : memo->generation >= symbols->cfunc_generation;
  if (LJP_UNLIKELY(memo->number != number || memo->frame.asked != asked ||
                   !holds))
    return stack_make_frame(t, symbols, p, asked, number, to);
  *to = memo->frame;
  return LJP_OK;
}

static uint8_t stack_asked(unsigned kind)
{
  return kind == LJP_LJP_FRAME_LUA ? LJP_FRAME_LUA
         : kind == LJP_LJP_FRAME_C ? LJP_FRAME_CFUNC
                                   : LJP_FRAME_BUILTIN;
}

/* Collects the frames of both stacks, leaf first. */
static enum ljp_status stack_collect(struct ljp_tarantool_stacks *t,
                                     struct ljp_tarantool_symbols *symbols,
                                     struct ljp_profile *p,
                                     const struct ljp_tarantool_sample *sample,
                                     uint8_t *cut)
{
  struct ljp_tarantool_walk walk = ljp_tarantool_walk(sample);
  struct ljp_tarantool_frame from;
  enum ljp_status status;
  uint64_t address;
  t->guest_count = t->host_count = 0;
  while (ljp_tarantool_has_guest(sample->state) &&
         ljp_tarantool_guest(&walk, &from)) {
    if (t->guest_count == LJP_STACK_MAX_FRAMES)
      *cut = LJP_CUT_DEPTH;
    else if ((status =
                  stack_find_frame(t, symbols, p, stack_asked(from.kind),
                                   from.number, &t->guest[t->guest_count++])))
      return status;
  }
  while (ljp_tarantool_host(&walk, &address)) {
    if (t->host_count == LJP_STACK_MAX_FRAMES)
      *cut = LJP_CUT_DEPTH;
    else if ((status = stack_find_frame(t, symbols, p, LJP_FRAME_HOST, address,
                                        &t->host[t->host_count++])))
      return status;
  }
  return LJP_OK;
}

/* -- The path -------------------------------------------------------------- */

/* Adds `count` frames, of which list[-1] is the outermost. */
static void stack_push_all(struct ljp_tarantool_stacks *t,
                           const stack_frame *list, uint32_t count)
{
  for (uint32_t i = 0; i < count; i++)
    t->path[t->path_count++] = list[-1 - (int64_t)i].frame;
}

/* Adds a section: host frames, with the guest frames behind the innermost that
** enters the VM. */
static void stack_push_section(struct ljp_tarantool_stacks *t,
                               const stack_frame *host, uint32_t host_count,
                               const stack_frame *guest, uint32_t guest_count)
{
  uint32_t before = host_count;
  while (guest_count && before && !host[-(int64_t)before].enters_vm)
    before--;
  if (!before)
    before = host_count;
  stack_push_all(t, host, before);
  stack_push_all(t, guest, guest_count);
  stack_push_all(t, host - before, host_count - before);
}

enum { INNERMOST = LJP_STACK_MAX_FRAMES * 2 };

static uint16_t *stack_innermost(struct ljp_tarantool_stacks *t, uint64_t start)
{
  uint32_t at = ljp_hash_finish(ljp_hash_mix(start, 0)) % INNERMOST;
  while (t->innermost[at] && t->host[t->innermost[at] - 1].start != start)
    at = (at + 1) % INNERMOST;
  return &t->innermost[at];
}

static void stack_index_host(struct ljp_tarantool_stacks *t)
{
  memset(t->innermost, 0, sizeof t->innermost);
  for (uint32_t i = 0; i < t->host_count; i++) {
    uint16_t *at = stack_innermost(t, t->host[i].start);
    if (!*at)
      *at = (uint16_t)(i + 1);
  }
}

/* The outermost of the first h host frames that is this function's, + 1; 0:
** there is none. Host frames that it passes are not searched again. */
static uint32_t stack_find_host(struct ljp_tarantool_stacks *t, uint32_t h,
                                uint64_t start)
{
  uint16_t innermost = *stack_innermost(t, start);
  if (!innermost || innermost > h)
    return 0;
  while (t->host[h - 1].start != start)
    h--;
  return h;
}

/* The guest and host frames are read from the outermost to the leaf; each C
** function that is in both ends a section. */
static void stack_join(struct ljp_tarantool_stacks *t)
{
  uint32_t h = t->host_count, g = t->guest_count, begin = g;
  bool indexed = false;
  while (g > 0 && h > 0) {
    const stack_frame *called = &t->guest[--g];
    uint32_t same;
    if (LJP_LIKELY(called->kind != LJP_FRAME_CFUNC || !called->start))
      continue;
    if (!indexed)
      stack_index_host(t);
    indexed = true;
    if (!(same = stack_find_host(t, h, called->start)))
      continue;
    stack_push_section(t, t->host + h, h - same, t->guest + begin,
                       begin - g - 1);
    t->path[t->path_count++] = called->frame;
    h = same - 1;
    begin = g;
  }
  stack_push_section(t, t->host + h, h, t->guest + begin, begin);
}

enum ljp_status ljp_tarantool_stack(struct ljp_tarantool_stacks *t,
                                    struct ljp_tarantool_symbols *symbols,
                                    struct ljp_profile *p,
                                    const struct ljp_tarantool_sample *sample,
                                    uint32_t *node, uint8_t *cut)
{
  enum ljp_status status;
  t->path_count = 0;
  *cut = LJP_CUT_NONE;
  *node = 0;
  if (sample->state == LJP_LJP_TRACE) {
    struct ljp_tarantool_trace trace = ljp_tarantool_trace(sample);
    status = ljp_tarantool_frame_trace(symbols, p, trace.number, trace.proto,
                                       trace.line, &t->path[t->path_count++]);
    return status ? status
                  : ljp_profile_intern_path(p, t->path, t->path_count, node);
  }
  if ((status = stack_collect(t, symbols, p, sample, cut)))
    return status;
  if (!t->guest_count && !t->host_count) {
    *node = LJP_NODE_NO_STACK;
    return LJP_OK;
  }
  if (*cut) {
    struct ljp_profile_frame f = {.kind = LJP_FRAME_CUT, .offset = *cut};
    if ((status = ljp_profile_intern_frame(p, &f, &t->path[t->path_count++])))
      return status;
  }
  stack_join(t);
  ljp_assert(t->path_count <= t->guest_count + t->host_count + 1);
  return ljp_profile_intern_path(p, t->path, t->path_count, node);
}
