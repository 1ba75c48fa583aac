/*
** Prints `ljprof report --jit --json` (see doc/reference/json.md).
*/
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tools/report/jit.h"

static const char *const jit_json_keys[] = {
#define LJP_X(name, key, text) key,
    LJP_JIT_LIST(LJP_X)
#undef LJP_X
};

static void jit_json_string(const struct ljp_report *r, const char *key,
                            uint32_t string)
{
  ljp_print_format(r->out, ",\"%s\":", key);
  ljp_print_json(r->out, ljp_profile_str(r->p, string));
}

static void jit_json_kinds(const struct ljp_report *r,
                           const struct ljp_value kinds[LJP_JIT_KINDS])
{
  for (unsigned i = 0; i < LJP_JIT_KINDS; i++) {
    ljp_print_str(r->out, i ? "," : "");
    ljp_json_value(r, jit_json_keys[i], &kinds[i]);
  }
}

static void jit_json_place(const struct ljp_report *r,
                           const struct ljp_jit_place *place)
{
  struct ljp_print *out = r->out;
  ljp_print_format(out, "{\"count\":%" PRIu32, place->count);
  jit_json_string(r, "function", place->name);
  jit_json_string(r, "file", place->file);
  ljp_print_format(out, ",\"first_line\":%" PRIu32 ",\"line\":%" PRIu32,
                   place->first_line, place->line);
  if (place->parent)
    ljp_print_format(out, ",\"parent\":%" PRIu64 ",\"parent_exit\":%" PRIu32,
                     r->p->traces[place->parent].id, place->parent_exit);
  if (place->at) {
    const struct ljp_profile_frame *f = &r->p->frames[place->at];
    jit_json_string(r, "at_function", f->name);
    jit_json_string(r, "at_file", f->file);
    ljp_print_format(out, ",\"at_line\":%" PRIu32, f->line);
  }
  ljp_print_str(out, "}");
}

static bool jit_json_functions(const struct ljp_report *r,
                               const struct ljp_jit *jit)
{
  uint32_t count, *order = ljp_jit_functions(r, jit, &count);
  char name[LJP_JIT_NAME_BYTES];
  if (!order)
    return false;
  for (uint32_t i = 0; i < count; i++) {
    struct ljp_value all = ljp_jit_sum(jit->functions[order[i]]);
    ljp_jit_function_name(r, order[i], name);
    ljp_print_str(r->out, i ? ",\n{\"name\":" : "\n{\"name\":");
    ljp_print_json(r->out, ljp_str(name, strlen(name)));
    ljp_print_str(r->out, ",");
    ljp_json_value(r, "self", &all);
    ljp_print_str(r->out, ",");
    jit_json_kinds(r, jit->functions[order[i]]);
    ljp_print_str(r->out, "}");
  }
  free(order);
  return true;
}

struct json_traces {
  const struct ljp_report *r;
  const struct ljp_jit *jit;
  bool any;
};

static void jit_json_trace(void *ctx, uint32_t at, unsigned depth)
{
  struct json_traces *j = ctx;
  const struct ljp_report *r = j->r;
  const struct ljp_profile_trace *t = &r->p->traces[at];
  const struct ljp_jit_trace *mine = &j->jit->traces[at];
  struct ljp_print *out = r->out;
  ljp_print_format(out,
                   "%s\n{\"trace\":%" PRIu32 ",\"id\":%" PRIu64
                   ",\"vm\":%" PRIu64 ",\"known\":%s,\"depth\":%u",
                   j->any ? "," : "", t->number, t->id, r->p->vms[t->vm].id,
                   t->known ? "true" : "false", depth);
  ljp_print_format(out,
                   ",\"parent\":%" PRIu64 ",\"parent_exit\":%" PRIu32
                   ",\"root\":%" PRIu64 ",\"link\":%" PRIu64,
                   t->parent ? r->p->traces[t->parent].id : 0, t->parent_exit,
                   t->root ? r->p->traces[t->root].id : 0,
                   t->link ? r->p->traces[t->link].id : 0);
  jit_json_string(r, "link_type", t->link_type);
  jit_json_string(r, "function", t->name);
  jit_json_string(r, "file", t->file);
  ljp_print_format(out,
                   ",\"first_line\":%" PRIu32 ",\"line\":%" PRIu32
                   ",\"ir_count\":%" PRIu32 ",\"code_bytes\":%" PRIu64
                   ",\"exits\":%" PRIu32 ",\"marks\":%" PRIu32
                   ",\"marks_cut\":%" PRIu32,
                   t->first_line, t->line, t->ir_count, t->code_bytes,
                   t->snapshots, t->marks, t->marks_cut);
  ljp_print_format(
      out, ",\"truncated\":%s,\"given_up\":%" PRIu32 ",\"state\":\"%s\",",
      t->truncated ? "true" : "false", mine->given_up, ljp_jit_fate(mine));
  ljp_json_value(r, "self", &mine->self);
  ljp_print_str(out, ",");
  ljp_json_value(r, "exit", &mine->exit);
  ljp_print_str(out, ",");
  ljp_json_value(r, "tree", &mine->tree);
  ljp_print_str(out, "}");
  j->any = true;
}

bool ljp_jit_json(const struct ljp_report *r, const struct ljp_jit *jit)
{
  static const char *const names[] = {
      [LJP_TRACE_START] = "started",      [LJP_TRACE_STOP] = "compiled",
      [LJP_TRACE_ABORT] = "given_up",     [LJP_TRACE_FLUSH] = "flushes",
      [LJP_TRACE_FREE] = "freed",         [LJP_TRACE_BLACKLIST] = "blacklisted",
      [LJP_TRACE_EXISTS] = "there_before"};
  struct ljp_print *out = r->out;
  ljp_report_json_head(r, "jit");
  ljp_print_str(out, ",\"time\":{");
  jit_json_kinds(r, jit->kinds);
  ljp_print_format(out, "},\"has_events\":%s,\"events\":{",
                   jit->has_events ? "true" : "false");
  for (unsigned i = 1; i < sizeof names / sizeof *names; i++)
    ljp_print_format(out, "%s\"%s\":%" PRIu64, i > 1 ? "," : "", names[i],
                     jit->events[i]);
  ljp_print_str(out, "},\"functions\":[");
  if (!jit_json_functions(r, jit))
    return false;
  ljp_print_str(out, "],\"given_up\":[");
  for (uint32_t i = 0; i < jit->reason_count; i++) {
    const struct ljp_jit_reason *reason = &jit->reasons[i];
    ljp_print_str(out, i ? ",\n{\"reason\":" : "\n{\"reason\":");
    ljp_print_json(out, ljp_profile_str(r->p, reason->reason));
    ljp_print_format(out, ",\"count\":%" PRIu32 ",", reason->count);
    ljp_json_value(r, "lost", &reason->lost);
    ljp_print_str(out, ",\"places\":[");
    for (uint32_t k = 0; k < reason->places; k++) {
      ljp_print_str(out, k ? "," : "");
      jit_json_place(r, &jit->places[reason->first + k]);
    }
    ljp_print_str(out, "]}");
  }
  ljp_print_str(out, "],\"blacklisted\":[");
  for (uint32_t i = 0; i < jit->blacklisted_count; i++) {
    ljp_print_str(out, i ? ",\n" : "\n");
    jit_json_place(r, &jit->blacklisted[i]);
  }
  ljp_print_str(out, "],\"rows\":[");
  struct json_traces traces = {.r = r, .jit = jit};
  ljp_jit_each_trace(r, jit, jit_json_trace, &traces);
  ljp_report_json_end(r);
  return true;
}
