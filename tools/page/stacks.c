/*
** Adds the stacks of a profile to a page. The profile tells places apart by
** line, address and exactness; the page has one frame for each function, and
** one node for each line of it on request.
*/
#include "tools/page/stacks.h"

#include <stdlib.h>

#include "parsers/profile/frame_name.h"

static enum ljp_page_kind stacks_kind(const struct ljp_page_stacks *l,
                                      const struct ljp_profile_frame *f)
{
  switch (f->kind) {
  case LJP_FRAME_LUA:
    return LJP_PAGE_LUA;
  case LJP_FRAME_LUA_INLINED:
    if (l->compared)
      return LJP_PAGE_LUA;
    return f->flags & LJP_PROFILE_INLINED ? LJP_PAGE_INLINED : LJP_PAGE_JIT;
  case LJP_FRAME_TRACE:
    return LJP_PAGE_JIT;
  case LJP_FRAME_BUILTIN:
    return LJP_PAGE_BUILTIN;
  case LJP_FRAME_CFUNC:
    return LJP_PAGE_C;
  case LJP_FRAME_HOST:
    return LJP_PAGE_NATIVE;
  case LJP_FRAME_VM:
    return LJP_PAGE_VM;
  case LJP_FRAME_KERNEL:
    return LJP_PAGE_KERNEL;
  case LJP_FRAME_PROFILER:
    return LJP_PAGE_PROFILER;
  case LJP_FRAME_COLLECTOR:
    return LJP_PAGE_GC;
  case LJP_FRAME_OUTSIDE:
    return LJP_PAGE_NATIVE;
  case LJP_FRAME_LABELS:
    return LJP_PAGE_GROUP;
  default:
    return LJP_PAGE_CUT;
  }
}

static bool stacks_is_lua(const struct ljp_profile_frame *f)
{
  return f->kind == LJP_FRAME_LUA || f->kind == LJP_FRAME_LUA_INLINED ||
         f->kind == LJP_FRAME_TRACE;
}

static uint32_t stacks_frame(struct ljp_page_stacks *l, uint32_t number,
                             enum ljp_page_kind kind)
{
  char name[LJP_FRAME_NAME_BYTES];
  const struct ljp_profile *p = l->p;
  const struct ljp_profile_frame *f = &p->frames[number];
  if (l->same && l->same[f->function]) {
    number = l->same[f->function];
    p = l->after;
    f = &p->frames[number];
  }
  size_t len = ljp_frame_function_text(p, number, name, sizeof name);
  struct ljp_page_frame to = {
      .name = ljp_str(name, len < sizeof name ? len : sizeof name - 1),
      .file = ljp_profile_str(p, f->file),
      .line = stacks_is_lua(f) ? f->first_line : 0,
      .kind = (uint8_t)kind};
  if (stacks_is_lua(f) && !f->file && !(f->flags & LJP_PROFILE_UNKNOWN))
    to.file = ljp_str("?", 1);
  if (f->module)
    to.module = ljp_base_name(ljp_profile_str(p, p->modules[f->module].path));
  return ljp_page_frame(l->page, &to);
}

static void stacks_add_nodes(struct ljp_page_stacks *l)
{
  const struct ljp_profile *p = l->p;
  for (uint32_t i = 1; i < p->frame_count; i++)
    l->frames[i] = stacks_frame(l, i, stacks_kind(l, &p->frames[i]));
  for (uint32_t i = 1; i < p->node_count; i++) {
    const struct ljp_profile_node *n = &p->nodes[i];
    if (l->compared && p->frames[n->frame].kind == LJP_FRAME_TRACE &&
        l->nodes[n->parent]) {
      l->nodes[i] = l->nodes[n->parent];
      continue;
    }
    l->nodes[i] =
        ljp_page_node(l->page, l->nodes[n->parent], l->frames[n->frame],
                      l->lines ? p->frames[n->frame].line : 0);
  }
}

static bool stacks_is_machine(unsigned kind)
{
  return kind == LJP_FRAME_HOST || kind == LJP_FRAME_VM ||
         kind == LJP_FRAME_KERNEL;
}

static bool stacks_is_program(unsigned kind)
{
  return kind == LJP_FRAME_LUA || kind == LJP_FRAME_LUA_INLINED ||
         kind == LJP_FRAME_BUILTIN || kind == LJP_FRAME_CFUNC ||
         kind == LJP_FRAME_TRACE;
}

