/*
** Writing definitions: those that the session announces (facts, threads, VMs,
** producers) and those that the writer finds itself (modules). Also the records
** that both need: a body, a kept definition, an event with its time. Writer
** thread only.
** Invariant: a definition whose `epoch` is the current one is in this epoch's
** blocks or in the block that is being built.
*/
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/writer/writer_impl.h"

/* -- Bodies, definitions, events ------------------------------------------- */

struct ljp_body *ljp_writer_body(struct ljp_writer *w)
{
  w->body.len = 0;
  return &w->body;
}

enum ljp_status ljp_writer_put_block(struct ljp_writer *w, uint16_t flags)
{
  return ljp_block_out_write(&w->out, &w->builder, flags, w->now_ns);
}

void ljp_writer_make_room(struct ljp_writer *w)
{
  if (ljp_builder_full(&w->builder))
    ljp_writer_put_block(w, 0);
}

void ljp_writer_note(struct ljp_writer *w, enum ljp_note severity,
                     const char *format, ...)
{
  char text[256];
  va_list args;
  va_start(args, format);
  int n = vsnprintf(text, sizeof text, format, args);
  va_end(args);
  struct ljp_body *b = ljp_writer_timed_body(w, w->now_ns);
  ljp_body_u(b, severity);
  ljp_body_str(b, text, n < 0 ? 0 : (size_t)n, sizeof text - 1);
  ljp_writer_put_event(w, LJP_REC_NOTE);
}

void ljp_writer_put_body(struct ljp_writer *w, enum ljp_record tag)
{
  size_t len = ljp_body_record(&w->body, tag, w->record);
  ljp_builder_define(&w->builder, w->record, len);
}

struct ljp_def *ljp_writer_keep_def(struct ljp_writer *w,
                                    enum ljp_def_class class, uint64_t key,
                                    uint64_t id, enum ljp_record tag)
{
  size_t len = ljp_body_record(&w->body, tag, w->record);
  return ljp_defs_put(&w->defs, class, key, id, w->record, len);
}

void ljp_writer_put_def(struct ljp_writer *w, struct ljp_def *def)
{
  if (!def || def->epoch == w->out.epoch)
    return;
  ljp_assert(def->epoch < w->out.epoch && def->len <= sizeof w->record);
  ljp_writer_make_room(w);
  ljp_builder_define(&w->builder, def->record, def->len);
  def->epoch = w->out.epoch;
}

struct ljp_def *ljp_writer_define(struct ljp_writer *w,
                                  enum ljp_def_class class, uint64_t key,
                                  uint64_t id, enum ljp_record tag)
{
  struct ljp_def *def = ljp_writer_keep_def(w, class, key, id, tag);
  if (def) {
    ljp_writer_put_def(w, def);
  } else {
    ljp_writer_make_room(w);
    ljp_writer_put_body(w, tag);
  }
  return def;
}

struct ljp_body *ljp_writer_timed_body(struct ljp_writer *w, uint64_t time_ns)
{
  ljp_writer_make_room(w);
  struct ljp_body *b = ljp_writer_body(w);
  ljp_body_s(b, (int64_t)(time_ns - ljp_builder_base(&w->builder, time_ns)));
  return b;
}

void ljp_writer_put_event(struct ljp_writer *w, enum ljp_record tag)
{
  ljp_builder_event(&w->builder, tag, w->body.data, w->body.len);
}

/* -- What the session announces -------------------------------------------- */

void ljp_writer_add_info(struct ljp_writer *w, const char *key,
                         const char *value)
{
  struct ljp_body *b = ljp_writer_body(w);
  ljp_body_str(b, key, strlen(key), 256);
  ljp_body_str(b, value, strlen(value), 4096);
  ljp_writer_define(w, LJP_DEF_INFO, w->info_count++, 0, LJP_REC_INFO);
}

void ljp_writer_add_thread(struct ljp_writer *w, uint32_t id, uint32_t tid,
                           const char *name)
{
  struct ljp_body *b = ljp_writer_body(w);
  ljp_body_u(b, id);
  ljp_body_u(b, tid);
  ljp_body_str(b, name, strlen(name), 256);
  ljp_writer_define(w, LJP_DEF_THREAD, id, id, LJP_REC_THREAD);
}

void ljp_writer_add_vm(struct ljp_writer *w, uint32_t id, uint32_t thread,
                       const char *name)
{
  struct ljp_body *b = ljp_writer_body(w);
  ljp_body_u(b, id);
  ljp_body_u(b, thread);
  ljp_body_str(b, name, strlen(name), 256);
  ljp_writer_define(w, LJP_DEF_VM, id, id, LJP_REC_VM);
}

static void define_end(struct ljp_writer *w, enum ljp_def_class class,
                       uint32_t id, enum ljp_record tag)
{
  struct ljp_def *def = ljp_defs_find(&w->defs, class, id);
  if (!def || def->ended)
    return;
  struct ljp_body *b = ljp_writer_timed_body(w, w->now_ns);
  ljp_body_u(b, id);
  ljp_writer_put_event(w, tag);
  def->ended = true;
}

