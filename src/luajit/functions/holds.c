/*
** Who may still ask about prototypes that were freed: holds, one a session. Their
** records wait in the order of their deaths, each until all holds have passed it;
** see protos.c and RFC 3.
**
** Invariant: a hold has passed a death when its writer has forgotten the
** reference, and nothing that could mean it is left in a ring of its session. Of
** what a writer was given (up to the cursor) that is true when it asks for more.
**
** A writer calls with its ticket: one that was given up may come late, when the
** memory of its hold is another's.
*/
#include <string.h>
#include <unistd.h>

#include "src/luajit/vm/lock.h"
#include "src/luajit/functions/records.h"

enum { AT_ONCE = 256 };

struct ljp_guest_hold *ljp_proto_holds;
static uint32_t waiting_first, waiting_last;
static uint64_t last_death, last_ticket;
static size_t waiting_bytes; /* without chunks' names */

/* -- Records that wait ------------------------------------------------------
 */

/* What a record that waits takes. */
static size_t bytes_of(const struct ljp_proto_record *record)
{
  const struct ljp_proto_told *told = record->told;
  size_t bytes = sizeof *record;
  if (told)
    bytes += sizeof *told + (told->name ? strlen(told->name) + 1 : 0);
  return bytes;
}

size_t ljp_records_waiting_bytes(void)
{
  return waiting_bytes + ljp_chunk_names_dead_bytes();
}

void ljp_record_wait(struct ljp_proto_record *record, uint32_t ref)
{
  record->death = ++last_death;
  record->next = 0;
  if (waiting_last)
    ljp_record_at(waiting_last)->next = ref;
  else
    waiting_first = ref;
  waiting_last = ref;
  waiting_bytes += bytes_of(record);
}

/* Gives some of those free that nobody waits for. False: that were all. */
static bool free_some(void)
{
  uint64_t passed = UINT64_MAX;
  for (const struct ljp_guest_hold *h = ljp_proto_holds; h; h = h->next)
    if (h->passed < passed)
      passed = h->passed;
  for (int i = 0; i < AT_ONCE; i++) {
    uint32_t ref = waiting_first;
    struct ljp_proto_record *record = ljp_record_at(ref);
    if (!record || record->death > passed)
      return false;
    for (struct ljp_guest_hold *h = ljp_proto_holds; h; h = h->next)
      if (h->cursor == ref)
        h->cursor = 0;
    waiting_first = record->next;
    if (!waiting_first)
      waiting_last = 0;
    waiting_bytes -= bytes_of(record);
    ljp_record_free(record, ref);
  }
  return true;
}

/* -- Holds --------------------------------------------------------------------
 */

void ljp_guest_protos_hold(struct ljp_guest_hold *hold, void (*crowded)(void))
{
  ljp_locks_register_fork();
  ljp_lock(LJP_LOCK_PROTOS);
  if (!ljp_proto_holds)
    ljp_protos_describe_all();
  /* What waits already may come into its rings, too, until it is ready. */
  const struct ljp_proto_record *first = ljp_record_at(waiting_first);
  *hold =
      (struct ljp_guest_hold){.next = ljp_proto_holds,
                              .ticket = ++last_ticket,
                              .passed = first ? first->death - 1 : last_death,
                              .unnamed = ljp_protos_unnamed(),
                              .crowded = crowded};
  ljp_proto_holds = hold;
  ljp_unlock(LJP_LOCK_PROTOS);
}

void ljp_guest_protos_ready(struct ljp_guest_hold *hold)
{
  ljp_lock(LJP_LOCK_PROTOS);
  hold->pid = getpid();
  hold->marked = hold->drained = 0;
  ljp_unlock(LJP_LOCK_PROTOS);
}

/* The hold of a ticket, NULL if it has ended; in a fork's child, or before it is
** ready, its writer's rounds say nothing. */
static struct ljp_guest_hold *hold_of(uint64_t ticket)
{
  struct ljp_guest_hold *hold = ljp_proto_holds;
  while (hold && hold->ticket != ticket)
    hold = hold->next;
  return hold && hold->pid == getpid() ? hold : NULL;
}

void ljp_guest_protos_round(uint64_t ticket)
{
  ljp_lock(LJP_LOCK_PROTOS);
  struct ljp_guest_hold *hold = hold_of(ticket);
  if (hold) {
    hold->drained = hold->marked;
    hold->marked = last_death;
  }
  ljp_unlock(LJP_LOCK_PROTOS);
}

size_t ljp_guest_protos_gone(uint64_t ticket, uint32_t *refs, size_t room)
{
  size_t n = 0;
  ljp_lock(LJP_LOCK_PROTOS);
  struct ljp_guest_hold *hold = hold_of(ticket);
  if (hold) {
    if (hold->cursor)
      hold->passed = ljp_record_at(hold->cursor)->death;
    free_some();
    uint32_t ref =
        hold->cursor ? ljp_record_at(hold->cursor)->next : waiting_first;
    while (n < room && ref && ljp_record_at(ref)->death <= hold->drained) {
      hold->cursor = refs[n++] = ref;
      ref = ljp_record_at(ref)->next;
    }
  }
  ljp_unlock(LJP_LOCK_PROTOS);
  return n;
}

void ljp_guest_protos_end(uint64_t ticket)
{
  ljp_lock(LJP_LOCK_PROTOS);
  struct ljp_guest_hold **link = &ljp_proto_holds;
  while (*link && (*link)->ticket != ticket)
    link = &(*link)->next;
  if (*link)
    *link = (*link)->next;
  ljp_unlock(LJP_LOCK_PROTOS);
  for (bool more = true; more;) { /* hooks wait for the lock: not for long */
    ljp_lock(LJP_LOCK_PROTOS);
    more = free_some();
    ljp_unlock(LJP_LOCK_PROTOS);
  }
}

void ljp_guest_protos_release(struct ljp_guest_hold *hold)
{
  ljp_guest_protos_end(hold->ticket);
}

uint64_t ljp_guest_protos_unnamed(const struct ljp_guest_hold *hold)
{
  ljp_lock(LJP_LOCK_PROTOS);
  uint64_t count = ljp_protos_unnamed() - hold->unnamed;
  ljp_unlock(LJP_LOCK_PROTOS);
  return count;
}
