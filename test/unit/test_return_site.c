/*
** The memory profiler's return sites and the fronts made of them: the way down
** the host frames of a made-up stack, with made-up frame information.
*/
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "profilers/memory/return_site.h"

enum {
  LEAF = 0x1010, /* host code: 0x1000 .. 0x7fff */
  MIDDLE = 0x1020,
  OTHER = 0x1030,
  GUEST = 0x9001, /* the VM's assembly: 0x9000 .. 0x9fff */
  OTHER_GUEST = 0x9002,
  TRACE = 0x20000, /* compiled code: all above */
  HOST_END = 0x8000,
  FIRST = sizeof(struct ljp_caller) / 8 /* the first word of the stack */
};

static struct {
  struct ljp_unwind_plain step[HOST_END];
  bool plain[HOST_END];
  unsigned steps, guests; /* questions that were asked */
  bool no_map;
  uint64_t witness, other_witness;
  uint64_t words[FIRST + 200];
} world;

static struct ljp_stacks stacks;

#define CALLER ((struct ljp_caller *)(void *)world.words)

/* -- The world ------------------------------------------------------------- */

const struct ljp_unwind_map *ljp_unwind_acquire(struct ljp_unwind *unwind)
{
  (void)unwind;
  return world.no_map ? NULL : (const struct ljp_unwind_map *)(void *)&world;
}

void ljp_unwind_release(struct ljp_unwind *unwind,
                        const struct ljp_unwind_map *map)
{
  (void)unwind;
  assert_non_null(map);
}

bool ljp_unwind_has_module(const struct ljp_unwind_map *map, uint64_t address)
{
  (void)map;
  return address < TRACE - 1;
}

bool ljp_unwind_plain_step(const struct ljp_unwind_map *map, uint64_t rip,
                           struct ljp_unwind_plain *plain,
                           struct ljp_unwind_room *room)
{
  (void)map;
  (void)room;
  assert_true(rip < HOST_END);
  world.steps++;
  *plain = world.step[rip];
  return world.plain[rip];
}

bool ljp_guest_in_vm(uint64_t rip)
{
  return rip >> 12 == 9;
}

void ljp_guest_site(const struct ljp_guest_heap *heap,
                    const struct ljp_guest_regs *regs,
                    struct ljp_guest_site *site)
{
  (void)heap;
  world.guests++;
  *site = (struct ljp_guest_site){
      .kind = ljp_guest_in_vm(regs->rip) ? LJP_SITE_VM : LJP_SITE_TRACE};
}

enum ljp_mem_type ljp_guest_mem_type(const uint64_t *addresses, unsigned count,
                                     bool *object)
{
  assert_int_equal(count, 1);
  *object = addresses[0] == LEAF;
  return addresses[0] == MIDDLE ? LJP_MEM_TYPE_TABLE : LJP_MEM_TYPE_OTHER;
}

static void add_step(uint64_t rip, int words)
{
  world.plain[rip] = true;
  world.step[rip] = (struct ljp_unwind_plain){
      .cfa = 8 * words,
      .witness_at = (uint64_t)(uintptr_t)&world.witness,
      .witness = 1009};
}

/* LEAF has three words on the stack, MIDDLE four, and OTHER two. LEAF saves
** rbx and rbp. */
static int begin(void **state)
{
  (void)state;
  memset(&world, 0, sizeof world);
  memset(&stacks, 0, sizeof stacks);
  world.witness = 1009;
  add_step(LEAF, 3);
  world.step[LEAF].rbx = -3;
  world.step[LEAF].rbp = -2;
  add_step(MIDDLE, 4);
  add_step(OTHER, 2);
  CALLER->rip = LEAF;
  world.words[FIRST + 2] = MIDDLE;
  world.words[FIRST + 6] = GUEST;
  world.words[FIRST + 4] = OTHER_GUEST;
  stacks.epoch = 1;
  stacks.own = (uint64_t)(uintptr_t)&world.witness;
  return ljp_front_init(&stacks) ? 0 : -1;
}

static int end(void **state)
{
  (void)state;
  ljp_front_fini(&stacks);
  return 0;
}

/* Finds the guest at an address, `words` words down the stack. */
static void assert_found(uint64_t guest, int words)
{
  struct ljp_guest_regs regs;
  struct ljp_found_stack found;
  const struct ljp_return_site *site =
      ljp_front_find(&stacks, CALLER, &regs, &found);
  assert_non_null(site);
  assert_int_equal(site->rip, guest);
  assert_true(site->guest);
  assert_int_equal(regs.rip, guest);
  assert_ptr_equal((void *)(uintptr_t)regs.sp, &world.words[FIRST + words]);
  assert_ptr_equal(regs.rbx, &world.words[FIRST]);
  assert_ptr_equal(regs.rbp, &world.words[FIRST + 1]);
  assert_true(found.object);
  if (world.words[FIRST + 2] == MIDDLE)
    assert_int_equal(found.type, LJP_MEM_TYPE_TABLE);
  else
    assert_int_equal(found.type, LJP_MEM_TYPE_OTHER);
}