/*
** The node of a sample taken while the collector ran. The collector is machine
** code that the VM runs on its own account: all host frames above the innermost
** frame of the program belong to it. If no frame of the program is found (a
** host that collects by itself), the frames of the innermost module belong to
** it. If there are no host frames, it has a frame without an address.
*/
static uint32_t stacks_gc_node(struct ljp_page_stacks *l, uint32_t node)
{
  const struct ljp_profile *p = l->p;
  uint32_t path[2048], many = 0, own = 0, at = node;
  uint32_t module = p->frames[p->nodes[node].frame].module;
  if (l->gc_nodes[node])
    return l->gc_nodes[node];
  while (at && many < 2048 &&
         stacks_is_machine(p->frames[p->nodes[at].frame].kind)) {
    path[many++] = at;
    if (own + 1 == many && p->frames[p->nodes[at].frame].module == module)
      own++;
    at = p->nodes[at].parent;
  }
  if (!many && stacks_is_program(p->frames[p->nodes[node].frame].kind)) {
    static const char text[] = "[garbage collector]";
    struct ljp_page_frame gc = {.name = ljp_str(text, sizeof text - 1),
                                .kind = LJP_PAGE_GC};
    return l->gc_nodes[node] = ljp_page_node(l->page, l->nodes[node],
                                             ljp_page_frame(l->page, &gc), 0);
  }
  if (l->compared) /* The same functions also run for others. */
    return l->gc_nodes[node] = l->nodes[node];
  if (!at || many == 2048) { /* No frame of the program was found. */
    many = own;
    at = many ? p->nodes[path[many - 1]].parent : node;
  }
  uint32_t to = l->nodes[at];
  while (many--) {
    uint32_t number = p->nodes[path[many]].frame;
    to = ljp_page_node(l->page, to, stacks_frame(l, number, LJP_PAGE_GC),
                       l->lines ? p->frames[number].line : 0);
  }
  return l->gc_nodes[node] = to;
}

static enum ljp_status stacks_make(struct ljp_page_stacks *stacks)
{
  stacks->frames = calloc(stacks->p->frame_count + 1, sizeof *stacks->frames);
  stacks->nodes = calloc(stacks->p->node_count + 1, sizeof *stacks->nodes);
  stacks->gc_nodes =
      calloc(stacks->p->node_count + 1, sizeof *stacks->gc_nodes);
  if (!stacks->frames || !stacks->nodes || !stacks->gc_nodes)
    return stacks->page->failed = LJP_ERR_MEM;
  stacks_add_nodes(stacks);
  return stacks->page->failed;
}

enum ljp_status ljp_page_stacks_init(struct ljp_page_stacks *stacks,
                                     struct ljp_page *page,
                                     const struct ljp_profile *profile,
                                     bool lines)
{
  *stacks =
      (struct ljp_page_stacks){.page = page, .p = profile, .lines = lines};
  return stacks_make(stacks);
}

enum ljp_status ljp_page_stacks_init_compared(struct ljp_page_stacks *stacks,
                                              struct ljp_page *page,
                                              const struct ljp_profile *profile,
                                              const uint32_t *same,
                                              const struct ljp_profile *after)
{
  *stacks = (struct ljp_page_stacks){.page = page,
                                     .p = profile,
                                     .compared = true,
                                     .same = same,
                                     .after = after};
  return stacks_make(stacks);
}

void ljp_page_stacks_fini(struct ljp_page_stacks *stacks)
{
  free(stacks->frames);
  free(stacks->nodes);
  free(stacks->gc_nodes);
}

uint32_t ljp_page_stacks_node(struct ljp_page_stacks *stacks,
                              const struct ljp_profile_row *row)
{
  const struct ljp_profile_context *c = &stacks->p->contexts[row->context];
  return row->node && c->state == LJP_VMSTATE_GC &&
                 c->kind != LJP_PRODUCER_MEMORY
             ? stacks_gc_node(stacks, row->node)
             : stacks->nodes[row->node];
}

enum ljp_page_view ljp_page_stacks_view(const struct ljp_page_stacks *stacks,
                                        const struct ljp_profile_row *row)
{
  unsigned kind = stacks->p->contexts[row->context].kind;
  return kind == LJP_PRODUCER_WALL     ? LJP_PAGE_VIEW_WALL
         : kind == LJP_PRODUCER_MEMORY ? LJP_PAGE_VIEW_ALLOC
                                       : LJP_PAGE_VIEW_CPU;
}
