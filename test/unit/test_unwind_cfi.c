/* Reading call frame information: each instruction has its meaning, and
** hostile, cut or endless input is refused. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "profilers/unwind/step.h"
#include "profilers/unwind/table.h"

/* A CIE as gcc writes it (zR, pcrel sdata4, cfa = rsp + 8, rip at cfa - 8) and
** an FDE for 0x100 bytes of code at CODE; the test appends instructions. */
enum { BASE = 0x10000, CODE = 0x20000, CIE_SIZE = 24, FDE_AT = CIE_SIZE };

struct image {
  uint8_t bytes[512];
  size_t size;
};

static void put32(uint8_t *at, uint32_t value)
{
  memcpy(at, &value, 4);
}

static void begin(struct image *image)
{
  static const uint8_t cie[CIE_SIZE] = {
      CIE_SIZE - 4, 0,  0, 0,    0,    0, 0, 0,    1, 'z', 'R', 0, 1,
      0x78,         16, 1, 0x1b, 0x0c, 7, 8, 0x90, 1, 0,   0};
  memset(image, 0, sizeof *image);
  memcpy(image->bytes, cie, CIE_SIZE);
  uint8_t *fde = image->bytes + FDE_AT;
  put32(fde + 4, FDE_AT + 4);
  put32(fde + 8, CODE - (BASE + FDE_AT + 8));
  put32(fde + 12, 0x100);
  fde[16] = 0;
  image->size = FDE_AT + 17;
}

static void end(struct image *image, const uint8_t *ops, size_t count)
{
  memcpy(image->bytes + image->size, ops, count);
  image->size += count;
  put32(image->bytes + FDE_AT, (uint32_t)(image->size - FDE_AT - 4));
}

static struct ljp_cfi_cie cie;
static struct ljp_cfi_fde fde;
static struct ljp_cfi_machine machine;

/* The row at an offset into the code. */
static bool row_at(const struct image *image, uint64_t offset)
{
  struct ljp_cfi_span head = {image->bytes, image->size, BASE};
  struct ljp_cfi_span body = {image->bytes + FDE_AT, image->size - FDE_AT,
                              BASE + FDE_AT};
  if (!ljp_cfi_read_cie(&cie, head, &machine) ||
      !ljp_cfi_read_fde(&fde, &cie, body))
    return false;
  ljp_cfi_start(&machine, &cie, &fde);
  do
    if (!ljp_cfi_next(&machine, &fde))
      return false;
  while (machine.next <= CODE + offset);
  return true;
}

static void a_prologue_becomes_rows(void **state)
{
  /* push rbp at 1; mov rbp, rsp at 4; ... leave at 0x40 */
  static const uint8_t ops[] = {0x41, 0x0e, 16,   0x86, 2, 0x43, 0x0d,
                                6,    0x02, 0x3c, 0x0c, 7, 8};
  struct image image;
  (void)state;
  begin(&image);
  end(&image, ops, sizeof ops);
  assert_true(row_at(&image, 0));
  assert_true(fde.start == CODE && fde.end == CODE + 0x100);
  assert_int_equal(machine.row.cfa_reg, LJP_RSP);
  assert_int_equal(machine.row.cfa_arg, 8);
  assert_int_equal(machine.row.how[LJP_RBP], LJP_HOW_DEFAULT);
  assert_int_equal(machine.row.arg[LJP_RIP], -8);
  assert_true(machine.next == CODE + 1);
  assert_true(row_at(&image, 3));
  assert_int_equal(machine.row.cfa_arg, 16);
  assert_int_equal(machine.row.how[LJP_RBP], LJP_HOW_OFFSET);
  assert_int_equal(machine.row.arg[LJP_RBP], -16);
  assert_true(row_at(&image, 0x3f));
  assert_int_equal(machine.row.cfa_reg, LJP_RBP);
  assert_true(row_at(&image, 0xff));
  assert_int_equal(machine.row.cfa_reg, LJP_RSP);
  assert_int_equal(machine.row.cfa_arg, 8);
  assert_true(machine.next == CODE + 0x100);
}

