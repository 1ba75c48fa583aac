/*
** Entries of freed prototypes wait until all writers have passed them. The test
** drives holds (src/luajit/functions/holds.c) by hand, with entries that belong
** to no VM.
*/
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "src/luajit/vm/lock.h"
#include "src/luajit/functions/entries.h"

enum { ENTRIES = 1009 };

struct ljp_proto_entry *ljp_proto_entry_chunks[LJP_SLOT_CHUNKS];
uint64_t *ljp_slot_chunks[LJP_SLOT_CHUNKS];
uint32_t ljp_slots_used = ENTRIES;
struct ljp_vm *_Atomic ljp_vm_chunks[LJP_VM_CHUNKS];
_Atomic uint32_t ljp_vm_count = 1;
static uint32_t freed[ENTRIES], freed_count, described, forgotten;
static uint32_t steps, steps_wanted;

void ljp_proto_entry_free(struct ljp_proto_entry *record, uint32_t ref)
{
  assert_ptr_equal(record, ljp_proto_entry_at(ref));
  record->death = 0;
  freed[freed_count++ % ENTRIES] = ref;
}

void ljp_protos_describe_begin(void)
{
  described++;
}

/* The lock is held, and was free after the step before: 2 means that a thread
** waits. */
bool ljp_protos_describe_more(void)
{
  assert_int_equal(ljp_lock_words[LJP_LOCK_PROTOS], 1);
  steps++;
  if (steps >= steps_wanted)
    return false;
  ljp_lock_words[LJP_LOCK_PROTOS] = 2;
  return true;
}

bool ljp_protos_forget(uint32_t chunk)
{
  assert_int_equal(chunk, chunk ? forgotten : 0);
  forgotten = chunk + 1;
  return forgotten * LJP_SLOT_CHUNK < ENTRIES;
}

uint64_t ljp_protos_unnamed(void)
{
  return 0;
}

static int set_up(void **state)
{
  (void)state;
  for (uint32_t i = 0; i * LJP_SLOT_CHUNK < ENTRIES; i++) {
    free(ljp_proto_entry_chunks[i]);
    free(ljp_slot_chunks[i]);
    ljp_proto_entry_chunks[i] =
        calloc(LJP_SLOT_CHUNK, sizeof **ljp_proto_entry_chunks);
    ljp_slot_chunks[i] = calloc(LJP_SLOT_CHUNK, sizeof **ljp_slot_chunks);
    if (!ljp_proto_entry_chunks[i] || !ljp_slot_chunks[i])
      return -1;
    for (uint32_t k = 0; k < LJP_SLOT_CHUNK; k++)
      ljp_proto_entry_chunks[i][k].id = i * LJP_SLOT_CHUNK + k + 1;
  }
  freed_count = described = forgotten = steps = steps_wanted = 0;
  return 0;
}

static void die(uint32_t ref)
{
  ljp_lock(LJP_LOCK_PROTOS);
  ljp_proto_entry_wait(ljp_proto_entry_at(ref), ref);
  ljp_unlock(LJP_LOCK_PROTOS);
}

/* The references that a writer gets at the end of a round. The last call says
** that the writer has forgotten the earlier ones. */
static size_t round_of(const struct ljp_guest_hold *hold, uint32_t *refs)
{
  uint32_t more[7];
  size_t n = 0, got;
  ljp_guest_protos_round(hold->ticket);
  while ((got = ljp_guest_protos_gone(hold->ticket, more, 7)) > 0) {
    if (refs)
      memcpy(refs + n, more, got * sizeof *refs);
    n += got;
  }
  return n;
}

static void a_death_waits_for_the_end_of_the_second_round(void **state)
{
  struct ljp_guest_hold hold;
  uint32_t refs[ENTRIES];
  (void)state;
  ljp_guest_protos_hold(&hold, NULL);
  assert_int_equal(described, 1);
  ljp_guest_protos_ready(&hold);
  die(5);
  assert_int_equal(round_of(&hold, refs), 0);
  die(6); /* as if during the second round */
  ljp_guest_protos_round(hold.ticket);
  assert_int_equal(ljp_guest_protos_gone(hold.ticket, refs, 7), 1);
  assert_int_equal(refs[0], 5);
  assert_int_equal(freed_count, 0); /* the writer is about to forget it */
  assert_int_equal(ljp_guest_protos_gone(hold.ticket, refs, 7), 0);
  assert_int_equal(freed_count, 1);
  assert_int_equal(freed[0], 5);
  assert_int_equal(round_of(&hold, refs), 1);
  assert_int_equal(refs[0], 6);
  assert_int_equal(freed_count, 2);
  assert_int_equal(round_of(&hold, refs), 0);
  assert_int_equal(ljp_proto_waiting_bytes(), 0);
  ljp_guest_protos_release(&hold);
}

