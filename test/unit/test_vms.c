/*
** The ids of VMs: while the table of VMs is full, a VM gets an id beyond it, and
** keeps this id when there is room again.
*/
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "profilers/session/vms.h"
#include "test/stream/session_tools.h"

enum { FIRST = 1000, LATE = FIRST + LJP_VMS, LATER };

static struct ljp_session *full_table(const char *file)
{
  struct ljp_session_options o = {.path = in_dir(file)};
  struct ljp_session *s = started(&o);
  ljp_vms_reset();
  for (uint32_t i = 0; i < LJP_VMS; i++)
    ljp_vms_add(NULL, FIRST + i);
  ljp_vms_define(s);
  return s;
}

/* The entry is free after some rounds. */
static void close_vm(uint32_t number, struct ljp_session *s)
{
  ljp_vms_close(number);
  for (int round = 0; round < 4; round++)
    ljp_vms_update(s);
  assert_int_equal(ljp_vms_id(number), 0);
}

/* Ends the session. vms, ends: VM and VM_CLOSE records that it has. */
static void assert_records(struct ljp_session *s, const char *file,
                           uint64_t vms, uint64_t ends)
{
  assert_int_equal(ljp_session_stop(s, NULL), LJP_OK);
  struct mini *m = read_back(in_dir(file));
  assert_int_equal(m->records[LJP_REC_VM], vms);
  assert_int_equal(m->events[LJP_REC_VM_CLOSE], ends);
  mini_free(m);
  ljp_session_free(s);
  ljp_vms_reset();
}

static void a_vm_beyond_the_table_keeps_its_id(void **state)
{
  (void)state;
  struct ljp_session *s = full_table("keeps");
  bool claimed;
  assert_int_equal(ljp_vms_claim(LATE, &claimed), 0);
  assert_false(claimed);
  const uint32_t late = ljp_vms_ensure(LATE, s);
  const uint32_t later = ljp_vms_ensure(LATER, s);
  assert_int_not_equal(late, 0);
  assert_int_not_equal(later, 0);
  assert_int_not_equal(late, later);
  for (uint32_t i = 0; i < LJP_VMS; i++) {
    assert_int_not_equal(ljp_vms_id(FIRST + i), late);
    assert_int_not_equal(ljp_vms_id(FIRST + i), later);
  }
  assert_int_equal(ljp_vms_ensure(LATE, s), late);
  close_vm(FIRST + 7, s);
  assert_int_equal(ljp_vms_claim(LATE, &claimed), 0);
  assert_true(claimed);
  assert_int_equal(ljp_vms_ensure(LATE, s), late);
  assert_int_equal(ljp_vms_claim(LATE, &claimed), late);
  assert_int_equal(ljp_vms_ensure(LATER, s), later);
  close_vm(LATE, s);
  ljp_vms_close(LATER);
  for (int round = 0; round < 2; round++)
    ljp_vms_update(s);
  assert_records(s, "keeps", LJP_VMS + 2, 3);
}

static void a_claimed_vm_has_one_id(void **state)
{
  (void)state;
  struct ljp_session_options o = {.path = in_dir("one")};
  struct ljp_session *s = started(&o);
  bool claimed;
  ljp_vms_reset();
  assert_int_equal(ljp_vms_claim(FIRST, &claimed), 0);
  assert_true(claimed);
  const uint32_t id = ljp_vms_ensure(FIRST, s);
  assert_int_not_equal(id, 0);
  ljp_vms_update(s);
  assert_int_equal(ljp_vms_claim(FIRST, &claimed), id);
  assert_records(s, "one", 1, 0);
}

/* What the parent has closed, the child's stream need not have. */
static void a_child_forgets_closed_vms(void **state)
{
  (void)state;
  struct ljp_session *s = full_table("child");
  const uint32_t late = ljp_vms_ensure(LATE, s);
  assert_int_not_equal(ljp_vms_ensure(LATER, s), 0);
  ljp_vms_close(FIRST);
  ljp_vms_close(LATE);
  ljp_vms_forked(s);
  assert_int_equal(ljp_vms_id(FIRST), 0);
  const uint32_t again = ljp_vms_ensure(LATE, s);
  assert_int_not_equal(again, 0);
  assert_int_not_equal(again, late);
  assert_int_equal(ljp_session_stop(s, NULL), LJP_OK);
  ljp_session_free(s);
  ljp_vms_reset();
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_vm_beyond_the_table_keeps_its_id),
      cmocka_unit_test(a_claimed_vm_has_one_id),
      cmocka_unit_test(a_child_forgets_closed_vms),
  };
  return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