static void each_kind_of_rule_is_read(void **state)
{
  static const uint8_t ops[] = {
      0x07, 3,                   /* undefined rbx */
      0x08, 12,                  /* same r12 */
      0x09, 13,   0,             /* r13 in rax */
      0x14, 14,   2,             /* r14 = cfa - 16 */
      0x15, 15,   0x7d,          /* r15 = cfa + 24 */
      0x11, 6,    0x7e,          /* rbp at cfa + 16 */
      0x2e, 0x80, 0x20,          /* args size: ignored */
      0x05, 40,   1,             /* a vector register: ignored */
      0x10, 5,    2,    0x77, 8, /* rdi at rsp + 8 */
      0x16, 4,    1,    0x30,    /* rsi = 0 */
      0x2f, 2,    3,             /* rcx at cfa + 24 */
      0x13, 0x7c,                /* cfa offset -4 * -8 */
  };
  struct image image;
  (void)state;
  begin(&image);
  end(&image, ops, sizeof ops);
  assert_true(row_at(&image, 0));
  const struct ljp_cfi_row *row = &machine.row;
  assert_int_equal(row->how[LJP_RBX], LJP_HOW_UNDEFINED);
  assert_int_equal(row->how[LJP_R12], LJP_HOW_SAME);
  assert_int_equal(row->how[LJP_R13], LJP_HOW_REGISTER);
  assert_int_equal(row->arg[LJP_R13], LJP_RAX);
  assert_int_equal(row->how[LJP_R14], LJP_HOW_VAL_OFFSET);
  assert_int_equal(row->arg[LJP_R14], -16);
  assert_int_equal(row->arg[LJP_R15], 24);
  assert_int_equal(row->how[LJP_RBP], LJP_HOW_OFFSET);
  assert_int_equal(row->arg[LJP_RBP], 16);
  assert_int_equal(row->how[LJP_RDI], LJP_HOW_EXPR);
  assert_int_equal(row->how[LJP_RSI], LJP_HOW_VAL_EXPR);
  assert_int_equal(row->arg[LJP_RCX], 24);
  assert_int_equal(row->cfa_arg, 32);
}

static void remembered_rows_come_back(void **state)
{
  static const uint8_t ops[] = {0x41, 0x0e, 16,   0x83, 2,    0x41, 0x0a,
                                0x0e, 8,    0xc3, 0x41, 0x0b, 0x41};
  struct image image;
  (void)state;
  begin(&image);
  end(&image, ops, sizeof ops);
  assert_true(row_at(&image, 2));
  assert_int_equal(machine.row.cfa_arg, 8);
  assert_int_equal(machine.row.how[LJP_RBX], LJP_HOW_DEFAULT);
  assert_true(row_at(&image, 3));
  assert_int_equal(machine.row.cfa_arg, 16);
  assert_int_equal(machine.row.arg[LJP_RBX], -16);
}

static void nonsense_is_refused(void **state)
{
  static const struct {
    uint8_t count, ops[8];
  } bad[] = {
      {1, {0x0b}},        /* nothing was remembered */
      {1, {0x3f}},        /* no such operation */
      {2, {0x01, 0}},     /* set_loc */
      {2, {0x0c, 7}},     /* operand missing */
      {3, {0x0c, 17, 8}}, /* no such register for the CFA */
      {7, {0x0e, 0xff, 0xff, 0xff, 0xff, 0xff, 1}}, /* too far */
      {3, {0x0f, 9, 0x77}},          /* expression longer than the record */
      {2, {0x04, 1}},                /* advance without its bytes */
      {5, {0x0f, 1, 0x30, 0x0d, 7}}, /* register for an expression's CFA */
      {3, {0x09, 3, 99}},            /* in a register that we do not know */
      {1, {0x86}},                   /* offset without one */
  };
  (void)state;
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    struct image image;
    begin(&image);
    end(&image, bad[i].ops, bad[i].count);
    assert_false(row_at(&image, 0x80));
  }
  struct image image;
  uint8_t deep[LJP_CFI_REMEMBERED + 1];
  memset(deep, 0x0a, sizeof deep);
  begin(&image);
  end(&image, deep, sizeof deep);
  assert_false(row_at(&image, 0));
}