static void a_start_describes_in_steps_and_lets_waiters_in(void **state)
{
  struct ljp_guest_hold hold;
  (void)state;
  steps_wanted = 7;
  ljp_guest_protos_hold(&hold, NULL);
  assert_int_equal(described, 1);
  assert_int_equal(steps, 7);
  assert_int_equal(ljp_lock_words[LJP_LOCK_PROTOS], 0);
  ljp_guest_protos_release(&hold);
}

static void many_are_given_in_the_order_of_their_deaths(void **state)
{
  struct ljp_guest_hold hold;
  uint32_t refs[ENTRIES];
  (void)state;
  ljp_guest_protos_hold(&hold, NULL);
  ljp_guest_protos_ready(&hold);
  for (uint32_t i = 1; i < ENTRIES; i++)
    die(i * 17 % ENTRIES);
  assert_int_equal(ljp_proto_waiting_bytes(),
                   (ENTRIES - 1) * sizeof(struct ljp_proto_entry));
  round_of(&hold, refs);
  assert_int_equal(round_of(&hold, refs), ENTRIES - 1);
  for (uint32_t i = 1; i < ENTRIES; i++)
    assert_int_equal(refs[i - 1], i * 17 % ENTRIES);
  assert_int_equal(freed_count, ENTRIES - 1);
  ljp_guest_protos_release(&hold);
}

static void the_slower_of_two_writers_decides(void **state)
{
  struct ljp_guest_hold fast, slow;
  uint32_t refs[ENTRIES];
  (void)state;
  ljp_guest_protos_hold(&fast, NULL);
  ljp_guest_protos_ready(&fast);
  die(3); /* before the second hold begins: this entry waits for it, too */
  ljp_guest_protos_hold(&slow, NULL);
  assert_int_equal(described, 1);
  ljp_guest_protos_ready(&slow);
  for (uint32_t i = 11; i < 31; i++)
    die(i);
  round_of(&fast, refs);
  assert_int_equal(round_of(&fast, refs), 21);
  round_of(&fast, refs);
  assert_int_equal(freed_count, 0);
  round_of(&slow, refs);
  assert_int_equal(round_of(&slow, refs), 21);
  assert_int_equal(freed_count, 21);
  die(40);
  assert_int_equal(round_of(&fast, refs), 0);
  assert_int_equal(round_of(&fast, refs), 1);
  assert_int_equal(freed_count, 21);
  ljp_guest_protos_release(&slow);
  assert_int_equal(freed_count, 22);
  assert_int_equal(forgotten, 0);
  die(41);
  ljp_guest_protos_end(fast.ticket); /* its writer has ended */
  assert_int_equal(freed_count, 23);
  assert_int_equal(forgotten, (ENTRIES - 1) / LJP_SLOT_CHUNK + 1);
  forgotten = 0;
  ljp_guest_protos_release(&fast);
}

static void rounds_of_nobodys_ticket_say_nothing(void **state)
{
  struct ljp_guest_hold hold;
  uint32_t refs[ENTRIES];
  (void)state;
  ljp_guest_protos_hold(&hold, NULL);
  struct ljp_guest_hold late = hold;
  ljp_guest_protos_release(&hold);
  ljp_guest_protos_hold(&hold, NULL); /* in the same memory */
  die(2);
  for (int i = 0; i < 3; i++) /* before it is ready */
    assert_int_equal(round_of(&hold, refs), 0);
  ljp_guest_protos_ready(&hold);
  for (int i = 0; i < 3; i++) /* a writer that was given up */
    assert_int_equal(round_of(&late, refs), 0);
  ljp_guest_protos_end(late.ticket);
  assert_int_equal(freed_count, 0);
  assert_int_equal(round_of(&hold, refs), 0);
  assert_int_equal(round_of(&hold, refs), 1);
  assert_int_equal(freed_count, 1);
  ljp_guest_protos_release(&hold);
}