static void assert_not_found(void)
{
  struct ljp_guest_regs regs;
  struct ljp_found_stack found;
  assert_null(ljp_front_find(&stacks, CALLER, &regs, &found));
}

static void assert_asked(unsigned steps, unsigned guests)
{
  assert_int_equal(world.steps, steps);
  assert_int_equal(world.guests, guests);
  world.steps = world.guests = 0;
}

/* -- Down from the allocator ----------------------------------------------- */

static void a_known_return_address_is_not_asked_about_again(void **state)
{
  (void)state;
  assert_found(GUEST, 7);
  assert_asked(2, 1);
  assert_null(stacks.front);
  for (int i = 0; i < 5; i++) {
    assert_found(GUEST, 7);
    assert_non_null(stacks.front);
  }
  assert_asked(0, 0);
}

static void another_return_address_is_another_way(void **state)
{
  (void)state;
  assert_found(GUEST, 7);
  assert_asked(2, 1);
  world.words[FIRST + 2] = OTHER;
  assert_found(OTHER_GUEST, 5);
  assert_asked(1, 1);
  for (int i = 0; i < 5; i++) {
    world.words[FIRST + 2] = MIDDLE;
    assert_found(GUEST, 7);
    world.words[FIRST + 2] = OTHER;
    assert_found(OTHER_GUEST, 5);
  }
  assert_asked(0, 0);
}

/* The address in the guest is not part of a front. */
static void a_known_way_leads_to_any_guest_address(void **state)
{
  (void)state;
  assert_found(GUEST, 7);
  assert_asked(2, 1);
  world.words[FIRST + 6] = OTHER_GUEST;
  assert_found(OTHER_GUEST, 7);
  assert_asked(0, 1);
  assert_found(OTHER_GUEST, 7);
  assert_non_null(stacks.front);
}

static void a_way_that_goes_on_in_the_host_is_followed(void **state)
{
  (void)state;
  assert_found(GUEST, 7);
  assert_found(GUEST, 7);
  world.words[FIRST + 6] = OTHER; /* host code where the guest was */
  world.words[FIRST + 8] = OTHER_GUEST;
  assert_found(OTHER_GUEST, 9);
  assert_null(stacks.front); /* that of the shorter way does not count */
  assert_found(OTHER_GUEST, 9);
  assert_non_null(stacks.front);
  world.words[FIRST + 6] = GUEST;
  assert_found(GUEST, 7);
}

static void a_new_epoch_forgets(void **state)
{
  (void)state;
  assert_found(GUEST, 7);
  assert_found(GUEST, 7);
  assert_asked(2, 1);
  stacks.epoch++;
  world.step[LEAF].cfa = 5 * 8; /* other code at the same addresses */
  world.step[LEAF].rbx = -5;
  world.step[LEAF].rbp = -4;
  world.words[FIRST + 4] = MIDDLE;
  world.words[FIRST + 8] = GUEST;
  assert_found(GUEST, 9);
  assert_found(GUEST, 9);
  assert_asked(2, 1);
  ljp_front_forget(&stacks);
  assert_found(GUEST, 9);
  assert_asked(2, 1);
}

static void a_site_that_is_not_plain_is_asked_about_again(void **state)
{
  (void)state;
  world.plain[MIDDLE] = false;
  assert_not_found();
  assert_not_found();
  assert_asked(3, 0); /* LEAF once, MIDDLE twice */
  world.plain[MIDDLE] = true;
  assert_found(GUEST, 7);
}

static void without_a_map_nothing_is_learned(void **state)
{
  (void)state;
  world.no_map = true;
  assert_not_found();
  assert_asked(0, 0);
  world.no_map = false;
  assert_found(GUEST, 7);
}

static void a_replaced_module_is_not_believed(void **state)
{
  (void)state;
  world.step[MIDDLE].witness_at = (uint64_t)(uintptr_t)&world.other_witness;
  world.other_witness = 1009;
  assert_found(GUEST, 7);
  assert_found(GUEST, 7);
  assert_null(stacks.front); /* fronts are for our own module */
  world.other_witness++;
  assert_not_found();
  world.other_witness--;
  assert_found(GUEST, 7);
}

static void a_frame_that_cannot_be_is_refused(void **state)
{
  static const int32_t sizes[] = {0, -8, 12, 8 + (1 << 20)};
  (void)state;
  for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    stacks.epoch++;
    world.step[LEAF].cfa = sizes[i];
    assert_not_found();
  }
}

static void a_frame_may_hang_on_rbp(void **state)
{
  (void)state;
  world.step[LEAF].from_rbp = true;
  world.step[LEAF].cfa = 16;
  CALLER->rbp = (uint64_t)(uintptr_t)&world.words[FIRST + 1];
  assert_found(GUEST, 7);
  assert_found(GUEST, 7);
  assert_null(stacks.front); /* its place depends on more than the addresses */
}

