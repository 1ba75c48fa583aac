/*
** A writer that a test drives by hand: one producer, and a callback as sink
** whose bytes are kept.
*/
#ifndef LJP_TEST_HAND_H
#define LJP_TEST_HAND_H

#include "src/writer/writer_impl.h"
#include "test/stream/fixed_process.h"
#include "test/stream/mini_reader.h"
#include "test/stream/source.h"

static struct {
  uint8_t data[1 << 20];
  size_t len;
  size_t refuse_at; /* Refuse, once, a block that begins beyond it. */
} hand_out;

static inline size_t hand_take(const void **data, size_t len, void *ctx)
{
  (void)ctx;
  if (hand_out.refuse_at && hand_out.len > hand_out.refuse_at) {
    hand_out.refuse_at = 0;
    return 0;
  }
  assert_true(hand_out.len + len <= sizeof hand_out.data);
  memcpy(hand_out.data + hand_out.len, *data, len);
  hand_out.len += len;
  return len;
}

struct hand {
  struct ljp_sink sink;
  struct ljp_writer *w;
  struct ljp_producer *p;
};

static inline void hand_begin_with(struct hand *h, enum ljp_producer_kind kind,
                                   struct ljp_writer_options o)
{
  o.describe = known();
  o.put_process = fixed_process;
  hand_out.len = hand_out.refuse_at = 0;
  ljp_sink_init_callback(&h->sink, hand_take, NULL);
  assert_int_equal(ljp_writer_new(&h->w, &h->sink, &o), LJP_OK);
  assert_int_equal(ljp_writer_start(h->w, 100), LJP_OK);
  h->p = source_new(1, 0, kind, 1 << 20);
  ljp_writer_begin(h->w, 100);
  ljp_writer_add_vm(h->w, 1, 0, "vm");
  ljp_writer_add_producer(h->w, h->p, 0);
  ljp_writer_drain(h->w);
  assert_int_equal(ljp_writer_finish(h->w), LJP_OK);
}

static inline void hand_begin(struct hand *h, enum ljp_producer_kind kind)
{
  hand_begin_with(h, kind, (struct ljp_writer_options){0});
}

static inline void hand_drain(struct hand *h, uint64_t now)
{
  ljp_writer_begin(h->w, now);
  ljp_writer_drain(h->w);
  assert_int_equal(ljp_writer_finish(h->w), LJP_OK);
}

static inline struct mini *hand_end(struct hand *h,
                                    void (*each)(void *, struct mini *,
                                                 const struct mini_event *),
                                    void *ctx)
{
  struct mini *m = mini_new();
  ljp_writer_end(h->w, LJP_OK, 0, "stopped");
  ljp_writer_free(h->w);
  ljp_sink_fini(&h->sink);
  source_free(h->p);
  m->on_event = each;
  m->ctx = ctx;
  if (!mini_read(m, hand_out.data, hand_out.len))
    fail_msg("%s", m->error);
  assert_int_equal(m->end_offset, hand_out.len);
  return m;
}

#endif
