/*
** Joins the guest's and the host's stack of a sample. One thread.
*/
#include "parsers/profile/tarantool_stack.h"

#include "parsers/base/index.h"
#include "parsers/profile/intern.h"

typedef struct ljp_tarantool_stack_frame stack_frame;

/* Collects the frames of both stacks, leaf first. */
static enum ljp_status stack_collect(struct ljp_tarantool_stacks *t,
                                     struct ljp_tarantool_symbols *symbols,
                                     struct ljp_profile *p,
                                     const struct ljp_tarantool_sample *sample,
                                     uint8_t *cut)
{
  struct ljp_tarantool_walk walk = ljp_tarantool_walk(sample);
  struct ljp_tarantool_frame from;
  enum ljp_status status = LJP_OK;
  uint64_t address;
  t->guest_count = t->host_count = 0;
  while (ljp_tarantool_has_guest(sample->state) &&
         ljp_tarantool_guest(&walk, &from)) {
    stack_frame *to = &t->guest[t->guest_count];
    if (t->guest_count == LJP_STACK_MAX_FRAMES) {
      *cut = LJP_CUT_DEPTH;
      continue;
    }
    t->guest_count++;
    *to = (stack_frame){0};
    if (from.kind == LJP_LJP_FRAME_LUA)
      /* The file has the line of the definition, not the current one. */
      status = ljp_tarantool_frame_lua(symbols, p, from.number, 0, &to->frame);
    else if (from.kind == LJP_LJP_FRAME_C)
      status = ljp_tarantool_frame_c(symbols, p, LJP_FRAME_CFUNC, from.number,
                                     &to->frame, &to->start);
    else
      status = ljp_tarantool_frame_builtin(p, from.number, &to->frame);
    if (status)
      return status;
    to->kind = p->frames[to->frame].kind;
  }
  while (ljp_tarantool_host(&walk, &address)) {
    stack_frame *to = &t->host[t->host_count];
    if (t->host_count == LJP_STACK_MAX_FRAMES) {
      *cut = LJP_CUT_DEPTH;
      continue;
    }
    t->host_count++;
    *to = (stack_frame){.kind = LJP_FRAME_HOST};
    if ((status = ljp_tarantool_frame_c(symbols, p, LJP_FRAME_HOST, address,
                                        &to->frame, &to->start)))
      return status;
  }
  return LJP_OK;
}

/* Whether a host frame is a function by whose calls Lua code runs. */
static bool stack_enters_vm(const struct ljp_profile *p, const stack_frame *f)
{
  static const char *const begins[] = {"lj_vm_",    "lj_BC_",    "lj_ff_",
                                       "lua_call",  "lua_pcall", "lua_cpcall",
                                       "lua_resume"};
  struct ljp_str name = ljp_profile_str(p, p->frames[f->frame].name);
  for (size_t i = 0; i < sizeof begins / sizeof *begins; i++) {
    size_t n = strlen(begins[i]);
    if (name.len >= n && memcmp(name.data, begins[i], n) == 0)
      return true;
  }
  return false;
}

static enum ljp_status stack_push(struct ljp_profile *p, uint32_t frame,
                                  uint32_t *node)
{
  if (*node == LJP_NODE_TOO_MANY || p->frames[frame].kind == LJP_FRAME_TOO_MANY)
    *node = LJP_NODE_TOO_MANY;
  else
    return ljp_profile_intern_node(p, *node, frame, node);
  return LJP_OK;
}

/* Adds `count` frames, of which list[-1] is the outermost. */
static enum ljp_status stack_push_all(struct ljp_profile *p,
                                      const stack_frame *list, uint32_t count,
                                      uint32_t *node)
{
  enum ljp_status status = LJP_OK;
  for (uint32_t i = 0; i < count && !status; i++)
    status = stack_push(p, list[-1 - (int64_t)i].frame, node);
  return status;
}

/* Adds a section: host frames, with the guest frames behind the innermost that
** enters the VM. */
static enum ljp_status stack_push_section(struct ljp_profile *p,
                                          const stack_frame *host,
                                          uint32_t host_count,
                                          const stack_frame *guest,
                                          uint32_t guest_count, uint32_t *node)
{
  enum ljp_status status;
  uint32_t before = host_count;
  while (guest_count && before && !stack_enters_vm(p, &host[-(int64_t)before]))
    before--;
  if (!before)
    before = host_count;
  if ((status = stack_push_all(p, host, before, node)) ||
      (status = stack_push_all(p, guest, guest_count, node)))
    return status;
  return stack_push_all(p, host - before, host_count - before, node);
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
static enum ljp_status stack_join(struct ljp_tarantool_stacks *t,
                                  struct ljp_profile *p, uint32_t *node)
{
  uint32_t h = t->host_count, g = t->guest_count, begin = g;
  enum ljp_status status;
  while (g > 0) {
    const stack_frame *called = &t->guest[--g];
    uint32_t same;
    if (called->kind != LJP_FRAME_CFUNC || !called->start ||
        !(same = stack_find_host(t, h, called->start)))
      continue;
    if ((status = stack_push_section(p, t->host + h, h - same, t->guest + begin,
                                     begin - g - 1, node)) ||
        (status = stack_push(p, called->frame, node)))
      return status;
    h = same - 1;
    begin = g;
  }
  return stack_push_section(p, t->host + h, h, t->guest + begin, begin, node);
}

enum ljp_status ljp_tarantool_stack(struct ljp_tarantool_stacks *t,
                                    struct ljp_tarantool_symbols *symbols,
                                    struct ljp_profile *p,
                                    const struct ljp_tarantool_sample *sample,
                                    uint32_t *node, uint8_t *cut)
{
  enum ljp_status status;
  uint32_t frame;
  *cut = LJP_CUT_NONE;
  *node = 0;
  if (sample->state == LJP_LJP_TRACE) {
    struct ljp_tarantool_trace trace = ljp_tarantool_trace(sample);
    status = ljp_tarantool_frame_trace(symbols, p, trace.number, trace.proto,
                                       trace.line, &frame);
    return status ? status : stack_push(p, frame, node);
  }
  if ((status = stack_collect(t, symbols, p, sample, cut)))
    return status;
  if (!t->guest_count && !t->host_count) {
    *node = LJP_NODE_NO_STACK;
    return LJP_OK;
  }
  if (*cut) {
    struct ljp_profile_frame f = {.kind = LJP_FRAME_CUT, .offset = *cut};
    if ((status = ljp_profile_intern_frame(p, &f, &frame)) ||
        (status = stack_push(p, frame, node)))
      return status;
  }
  stack_index_host(t);
  return stack_join(t, p, node);
}
