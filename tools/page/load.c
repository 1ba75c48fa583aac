/*
** Profile -> page. The profile tells places apart by line, address and
** exactness; the page shows functions, and lines on request.
*/
#include "tools/page/load.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "parsers/profile/frame_name.h"
#include "parsers/stream/names.h"

struct load {
  struct ljp_page *page;
  const struct ljp_profile *p;
  struct ljp_page_stacks stacks;
  uint32_t *contexts;
};

static enum ljp_page_kind kind_of(const struct ljp_profile_frame *f)
{
  switch (f->kind) {
  case LJP_FRAME_LUA:
    return LJP_PAGE_LUA;
  case LJP_FRAME_LUA_INLINED:
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
  default:
    return LJP_PAGE_CUT;
  }
}

static bool is_lua(const struct ljp_profile_frame *f)
{
  return f->kind == LJP_FRAME_LUA || f->kind == LJP_FRAME_LUA_INLINED ||
         f->kind == LJP_FRAME_TRACE;
}

static uint32_t frame(struct ljp_page_stacks *l, uint32_t number,
                      enum ljp_page_kind kind)
{
  char name[LJP_FRAME_NAME_BYTES];
  const struct ljp_profile_frame *f = &l->p->frames[number];
  size_t len = ljp_frame_function_text(l->p, number, name, sizeof name);
  struct ljp_page_frame to = {
      .name = ljp_str(name, len < sizeof name ? len : sizeof name - 1),
      .file = ljp_profile_str(l->p, f->file),
      .line = is_lua(f) ? f->first_line : 0,
      .kind = (uint8_t)kind};
  if (is_lua(f) && !f->file && !(f->flags & LJP_PROFILE_UNKNOWN))
    to.file = ljp_str("?", 1);
  if (f->module)
    to.module =
        ljp_base_name(ljp_profile_str(l->p, l->p->modules[f->module].path));
  return ljp_page_frame(l->page, &to);
}

static void nodes(struct ljp_page_stacks *l)
{
  const struct ljp_profile *p = l->p;
  for (uint32_t i = 1; i < p->frame_count; i++)
    l->frames[i] = frame(l, i, kind_of(&p->frames[i]));
  for (uint32_t i = 1; i < p->node_count; i++) {
    const struct ljp_profile_node *n = &p->nodes[i];
    l->nodes[i] =
        ljp_page_node(l->page, l->nodes[n->parent], l->frames[n->frame],
                      l->lines ? p->frames[n->frame].line : 0);
  }
}

/*
** The collector is machine code that the VM runs on its own account: above the
** innermost frame of the program all host frames are its, if the sample was
** taken in that state. Without such a frame (a host that collects by itself)
** those of the innermost frame's module are.
*/
static uint32_t gc_node(struct ljp_page_stacks *l, uint32_t node)
{
  const struct ljp_profile *p = l->p;
  uint32_t path[2048], many = 0, own = 0, at = node;
  uint32_t module = p->frames[p->nodes[node].frame].module;
  if (l->gc_nodes[node])
    return l->gc_nodes[node];
  while (at && many < 2048 &&
         (p->frames[p->nodes[at].frame].kind == LJP_FRAME_HOST ||
          p->frames[p->nodes[at].frame].kind == LJP_FRAME_VM)) {
    path[many++] = at;
    if (own + 1 == many && p->frames[p->nodes[at].frame].module == module)
      own++;
    at = p->nodes[at].parent;
  }
  if (!at || many == 2048) { /* No frame of the program. */
    many = own;
    at = many ? p->nodes[path[many - 1]].parent : node;
  }
  uint32_t to = l->nodes[at];
  while (many--) {
    uint32_t number = p->nodes[path[many]].frame;
    to = ljp_page_node(l->page, to, frame(l, number, LJP_PAGE_GC),
                       l->lines ? p->frames[number].line : 0);
  }
  return l->gc_nodes[node] = to;
}

