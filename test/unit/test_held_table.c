/* The table of held blocks, against a plain model. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "src/writer/held.h"

enum { ADDRESSES = 200 };

static struct ljp_held_block *find(const struct ljp_held *held,
                                   uint64_t address)
{
  for (uint32_t i = 0; held->slots && i <= held->mask; i++)
    if (held->slots[i].address == address)
      return &held->slots[i];
  return NULL;
}

static uint32_t blocks_of(const struct ljp_held *held, uint32_t vm)
{
  for (uint32_t i = 0; i < held->vm_count; i++)
    if (held->vms[i].vm == vm)
      return held->vms[i].blocks;
  return 0;
}

/* model[a]: the size of the block at an address; 0: none. Its VM is size % 3 + 1. */
static void compare(const struct ljp_held *held, const uint64_t *model)
{
  uint32_t count = 0, of[4] = {0};
  for (uint64_t a = 1; a < ADDRESSES; a++) {
    const struct ljp_held_block *block = find(held, a * 16);
    if (!model[a]) {
      assert_null(block);
      continue;
    }
    assert_non_null(block);
    assert_int_equal(block->size, model[a]);
    count++;
    of[block->vm]++;
  }
  assert_int_equal(held->count, count);
  for (uint32_t vm = 1; vm < 4; vm++)
    assert_int_equal(blocks_of(held, vm), of[vm]);
}

static void the_table_does_what_a_list_does(void **state)
{
  (void)state;
  struct ljp_held held = {.wanted = true};
  uint64_t model[ADDRESSES] = {0};
  uint32_t random = 4711;
  for (int i = 1; i < 20000; i++) {
    random = random * 1664525 + 1013904223;
    uint64_t a = 1 + (random >> 8) % (ADDRESSES - 1);
    uint32_t vm = (uint32_t)i % 3 + 1;
    if (random >> 30) {
      const struct ljp_held_block block = {
          .address = a * 16, .size = (uint64_t)i, .vm = vm};
      ljp_held_put(&held, &block);
      model[a] = (uint64_t)i;
    } else {
      ljp_held_take(&held, a * 16);
      model[a] = 0;
    }
    if (i % 997 == 0) {
      ljp_held_close_vm(&held, vm);
      for (a = 1; a < ADDRESSES; a++)
        model[a] = model[a] % 3 + 1 == vm ? 0 : model[a];
    }
    if (i % 97 == 0 || i % 997 == 0)
      compare(&held, model);
  }
  ljp_held_stop(&held);
  assert_int_equal(held.count, 0);
  assert_int_equal(blocks_of(&held, 1) + blocks_of(&held, 2), 0);
  ljp_held_take(&held, 16);
  ljp_held_fini(&held);
}

static void a_full_table_keeps_nothing(void **state)
{
  (void)state;
  struct ljp_held held = {.wanted = true};
  for (uint64_t i = 1; i <= LJP_HELD_MAX; i++)
    ljp_held_put(&held, &(struct ljp_held_block){.address = i * 8, .vm = 1});
  assert_true(ljp_held_is_kept(&held));
  assert_int_equal(held.count, LJP_HELD_MAX);
  ljp_held_take(&held, 8);
  assert_int_equal(held.count, LJP_HELD_MAX - 1);
  for (uint64_t i = 1; i <= 3; i++)
    ljp_held_put(&held, &(struct ljp_held_block){.address = i << 32, .vm = 1});
  assert_false(ljp_held_is_kept(&held));
  assert_int_equal(held.count, 0);
  assert_null(held.slots);
  ljp_held_put(&held, &(struct ljp_held_block){.address = 8, .vm = 1});
  assert_int_equal(held.count, 0);
  ljp_held_fini(&held);
}

/* Too many VMs stop the table, too. A VM that is forgotten makes room for another. */
static void vms_come_and_go(void **state)
{
  (void)state;
  struct ljp_held held = {.wanted = true};
  for (uint32_t vm = 1; vm < 5 * LJP_HELD_VMS; vm++) {
    ljp_held_see_cycle(&held, vm, vm);
    ljp_held_put(&held, &(struct ljp_held_block){.address = 64, .vm = vm});
    assert_int_equal(find(&held, 64)->cycle, vm);
    ljp_held_forget_vm(&held, vm);
    assert_int_equal(held.vm_count, 0);
    assert_int_equal(held.count, 0);
  }
  assert_true(ljp_held_is_kept(&held));
  for (uint32_t vm = 1; vm <= LJP_HELD_VMS + 1; vm++)
    ljp_held_put(&held, &(struct ljp_held_block){.address = vm * 8, .vm = vm});
  assert_true(held.full);
  ljp_held_fini(&held);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_table_does_what_a_list_does),
      cmocka_unit_test(a_full_table_keeps_nothing),
      cmocka_unit_test(vms_come_and_go),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