static void a_childs_writer_begins_anew(void **state)
{
  struct ljp_guest_hold hold;
  uint32_t refs[ENTRIES];
  int status;
  (void)state;
  ljp_guest_protos_hold(&hold, NULL);
  ljp_guest_protos_ready(&hold);
  die(2);
  round_of(&hold, refs); /* one of its two */
  pid_t pid = fork();
  if (pid == 0) {
    bool ok = round_of(&hold, refs) == 0 && round_of(&hold, refs) == 0;
    ljp_guest_protos_ready(&hold);
    ok = ok && round_of(&hold, refs) == 0 && freed_count == 0;
    ok = ok && round_of(&hold, refs) == 1 && freed_count == 1;
    _exit(ok ? 7 : 1);
  }
  assert_int_equal(waitpid(pid, &status, 0), pid);
  assert_true(WIFEXITED(status));
  assert_int_equal(WEXITSTATUS(status), 7);
  assert_int_equal(round_of(&hold, refs), 1);
  ljp_guest_protos_release(&hold);
}

static void names_that_the_dead_alone_use_are_counted(void **state)
{
  (void)state;
  assert_int_equal(ljp_chunk_names_dead_bytes(), 0);
  struct ljp_chunk_name *a = ljp_chunk_name_get("@a", 2, 1);
  struct ljp_chunk_name *b = ljp_chunk_name_get("=b", 2, 1);
  assert_ptr_equal(ljp_chunk_name_get("@a", 2, 1), a);
  assert_ptr_not_equal(a, b);
  assert_string_equal(b->name, "=b");
  ljp_chunk_name_dies(a);
  assert_int_equal(ljp_chunk_names_dead_bytes(), 0);
  ljp_chunk_name_dies(a);
  size_t bytes = sizeof *a + 3;
  assert_int_equal(ljp_chunk_names_dead_bytes(), bytes);
  assert_ptr_equal(ljp_chunk_name_get("@a", 2, 1), a); /* once more alive */
  assert_int_equal(ljp_chunk_names_dead_bytes(), 0);
  ljp_chunk_name_dies(a);
  ljp_chunk_name_dies(b);
  assert_int_equal(ljp_chunk_names_dead_bytes(), 2 * bytes);
  for (int i = 0; i < 3; i++)
    ljp_chunk_name_put(a);
  ljp_chunk_name_put(b);
  assert_int_equal(ljp_chunk_names_dead_bytes(), 0);
}

/* A session that was beginning when the process forked has left its hold in the
** child, where the next session begins. */
static void a_hold_that_is_there_already_is_made_anew(void **state)
{
  (void)state;
  struct ljp_guest_hold hold = {0}, other = {0};
  alarm(60); /* rather than to go round in circles */
  ljp_guest_protos_hold(&hold, NULL);
  ljp_guest_protos_hold(&other, NULL);
  ljp_guest_protos_hold(&hold, NULL);
  ljp_guest_protos_release(&other);
  ljp_guest_protos_release(&hold);
  alarm(0);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup(a_start_describes_in_steps_and_lets_waiters_in,
                             set_up),
      cmocka_unit_test_setup(a_death_waits_for_the_end_of_the_second_round,
                             set_up),
      cmocka_unit_test_setup(many_are_given_in_the_order_of_their_deaths,
                             set_up),
      cmocka_unit_test_setup(the_slower_of_two_writers_decides, set_up),
      cmocka_unit_test_setup(rounds_of_nobodys_ticket_say_nothing, set_up),
      cmocka_unit_test_setup(a_childs_writer_begins_anew, set_up),
      cmocka_unit_test_setup(a_hold_that_is_there_already_is_made_anew, set_up),
      cmocka_unit_test(names_that_the_dead_alone_use_are_counted),
  };
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  for (uint32_t i = 0; i * LJP_SLOT_CHUNK < ENTRIES; i++) {
    free(ljp_proto_entry_chunks[i]);
    free(ljp_slot_chunks[i]);
  }
  return failed;
}