static void records_cut_at_any_byte_do_no_harm(void **state)
{
  static const uint8_t ops[] = {0x41, 0x0e, 16, 0x86, 2,    0x0f,
                                3,    0x77, 8,  0x06, 0x42, 0x0b};
  struct image image;
  (void)state;
  begin(&image);
  end(&image, ops, sizeof ops);
  for (size_t size = 0; size < image.size; size++) {
    /* No more memory than that, so that ASan notices a read beyond it. */
    uint8_t *bytes = malloc(size ? size : 1);
    memcpy(bytes, image.bytes, size);
    struct ljp_cfi_span head = {bytes, size, BASE};
    bool have = ljp_cfi_read_cie(&cie, head, &machine);
    if (have && size > FDE_AT) {
      struct ljp_cfi_span body = {bytes + FDE_AT, size - FDE_AT, BASE + FDE_AT};
      if (ljp_cfi_read_fde(&fde, &cie, body)) {
        ljp_cfi_start(&machine, &cie, &fde);
        while (ljp_cfi_next(&machine, &fde) && machine.next < fde.end)
          ;
      }
    }
    assert_int_equal(have, size >= CIE_SIZE);
    free(bytes);
  }
}

static enum ljp_unwind_result evaluate(const uint8_t *ops, uint8_t size,
                                       uint64_t *out)
{
  uint8_t bytes[64] = {size};
  struct ljp_cfi_span span = {bytes, (size_t)size + 1, BASE};
  struct ljp_regs regs = {.known = LJP_REGS_ALL & ~(1u << LJP_RAX)};
  for (int i = 0; i < LJP_REGS; i++)
    regs.r[i] = 1000u * (unsigned)i + 3;
  memcpy(bytes + 1, ops, size);
  return ljp_cfi_evaluate(&span, 0, &regs, true, 7, out);
}

static void expressions_compute(void **state)
{
  /* What ld writes for a PLT: rsp + 8 + ((rip & 15) >= 11) << 3. */
  static const uint8_t plt[] = {0x77, 8,    0x80, 0,    0x3f, 0x1a,
                                0x3b, 0x2a, 0x33, 0x24, 0x22};
  static const uint8_t subtract[] = {0x08, 50, 0x16, 0x1c}; /* 50 - 7 */
  static const uint8_t skipped[] = {0x2f, 1, 0, 0xff, 0x31, 0x22};
  uint64_t out = 0;
  (void)state;
  assert_int_equal(evaluate(plt, sizeof plt, &out), 0);
  assert_int_equal(out, 7000 + 3 + 8 + ((16003 & 15) >= 11 ? 8 : 0));
  assert_int_equal(evaluate(subtract, sizeof subtract, &out), 0);
  assert_int_equal(out, 43);
  assert_int_equal(evaluate(skipped, sizeof skipped, &out), 0);
  assert_int_equal(out, 8);
}

static void hostile_expressions_end(void **state)
{
  static const uint8_t forever[] = {0x2f, 0xfd, 0xff};
  static const uint8_t before[] = {0x2f, 0xf0, 0xff};
  static const uint8_t beyond[] = {0x2f, 9, 0};
  static const uint8_t empty[] = {0x13, 0x13};
  static const uint8_t by_zero[] = {0x30, 0x1b};
  static const uint8_t lost[] = {0x70, 0};
  static const uint8_t wild[] = {0x08, 3, 0x06};
  static const uint8_t unknown[] = {0xe0};
  uint8_t full[40];
  uint64_t out;
  (void)state;
  memset(full, 0x12, sizeof full);
  assert_int_equal(evaluate(forever, 3, &out), LJP_UNWIND_BAD_CFI);
  assert_int_equal(evaluate(before, 3, &out), LJP_UNWIND_BAD_CFI);
  assert_int_equal(evaluate(beyond, 3, &out), LJP_UNWIND_BAD_CFI);
  assert_int_equal(evaluate(empty, 2, &out), LJP_UNWIND_BAD_CFI);
  assert_int_equal(evaluate(by_zero, 2, &out), LJP_UNWIND_BAD_CFI);
  assert_int_equal(evaluate(lost, 2, &out), LJP_UNWIND_UNKNOWN_REG);
  assert_int_equal(evaluate(wild, 3, &out), LJP_UNWIND_UNREADABLE);
  assert_int_equal(evaluate(unknown, 1, &out), LJP_UNWIND_BAD_CFI);
  assert_int_equal(evaluate(full, sizeof full, &out), LJP_UNWIND_BAD_CFI);
}

