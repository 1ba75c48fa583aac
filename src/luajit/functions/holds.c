/*
** Holds: a session's claim that its writer may ask about freed prototypes. The
** entries of freed prototypes wait in the order of their deaths, each until all
** holds have passed it (prototypes.c, RFC 3).
**
** Invariant: a hold has passed a death when its writer has forgotten the
** reference, and no ring of its session holds anything that could refer to it.
** For the references that a writer was given (up to the cursor), this is true
** when the writer asks for more.
**
** A writer calls with its ticket, because a writer that was given up may call
** late, when another hold uses the memory of its hold.
*/
#include <string.h>
#include <unistd.h>

#include "src/base/assert.h"
#include "src/luajit/vm/lock.h"
#include "src/luajit/functions/entries.h"
#include "src/luajit/functions/proto_names.h"

enum { AT_ONCE = 256 };

struct ljp_guest_hold *ljp_proto_holds;
static uint32_t hold_waiting_first, hold_waiting_last;
static uint64_t hold_last_death, hold_last_ticket;
static size_t hold_waiting_bytes; /* without chunks' names */

/* -- Waiting entries ------------------------------------------------------- */

/* The bytes that a waiting entry takes. */
static size_t hold_bytes_of(const struct ljp_proto_entry *entry)
{
  return sizeof *entry + strlen(ljp_proto_name(entry->name));
}

size_t ljp_proto_waiting_bytes(void)
{
  return hold_waiting_bytes + ljp_chunk_names_dead_bytes();
}

void ljp_proto_entry_wait(struct ljp_proto_entry *entry, uint32_t ref)
{
  entry->death = ++hold_last_death;
  entry->next = 0;
  if (hold_waiting_last)
    ljp_proto_entry_at(hold_waiting_last)->next = ref;
  else
    hold_waiting_first = ref;
  hold_waiting_last = ref;
  hold_waiting_bytes += hold_bytes_of(entry);
}

/* Frees some entries that no hold waits for. False: there are no more. */
static bool hold_free_some(void)
{
  uint64_t passed = UINT64_MAX;
  for (const struct ljp_guest_hold *h = ljp_proto_holds; h; h = h->next)
    if (h->passed < passed)
      passed = h->passed;
  for (int i = 0; i < AT_ONCE; i++) {
    uint32_t ref = hold_waiting_first;
    struct ljp_proto_entry *entry = ljp_proto_entry_at(ref);
    if (!entry || entry->death > passed)
      return false;
    for (struct ljp_guest_hold *h = ljp_proto_holds; h; h = h->next)
      if (h->cursor == ref)
        h->cursor = 0;
    ljp_assert(!ljp_slot_owner(ref) && entry->death > 0);
    hold_waiting_first = entry->next;
    if (!hold_waiting_first)
      hold_waiting_last = 0;
    hold_waiting_bytes -= hold_bytes_of(entry);
    ljp_proto_entry_free(entry, ref);
  }
  return true;
}

/* -- Holds ----------------------------------------------------------------- */

/* A session that was beginning or ending when the process forked has left its
** hold in the child; one of a client, too. Nobody ends these there. */
static void hold_drop_stale(const struct ljp_guest_hold *wanted)
{
  struct ljp_guest_hold **link = &ljp_proto_holds;
  while (*link)
    if (*link == wanted || ((*link)->pid && (*link)->pid != getpid()))
      *link = (*link)->next;
    else
      link = &(*link)->next;
}

void ljp_guest_protos_hold(struct ljp_guest_hold *hold, void (*crowded)(void))
{
  ljp_lock(LJP_LOCK_PROTOS);
  uint64_t unnamed = ljp_protos_unnamed();
  hold_drop_stale(hold);
  if (!ljp_proto_holds)
    ljp_protos_describe_begin();
  /* Until the hold is ready, references to entries that already wait may still
  ** get into its rings. */
  const struct ljp_proto_entry *first = ljp_proto_entry_at(hold_waiting_first);
  *hold = (struct ljp_guest_hold){.next = ljp_proto_holds,
                                  .ticket = ++hold_last_ticket,
                                  .passed = first ? first->death - 1
                                                  : hold_last_death,
                                  .unnamed = unnamed,
                                  .crowded = crowded};
  ljp_proto_holds = hold;
  /* In steps, because threads that load code wait for the lock. Functions that
  ** are made or freed in between belong to this hold already. */
  while (ljp_protos_describe_more())
    ljp_lock_share(LJP_LOCK_PROTOS);
  ljp_unlock(LJP_LOCK_PROTOS);
}

void ljp_guest_protos_ready(struct ljp_guest_hold *hold)
{
  ljp_lock(LJP_LOCK_PROTOS);
  hold->pid = getpid();
  hold->marked = hold->drained = 0;
  ljp_unlock(LJP_LOCK_PROTOS);
}

/* The hold of a ticket. NULL: the hold has ended, or rounds of its writer do
** not count, because it is not ready yet or belongs to the parent of a
** fork(). */
static struct ljp_guest_hold *hold_find(uint64_t ticket)
{
  struct ljp_guest_hold *hold = ljp_proto_holds;
  while (hold && hold->ticket != ticket)
    hold = hold->next;
  return hold && hold->pid == getpid() ? hold : NULL;
}

void ljp_guest_protos_round(uint64_t ticket)
{
  ljp_lock(LJP_LOCK_PROTOS);
  struct ljp_guest_hold *hold = hold_find(ticket);
  if (hold) {
    hold->drained = hold->marked;
    hold->marked = hold_last_death;
  }
  ljp_unlock(LJP_LOCK_PROTOS);
}

size_t ljp_guest_protos_gone(uint64_t ticket, uint32_t *refs, size_t room)
{
  size_t n = 0;
  ljp_lock(LJP_LOCK_PROTOS);
  struct ljp_guest_hold *hold = hold_find(ticket);
  if (hold) {
    if (hold->cursor)
      hold->passed = ljp_proto_entry_at(hold->cursor)->death;
    hold_free_some();
    uint32_t ref = hold->cursor ? ljp_proto_entry_at(hold->cursor)->next
                                : hold_waiting_first;
    while (n < room && ref && ljp_proto_entry_at(ref)->death <= hold->drained) {
      hold->cursor = refs[n++] = ref;
      ref = ljp_proto_entry_at(ref)->next;
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
  for (bool more = true; more;) { /* in steps: hooks wait for the lock */
    ljp_lock(LJP_LOCK_PROTOS);
    more = hold_free_some();
    ljp_unlock(LJP_LOCK_PROTOS);
  }
  uint32_t chunk = 0;
  for (bool more = true; more;) {
    ljp_lock(LJP_LOCK_PROTOS);
    more =
        !ljp_proto_holds && !hold_waiting_first && ljp_protos_forget(chunk++);
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
