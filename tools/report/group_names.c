/*
** Writes the name of a group, for text and JSON alike.
*/
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "parsers/profile/frame_name.h"
#include "parsers/stream/names.h"
#include "tools/report/groups.h"

static void group_copy_name(char *out, size_t room, struct ljp_str s)
{
  size_t n = s.len < room - 1 ? s.len : room - 1;
  if (n)
    memcpy(out, s.data, n);
  out[n] = '\0';
}

static void group_numbered_name(const struct ljp_profile *p, uint32_t name,
                                uint64_t id, const char *what, char *out,
                                size_t room)
{
  struct ljp_str s = ljp_profile_name(p, name, what, id);
  if (!id)
    snprintf(out, room, "(unknown %s)", what);
  else if (s.len)
    snprintf(out, room, "%s %" PRIu64 " (%.*s)", what, id, (int)s.len, s.data);
  else
    snprintf(out, room, "%s %" PRIu64, what, id);
}

/* The name of a group of rows that have a number in common. */
static void group_number_name(const struct ljp_report *r, uint32_t number,
                              char *out, size_t room)
{
  const char *text = r->by == LJP_BY_STATE ? ljp_profile_state_text(number)
                                           : ljp_name_mem_type(number);
  if (r->by == LJP_BY_LABEL && number)
    group_copy_name(out, room, ljp_profile_str(r->p, number));
  else if (r->by == LJP_BY_LABEL)
    snprintf(out, room, "(none)");
  else if (!text)
    snprintf(out, room, "%s %u", r->by == LJP_BY_STATE ? "state" : "type",
             number);
  else if (r->by == LJP_BY_TYPE && !number)
    snprintf(out, room, "(type not known)");
  else
    snprintf(out, room, "%s", text);
}

void ljp_group_name(const struct ljp_report *r, const struct ljp_groups *groups,
                    uint32_t group, char *out, size_t room)
{
  const struct ljp_profile *p = r->p;
  uint32_t first = groups->first[group];
  const struct ljp_profile_frame *f;
  switch (r->by) {
  case LJP_BY_FUNCTION:
    ljp_frame_name(p, first, r->lines ? LJP_NAME_LINES | LJP_NAME_C_LINES : 0,
                   out, room);
    return;
  case LJP_BY_LINE:
    f = &p->frames[first];
    if (f->file && f->line && (r->c_lines || !ljp_group_is_code(f->kind)))
      ljp_frame_place_text(p, first, LJP_NAME_LINES | LJP_NAME_C_LINES, out,
                           room);
    else
      ljp_frame_name(p, first, 0, out, room);
    return;
  case LJP_BY_FILE:
    f = &p->frames[first];
    if (f->file && (r->c_lines || !ljp_group_is_code(f->kind)))
      group_copy_name(out, room, ljp_profile_str(p, f->file));
    else
      ljp_frame_name(p, first, 0, out, room);
    return;
  case LJP_BY_MODULE:
    f = &p->frames[first];
    if (ljp_group_is_code(f->kind) && f->module)
      group_copy_name(out, room,
                      ljp_profile_str(p, p->modules[f->module].path));
    else if (ljp_group_is_lua(f->kind) || f->kind == LJP_FRAME_TRACE)
      snprintf(out, room, "Lua");
    else if (f->kind == LJP_FRAME_BUILTIN)
      snprintf(out, room, "builtins");
    else
      ljp_frame_name(p, first, 0, out, room);
    return;
  case LJP_BY_KIND:
    snprintf(out, room, "%s", ljp_profile_kind_text(p->frames[first].kind));
    return;
  case LJP_BY_TRACE:
    if (first)
      ljp_frame_name(p, first, 0, out, room);
    else
      snprintf(out, room, "(in no known trace)");
    return;
  case LJP_BY_STACK:
    ljp_frame_name(p, p->nodes[first].frame, r->lines ? LJP_NAME_LINES : 0, out,
                   room);
    return;
  case LJP_BY_THREAD:
    group_numbered_name(p, p->threads[first].name, p->threads[first].id,
                        "thread", out, room);
    return;
  case LJP_BY_VM:
    if (first == p->vm_count) { /* The key of host code: see group_row_key(). */
      snprintf(out, room, "(no VM)");
      return;
    }
    group_numbered_name(p, p->vms[first].name, p->vms[first].id, "VM", out,
                        room);
    return;
  case LJP_BY_STATE:
  case LJP_BY_TYPE:
  case LJP_BY_LABEL:
    group_number_name(r, first, out, room);
    return;
  }
}