/* An object made by hand, with or without an index in its header. */
enum { OBJECT_SIZE = 1 << 16, HEADER = 0x1000, FRAMES = 0x2000, TEXT = 0x8000 };

static struct ljp_unwind_object *read_object(uint64_t lo)
{
  struct ljp_unwind_object *object =
      ljp_unwind_object_new(lo, lo + OBJECT_SIZE, lo + HEADER, 0);
  assert_non_null(object);
  assert_true(ljp_unwind_object_read(object));
  return object;
}

static struct ljp_unwind_object *make_object(uint8_t *memory, bool table)
{
  static const uint8_t ops[] = {0x41, 0x0e, 16, 0x86, 2};
  struct image image;
  begin(&image);
  end(&image, ops, sizeof ops);
  memset(memory, 0, OBJECT_SIZE);
  memcpy(memory + FRAMES, image.bytes, image.size);
  put32(memory + FRAMES + FDE_AT + 8, TEXT - (FRAMES + FDE_AT + 8));
  uint8_t *header = memory + HEADER;
  header[0] = 1;
  header[1] = 0x1b;
  header[2] = table ? 0x03 : 0xff;
  header[3] = table ? 0x3b : 0xff;
  put32(header + 4, FRAMES - (HEADER + 4));
  if (table) {
    put32(header + 8, 1);
    put32(header + 12, TEXT - HEADER);
    put32(header + 16, FRAMES + FDE_AT - HEADER);
  }
  uint64_t lo = (uintptr_t)memory;
  return read_object(lo);
}

static void an_object_is_found_with_and_without_a_search_table(void **state)
{
  uint8_t *memory = aligned_alloc(4096, OBJECT_SIZE);
  (void)state;
  for (int table = 0; table < 2; table++) {
    static struct ljp_cfi_found found;
    struct ljp_unwind_object *object = make_object(memory, table);
    uint64_t text = (uintptr_t)memory + TEXT;
    assert_non_null(object);
    assert_int_equal(object->index_count, 1);
    assert_int_equal(ljp_unwind_find_cfi(object, text + 5, &found), 0);
    assert_int_equal(found.machine.row.cfa_arg, 16);
    assert_int_equal(ljp_unwind_find_cfi(object, text - 1, &found),
                     LJP_UNWIND_NO_RULE);
    assert_int_equal(ljp_unwind_find_cfi(object, text + 0x100, &found),
                     LJP_UNWIND_NO_RULE);
    struct ljp_unwind_table *rows;
    struct ljp_unwind_job *job = ljp_unwind_job_new(object);
    assert_non_null(job);
    assert_true(ljp_unwind_job_run(job, UINT64_MAX, NULL, &rows));
    assert_non_null(rows);
    /* A gap, the function's start, after its push, a gap. */
    assert_int_equal(rows->rows, 4);
    assert_int_equal(rows->pc[1], TEXT);
    assert_int_equal(rows->rules[rows->rule[1]].cfa_offset, 8);
    assert_int_equal(rows->pc[2], TEXT + 1);
    assert_int_equal(rows->rules[rows->rule[2]].saved, 1);
    assert_int_equal(rows->rules[rows->rule[2]].slot[0], -2);
    assert_int_equal(rows->pc[3], TEXT + 0x100);
    assert_int_equal(rows->rule[3], LJP_RULE_NONE);
    ljp_unwind_table_free(rows);
    ljp_unwind_object_free(object);
  }
  free(memory);
}

