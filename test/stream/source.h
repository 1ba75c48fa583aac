/*
** A producer without a session, and a describe() with known answers, for tests,
** benchmarks and golden streams that drive the writer themselves.
*/
#ifndef LJP_TEST_SOURCE_H
#define LJP_TEST_SOURCE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/base/describe.h"
#include "src/push/producer_state.h"

static struct ljp_wake source_wake;

static inline struct ljp_producer *source_new(uint32_t id, uint32_t thread,
                                              enum ljp_producer_kind kind,
                                              size_t ring_bytes)
{
  struct ljp_producer *p = aligned_alloc(64, (sizeof *p + 63) & ~(size_t)63);
  memset(p, 0, sizeof *p);
  ljp_ring_init(&p->ring, aligned_alloc(64, ring_bytes), ring_bytes);
  p->half = ring_bytes / 2;
  p->wake = &source_wake;
  p->pid = getpid();
  p->id = id;
  p->thread = thread;
  p->kind = kind;
  atomic_store(&p->active, true);
  return p;
}

static inline void source_free(struct ljp_producer *p)
{
  free(p->ring.data);
  free(p);
}

static inline bool known_proto(void *ctx, uint32_t ref,
                               struct ljp_proto_info *out)
{
  (void)ctx;
  out->id = ref;
  out->flags = LJP_PROTO_UNKNOWN;
  if (ref % 1000 == 999) /* Some are no longer known. */
    return true;
  out->first_line = ref * 10;
  out->last_line = ref * 10 + 9;
  out->flags = ref == 1 ? LJP_PROTO_MAIN | LJP_PROTO_VARARG : 0;
  snprintf(out->chunk, sizeof out->chunk, "@app/file%u.lua", ref % 7);
  snprintf(out->name, sizeof out->name, "f%u", ref);
  return true;
}

static inline bool known_trace(void *ctx, uint64_t id,
                               struct ljp_trace_info *out)
{
  (void)ctx;
  out->vm = 1;
  out->number = (uint32_t)(id % 100);
  out->parent = id > 1 ? id - 1 : 0;
  out->parent_exit = id > 1 ? 3 : 0;
  out->root = 1;
  out->link = id;
  out->place = ljp_frame_lua(LJP_FRAME_LUA, 0, 5, 53);
  out->code_address = 0x7f0000001000u + id * 512;
  out->code_bytes = 487;
  snprintf(out->link_type, sizeof out->link_type, "loop");
  out->ir_count = 101;
  out->snapshots = 11;
  out->marks = 23;
  out->marks_cut = 7;
  out->flags = LJP_TRACE_TRUNCATED;
  return true;
}

static inline bool known_builtin(void *ctx, uint64_t ffid,
                                 char name[LJP_NAME_BYTES])
{
  (void)ctx;
  snprintf(name, LJP_NAME_BYTES, "lib.fn%u", (unsigned)ffid);
  return true;
}

static inline bool known_labels(void *ctx, uint64_t id,
                                char text[LJP_NAME_BYTES], size_t *bytes)
{
  (void)ctx;
  int n = snprintf(text, LJP_NAME_BYTES, "route%c/%u%ctenant%cx", 0,
                   (unsigned)id, 0, 0);
  *bytes = (size_t)n + 1;
  return true;
}

static inline struct ljp_describe known(void)
{
  return (struct ljp_describe){.proto = known_proto,
                               .trace = known_trace,
                               .builtin = known_builtin,
                               .labels = known_labels};
}

#endif