void ljp_writer_put_unsampled(struct ljp_writer *w, uint64_t time_ns,
                              uint32_t thread, enum ljp_producer_kind kind,
                              enum ljp_unsampled why, uint64_t ns)
{
  ljp_writer_put_def(w, ljp_defs_find(&w->defs, LJP_DEF_THREAD, thread));
  struct ljp_body *b = ljp_writer_timed_body(w, time_ns);
  ljp_body_u(b, thread);
  ljp_body_u(b, kind);
  ljp_body_u(b, why);
  ljp_body_u(b, ns);
  ljp_writer_put_event(w, LJP_REC_UNSAMPLED);
}

void ljp_writer_put_cpu_time(struct ljp_writer *w, uint64_t time_ns,
                             uint64_t ns)
{
  ljp_body_u(ljp_writer_timed_body(w, time_ns), ns);
  ljp_writer_put_event(w, LJP_REC_CPU_TIME);
}

void ljp_writer_put_elapsed(struct ljp_writer *w, uint64_t time_ns,
                            uint32_t thread, uint64_t ns)
{
  ljp_writer_put_def(w, ljp_defs_find(&w->defs, LJP_DEF_THREAD, thread));
  struct ljp_body *b = ljp_writer_timed_body(w, time_ns);
  ljp_body_u(b, thread);
  ljp_body_u(b, ns);
  ljp_writer_put_event(w, LJP_REC_ELAPSED);
}

void ljp_writer_end_vm(struct ljp_writer *w, uint32_t id)
{
  define_end(w, LJP_DEF_VM, id, LJP_REC_VM_CLOSE);
  ljp_held_forget_vm(&w->held, id);
}

void ljp_writer_end_thread(struct ljp_writer *w, uint32_t id)
{
  define_end(w, LJP_DEF_THREAD, id, LJP_REC_THREAD_END);
}

void ljp_writer_add_producer(struct ljp_writer *w, struct ljp_producer *p,
                             uint64_t interval_ns)
{
  struct ljp_body *b = ljp_writer_body(w);
  ljp_body_u(b, p->id);
  ljp_body_u(b, p->kind);
  ljp_body_u(b, p->thread);
  ljp_body_u(b, interval_ns);
  ljp_body_u(b, p->timer);
  ljp_body_u(b, (uint64_t)p->refused);
  ljp_writer_define(w, LJP_DEF_PRODUCER, p->id, p->id, LJP_REC_PRODUCER);
  w->held.every |= p->kind == LJP_PRODUCER_MEMORY && !interval_ns;
  struct ljp_source *source = calloc(1, sizeof *source);
  if (!source) {
    /* Nobody can drain its ring. An inactive producer is better than one that
    ** blocks on a full ring. */
    atomic_store_explicit(&p->active, false, memory_order_relaxed);
    ljp_writer_note(w, LJP_NOTE_ERROR,
                    "out of memory: a producer is not recorded");
    return;
  }
  source->producer = p;
  source->id = p->id;
  source->end = ljp_ring_tail(&p->ring);
  source->next = w->sources;
  w->sources = source;
}

/* -- Modules --------------------------------------------------------------- */

static void define_module(struct ljp_writer *w, const struct ljp_module *m)
{
  struct ljp_body *b = ljp_writer_body(w);
  ljp_body_u(b, m->id);
  ljp_body_u(b, m->bias);
  ljp_body_u(b, m->start);
  ljp_body_u(b, m->end - m->start);
  ljp_body_u(b, m->flags);
  ljp_body_str(b, (const char *)m->build_id, m->build_id_len,
               LJP_BUILD_ID_MAX_BYTES);
  ljp_body_str(b, m->path, strlen(m->path), 4096);
  ljp_writer_define(w, LJP_DEF_MODULE, m->id, m->id, LJP_REC_MODULE);
}

void ljp_writer_update_modules(struct ljp_writer *w)
{
  if (!w->options.put_process)
    ljp_modules_look(&w->modules, w->now_ns);
  if (w->modules.generation == w->modules_announced)
    return;
  w->modules_announced = w->modules.generation;
  for (size_t i = 0; i < w->modules.count; i++) {
    const struct ljp_module *m = &w->modules.list[i];
    struct ljp_def *def = ljp_defs_find(&w->defs, LJP_DEF_MODULE, m->id);
    if (!m->gone_ns && !def) {
      define_module(w, m);
    } else if (m->gone_ns && def && !def->ended) {
      ljp_writer_put_def(w, def);
      struct ljp_body *b = ljp_writer_timed_body(w, w->now_ns);
      ljp_body_u(b, m->id);
      ljp_writer_put_event(w, LJP_REC_MODULE_GONE);
      def->ended = true;
    }
  }
  if (w->options.describe.modules_changed)
    w->options.describe.modules_changed(w->options.describe.ctx);
}