static void every_flipped_bit_of_an_object_is_survived(void **state)
{
  uint8_t *memory = aligned_alloc(4096, OBJECT_SIZE);
  static const unsigned parts[][2] = {{HEADER, 20}, {FRAMES, 46}};
  (void)state;
  for (int part = 0; part < 2; part++)
    for (unsigned bit = 0; bit < parts[part][1] * 8; bit++) {
      static struct ljp_cfi_found found;
      ljp_unwind_object_free(make_object(memory, true));
      memory[parts[part][0] + bit / 8] ^= (uint8_t)(1u << bit % 8);
      uint64_t lo = (uintptr_t)memory;
      struct ljp_unwind_object *object = read_object(lo);
      assert_non_null(object);
      ljp_unwind_find_cfi(object, lo + TEXT + 5, &found);
      struct ljp_unwind_table *rows = NULL;
      struct ljp_unwind_job *job = ljp_unwind_job_new(object);
      if (job)
        assert_true(ljp_unwind_job_run(job, UINT64_MAX, NULL, &rows));
      for (uint32_t i = 1; rows && i < rows->rows; i++)
        assert_true(rows->pc[i - 1] < rows->pc[i]);
      ljp_unwind_table_free(rows);
      ljp_unwind_object_free(object);
    }
  free(memory);
}

/* A table whose only function covers offsets from 16 on. */
static struct ljp_unwind_table *small_table(int32_t cfa_offset)
{
  const struct ljp_unwind_rule rule = {
      .cfa_offset = cfa_offset, .kind = LJP_RULE_REGULAR, .base = LJP_RSP};
  struct ljp_unwind_builder builder;
  struct ljp_unwind_table *table = NULL;
  uint16_t id;
  assert_true(ljp_unwind_builder_init(&builder));
  assert_true(ljp_unwind_builder_rule(&builder, &rule, &id));
  assert_true(ljp_unwind_builder_row(&builder, 16, id));
  assert_true(ljp_unwind_builder_finish(&builder, 4096, &table));
  ljp_unwind_builder_fini(&builder);
  return table;
}

static void a_rule_is_recalled_for_its_table_and_offset(void **state)
{
  (void)state;
  enum { OFFSETS = 2000 };
  struct ljp_unwind_table *one = small_table(16), *other = small_table(32);
  uint16_t rule;
  int recalled = 0;
  assert_true(one->serial && other->serial && one->serial != other->serial);
  for (uint32_t offset = 0; offset < OFFSETS; offset++) {
    assert_false(ljp_unwind_recall(one, offset, &rule));
    ljp_unwind_remember(one, offset, (uint16_t)(offset % 3));
    assert_false(ljp_unwind_recall(other, offset, &rule));
    assert_true(ljp_unwind_recall(one, offset, &rule));
    assert_int_equal(rule, offset % 3);
  }
  /* What was remembered last has replaced others, and nothing is mixed up. */
  for (uint32_t offset = 0; offset < OFFSETS; offset++) {
    assert_false(ljp_unwind_recall(other, offset, &rule));
    if (!ljp_unwind_recall(one, offset, &rule))
      continue;
    assert_int_equal(rule, offset % 3);
    recalled++;
  }
  assert_in_range(recalled, 100, 1 << LJP_UNWIND_RECENT_BITS);
  /* A table without a number of its own remembers nothing. */
  other->serial = 0;
  ljp_unwind_remember(other, 7, 1);
  assert_false(ljp_unwind_recall(other, 7, &rule));
  ljp_unwind_table_free(one);
  ljp_unwind_table_free(other);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_prologue_becomes_rows),
      cmocka_unit_test(each_kind_of_rule_is_read),
      cmocka_unit_test(remembered_rows_come_back),
      cmocka_unit_test(nonsense_is_refused),
      cmocka_unit_test(records_cut_at_any_byte_do_no_harm),
      cmocka_unit_test(expressions_compute),
      cmocka_unit_test(hostile_expressions_end),
      cmocka_unit_test(an_object_is_found_with_and_without_a_search_table),
      cmocka_unit_test(a_rule_is_recalled_for_its_table_and_offset),
      cmocka_unit_test(every_flipped_bit_of_an_object_is_survived),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
