/*
** Streams whose stacks have labels, and the profiles made of them. For tests of
** one file each.
*/
#ifndef LJP_TEST_SUPPORT_LABELLED_H
#define LJP_TEST_SUPPORT_LABELLED_H

#include <stdio.h>

#include "parsers/profile/labels.h"
#include "test/support/shape.h"

static struct ljp_reader reader;
static char error[LJP_READER_ERROR_BYTES + 64];

/* -- Streams --------------------------------------------------------------- */

enum { A = 1, B, NOTHING }; /* Sets: tenant x at /a, at /b; none. */
#define SET_A "route\0/a\0tenant\0x\0"
#define SET_B "route\0/b\0"

static inline void put_set(uint64_t id, const char *set, size_t len)
{
  put_u(&body, id);
  put_u(&body, len);
  put_bytes(&body, set, len);
  put_record(&payload, LJP_REC_LABELS, &body);
}

static inline void producer(unsigned kind)
{
  put_u(&body, 1);
  put_u(&body, kind);
  put_u(&body, 1);
  put_u(&body, 0);
  put_record(&payload, LJP_REC_PRODUCER, &body);
}

/* Roots of the two sets. */
static uint64_t root_a, root_b;

static inline void begin_labelled(unsigned kind)
{
  begin();
  producer(kind);
  put_set(A, SET_A, sizeof SET_A - 1);
  put_set(B, SET_B, sizeof SET_B - 1);
  root_a = frame(0, LJP_FRAME_LABELS, 0, A);
  root_b = frame(0, LJP_FRAME_LABELS, 0, B);
}

/* floor below sort, below a root (0: none). */
static inline uint64_t stack_below(uint64_t root)
{
  return frame(frame(root, LJP_FRAME_BUILTIN, 0, SORT), LJP_FRAME_BUILTIN, 0,
               FLOOR);
}

static inline void mem(unsigned op, uint64_t address, uint64_t size,
                       uint64_t old, uint64_t old_size, uint64_t stack)
{
  put_u8(&body, op | LJP_MEM_SIZE | LJP_MEM_STACK | LJP_MEM_STATE);
  put_s(&body, 1);
  put_s(&body, (int64_t)ljp_rotate_address(address));
  put_u(&body, size);
  if (op == LJP_MEM_REALLOC) {
    put_s(&body,
          (int64_t)(ljp_rotate_address(old) - ljp_rotate_address(address)));
    put_u(&body, old_size);
  }
  put_s(&body, (int64_t)stack);
  put_u8(&body, LJP_VMSTATE_INTERP);
  put_u(&body, 1);
  put_record(&payload, LJP_REC_MEM, &body);
}

static inline void end_stream(void)
{
  put_block(&stream, 0, &payload);
  put_end_block(&stream, 1);
}

/* -- Profiles -------------------------------------------------------------- */

static inline enum ljp_status load(const struct ljp_profile_options *options,
                                   struct ljp_profile **out)
{
  struct ljp_profile *p = ljp_profile_new(options);
  assert_non_null(p);
  assert_int_equal(ljp_reader_memory(&reader, stream.data, stream.len), LJP_OK);
  assert_int_equal(ljp_profile_add(p, &reader), LJP_OK);
  ljp_reader_fini(&reader);
  enum ljp_status status = ljp_profile_finish(p);
  snprintf(error, sizeof error, "%s", p->error);
  *out = p;
  if (status)
    ljp_profile_free(p);
  return status;
}

static inline struct ljp_profile *
load_with(const struct ljp_profile_options *options)
{
  struct ljp_profile *p;
  if (load(options, &p))
    fail_msg("%s", error);
  return p;
}

static const struct ljp_profile_options plain = {.no_symbols = true,
                                                 .points = true};

static inline struct ljp_profile_options only(const char *filter)
{
  return (struct ljp_profile_options){.no_symbols = true,
                                      .labels = {.list = {filter}, .count = 1}};
}

/* The value of a key in the labels of a row. */
static inline struct ljp_str value_of(const struct ljp_profile *p, uint32_t row,
                                      const char *key)
{
  uint32_t number =
      ljp_labels_key(p, (struct ljp_str){key, (uint32_t)strlen(key)});
  return ljp_profile_str(
      p, ljp_labels_value(p, p->contexts[p->rows[row].context].labels, number));
}

struct sum {
  uint64_t count, weight, rows, alloc_bytes, live_bytes, free_bytes;
};

/* Sums over the rows at a stack (NULL: all) with a value of a key (NULL: any). */
static inline struct sum sum_of(const struct ljp_profile *p, const char *path,
                                const char *key, const char *value)
{
  struct sum sum = {0};
  char text[512];
  for (uint32_t i = 0; i < p->row_count; i++) {
    const struct ljp_profile_row *row = &p->rows[i];
    path_of(p, row->node, text, sizeof text);
    if (path && strcmp(text, path) != 0)
      continue;
    if (key && !ljp_str_same(value_of(p, i, key),
                             (struct ljp_str){value, (uint32_t)strlen(value)}))
      continue;
    sum.count += row->count;
    sum.weight += row->weight;
    sum.rows++;
    if (!row->memory)
      continue;
    sum.alloc_bytes += p->memory[row->memory].alloc_bytes;
    sum.live_bytes += p->memory[row->memory].live_bytes;
    sum.free_bytes += p->memory[row->memory].free_bytes;
  }
  return sum;
}

#define STACK "table.sort;math.floor"

#endif