enum ljp_status ljp_page_stacks_init(struct ljp_page_stacks *stacks,
                                     struct ljp_page *page,
                                     const struct ljp_profile *profile,
                                     bool lines)
{
  *stacks =
      (struct ljp_page_stacks){.page = page, .p = profile, .lines = lines};
  stacks->frames = calloc(profile->frame_count + 1, sizeof *stacks->frames);
  stacks->nodes = calloc(profile->node_count + 1, sizeof *stacks->nodes);
  stacks->gc_nodes = calloc(profile->node_count + 1, sizeof *stacks->gc_nodes);
  if (!stacks->frames || !stacks->nodes || !stacks->gc_nodes)
    return page->failed = LJP_ERR_MEM;
  nodes(stacks);
  return page->failed;
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
             ? gc_node(stacks, row->node)
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

static struct ljp_str thread_name(struct load *l, uint32_t number)
{
  const struct ljp_profile_thread *t = &l->p->threads[number];
  struct ljp_str name = ljp_profile_str(l->p, t->name);
  if (!number)
    return ljp_str("unknown", 7);
  return ljp_page_format(l->page, "%.*s (%" PRIu64 ")", (int)name.len,
                         name.len ? name.data : "", t->tid);
}

static struct ljp_str vm_name(struct load *l, uint32_t number)
{
  if (!number)
    return ljp_str("none", 4);
  struct ljp_str name = ljp_profile_str(l->p, l->p->vms[number].name);
  return name.len
             ? name
             : ljp_page_format(l->page, "VM %" PRIu64, l->p->vms[number].id);
}

static void contexts(struct load *l)
{
  for (uint32_t i = 0; i < l->p->context_count; i++) {
    const struct ljp_profile_context *c = &l->p->contexts[i];
    const char *state = ljp_name_vmstate(c->state);
    struct ljp_page_context to = {
        .thread = thread_name(l, c->thread),
        .vm = vm_name(l, c->vm),
        .state = state ? ljp_str(state, strlen(state))
                       : ljp_page_format(l->page, "state %u", c->state)};
    l->contexts[i] = ljp_page_context(l->page, &to);
  }
}

static void points(struct load *l)
{
  const struct ljp_profile *p = l->p;
  for (uint32_t i = 0; i < p->point_count; i++) {
    const struct ljp_profile_point *at = &p->points[i];
    const struct ljp_profile_row *row = &p->rows[at->row];
    ljp_page_row(l->page,
                 at->live ? LJP_PAGE_VIEW_LIVE
                          : ljp_page_stacks_view(&l->stacks, row),
                 at->tick * p->tick_ns, ljp_page_stacks_node(&l->stacks, row),
                 l->contexts[row->context], at->count, at->weight);
  }
}

/* What the leak report lists: live, and survived collections. */
static void leaks(struct load *l)
{
  for (uint32_t i = 0; i < l->p->row_count; i++) {
    const struct ljp_profile_row *row = &l->p->rows[i];
    const struct ljp_profile_memory *m = &l->p->memory[row->memory];
    if (row->memory && (m->old_objects || m->old_bytes))
      ljp_page_row(l->page, LJP_PAGE_VIEW_LEAK, 0, l->stacks.nodes[row->node],
                   l->contexts[row->context],
                   (m->old_objects + LJP_OBJECT / 2) / LJP_OBJECT,
                   m->old_bytes);
  }
}

static void gc(struct load *l)
{
  const struct ljp_profile *p = l->p;
  struct ljp_profile_gc *last = calloc(p->vm_count + 1, sizeof *last);
  if (!last) {
    l->page->failed = LJP_ERR_MEM;
    return;
  }
  for (uint32_t i = 0; i < p->gc_count; i++) {
    const struct ljp_profile_gc *g = &p->gc[i];
    struct ljp_profile_gc *before = &last[g->vm];
    if (before->time_ns && before->phase != LJP_GC_PAUSE)
      ljp_page_gc(l->page, before->time_ns, g->time_ns - before->time_ns,
                  before->phase);
    ljp_page_point(l->page, vm_name(l, g->vm), g->time_ns, g->heap_bytes);
    *before = *g;
  }
  free(last);
  for (uint32_t i = 0; i < p->mark_count; i++)
    ljp_page_mark(l->page, p->marks[i].time_ns,
                  ljp_profile_str(p, p->marks[i].text));
}

static void facts(struct load *l, const char *file)
{
  const struct ljp_profile *p = l->p;
  struct ljp_page *page = l->page;
  struct ljp_str command = ljp_profile_str(p, p->command_line);
  const char *base = strrchr(file, '/') ? strrchr(file, '/') + 1 : file;
  char shown[160], when[40] = "";
  time_t seconds = (time_t)(p->origin_wall_ns / 1000000000);
  struct tm tm;
  uint32_t n = 0;
  page->title =
      ljp_page_text(page, strcmp(file, "-") == 0 ? ljp_str("standard input", 14)
                                                 : ljp_str(base, strlen(base)));
  for (; n < command.len && n < sizeof shown - 4; n++)
    shown[n] = command.data[n] ? command.data[n] : ' ';
  while (n && shown[n - 1] == ' ')
    n--;
  bool cut = n && n < command.len - 1;
  if (p->origin_wall_ns && gmtime_r(&seconds, &tm))
    strftime(when, sizeof when, "%Y-%m-%d %H:%M:%S UTC", &tm);
  page->subtitle =
      ljp_page_format(page, "%.*s%s%s%s", (int)n, shown, cut ? "..." : "",
                      n && *when ? " \xc2\xb7 " : "", when);
  ljp_page_fact(page, "Program", ljp_profile_str(p, p->executable));
  ljp_page_fact(page, "Process", ljp_page_format(page, "%" PRIu64, p->pid));
  for (uint32_t i = 0; ljp_profile_notice(p, i); i++)
    ljp_page_notice(
        page, false,
        ljp_str(ljp_profile_notice(p, i), strlen(ljp_profile_notice(p, i))));
}

enum ljp_status ljp_page_load(struct ljp_page *page,
                              const struct ljp_profile *profile,
                              const char *file)
{
  struct load l = {.page = page, .p = profile};
  l.contexts = calloc(profile->context_count + 1, sizeof *l.contexts);
  if (!l.contexts)
    page->failed = LJP_ERR_MEM;
  else if (!ljp_page_stacks_init(&l.stacks, page, profile, true)) {
    page->end_ns = profile->end_ns;
    contexts(&l);
    points(&l);
    leaks(&l);
    gc(&l);
    facts(&l, file);
  }
  ljp_page_stacks_fini(&l.stacks);
  free(l.contexts);
  return page->failed;
}