static void eight_host_frames_are_followed_and_no_more(void **state)
{
  (void)state;
  for (int i = 0; i < LJP_FRONT_FRAMES - 1; i++)
    world.words[FIRST + 2 + 2 * i] = OTHER;
  world.words[FIRST + 2 + 2 * (LJP_FRONT_FRAMES - 1)] = GUEST;
  assert_found(GUEST, 3 + 2 * (LJP_FRONT_FRAMES - 1));
  world.words[FIRST + 2 + 2 * (LJP_FRONT_FRAMES - 1)] = OTHER;
  world.words[FIRST + 2 + 2 * LJP_FRONT_FRAMES] = GUEST;
  assert_not_found();
}

static void native_host_frames_are_kept_leaf_first(void **state)
{
  (void)state;
  stacks.native = true;
  for (int i = 0; i < 2; i++) { /* walked, then known */
    memset(stacks.host, 0, sizeof stacks.host);
    stacks.hosts = 0;
    assert_found(GUEST, 7);
    assert_int_equal(stacks.front != NULL, i);
    assert_int_equal(stacks.hosts, 2);
    assert_int_equal(stacks.host[0], ljp_frame(LJP_FRAME_HOST, 0, LEAF));
    assert_int_equal(stacks.host[1], ljp_frame(LJP_FRAME_HOST, 0, MIDDLE));
  }
}

static void the_words_of_a_way_are_its_return_addresses(void **state)
{
  struct ljp_memo_read word[8];
  (void)state;
  assert_found(GUEST, 7);
  assert_int_equal(ljp_front_words(&stacks, CALLER, word), 0);
  assert_found(GUEST, 7);
  assert_int_equal(ljp_front_words(&stacks, CALLER, word), 2);
  assert_int_equal(word[0].at, (uint64_t)(uintptr_t)&world.words[FIRST + 2]);
  assert_int_equal(word[0].value, MIDDLE);
  assert_int_equal(word[1].at, (uint64_t)(uintptr_t)&world.words[FIRST + 6]);
  assert_int_equal(word[1].value, GUEST);
}

static void more_sites_than_room_are_never_confused(void **state)
{
  (void)state;
  for (uint64_t i = 0; i < 20011; i++) {
    uint64_t rip = 0x2000 + i * i % 3001;
    int words = 1 + (int)(rip % 97);
    add_step(rip, words);
    world.words[FIRST + 2] = rip;
    world.words[FIRST + 2 + words] = GUEST;
    assert_found(GUEST, 3 + words);
    world.words[FIRST + 2 + words] = 0;
  }
}

/* -- Down from a C frame --------------------------------------------------- */

static struct ljp_guest_regs regs_below(void)
{
  return (struct ljp_guest_regs){.rip = LEAF,
                                 .sp = (uint64_t)(uintptr_t)&world.words[FIRST],
                                 .rbx = &CALLER->rbx,
                                 .rbp = &CALLER->rbp,
                                 .r14 = &CALLER->r14};
}

static void the_way_below_leads_to_the_next_assembly(void **state)
{
  struct ljp_guest_regs regs = regs_below();
  uint64_t host[LJP_BELOW_FRAMES];
  uint32_t hosts;
  (void)state;
  const struct ljp_return_site *site =
      ljp_front_below(&stacks, &regs, host, &hosts);
  assert_non_null(site);
  assert_int_equal(site->rip, GUEST);
  assert_int_equal(regs.rip, GUEST);
  assert_ptr_equal((void *)(uintptr_t)regs.sp, &world.words[FIRST + 7]);
  assert_ptr_equal(regs.rbx, &world.words[FIRST]);
  assert_int_equal(hosts, 2);
  assert_int_equal(host[0], ljp_frame(LJP_FRAME_HOST, 0, LEAF));
  assert_int_equal(host[1], ljp_frame(LJP_FRAME_HOST, 0, MIDDLE));
}

static void compiled_code_is_known_only_on_top(void **state)
{
  struct ljp_guest_regs regs = regs_below();
  uint64_t host[LJP_BELOW_FRAMES];
  uint32_t hosts;
  (void)state;
  world.words[FIRST + 6] = TRACE;
  assert_found(TRACE, 7);
  assert_null(ljp_front_below(&stacks, &regs, host, &hosts));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
  const struct CMUnitTest tests[] = {
      TEST(a_known_return_address_is_not_asked_about_again),
      TEST(another_return_address_is_another_way),
      TEST(a_known_way_leads_to_any_guest_address),
      TEST(a_way_that_goes_on_in_the_host_is_followed),
      TEST(a_new_epoch_forgets),
      TEST(a_site_that_is_not_plain_is_asked_about_again),
      TEST(without_a_map_nothing_is_learned),
      TEST(a_replaced_module_is_not_believed),
      TEST(a_frame_that_cannot_be_is_refused),
      TEST(a_frame_may_hang_on_rbp),
      TEST(eight_host_frames_are_followed_and_no_more),
      TEST(native_host_frames_are_kept_leaf_first),
      TEST(the_words_of_a_way_are_its_return_addresses),
      TEST(more_sites_than_room_are_never_confused),
      TEST(the_way_below_leads_to_the_next_assembly),
      TEST(compiled_code_is_known_only_on_top),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
