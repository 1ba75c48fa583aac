/*
** Host unwinding: from the registers at any instruction of ordinary machine
** code to those of its caller, by the call frame information (CFI) that every
** object carries for exceptions. RFC 2 says how and why.
**
** There are two sides. A signal handler borrows a map of the loaded objects,
** steps through it, and gives it back; this side never allocates, locks, or
** faults. The writer thread keeps the map up to date and compiles tables for
** the objects in which samples fall; this side is one thread at a time.
**
** A step either ends with the caller's registers or says why it cannot. It
** never guesses. It knows nothing of VM frames or of compiled Lua code: for an
** address there the result is LJP_UNWIND_NO_MODULE, if the caller asks at all.
*/
#ifndef LJP_UNWIND_H
#define LJP_UNWIND_H

#include <stdbool.h>
#include <stdint.h>

#include "src/base/regs.h"
#include "src/base/sigsafe.h"
#include "src/base/status.h"

/* How a step ended. All but the first leave the registers as they were. */
#define LJP_UNWIND_LIST(_)                                                     \
  _(STEPPED, 0, "stepped")                                                     \
  _(END, 1, "end of the stack")                                                \
  _(NO_MODULE, 2, "address in no loaded object")                               \
  _(NO_CFI, 3, "object without frame information")                             \
  _(NO_RULE, 4, "address not covered by frame information")                    \
  _(BAD_CFI, 5, "malformed or unsupported frame information")                  \
  _(TOO_LONG, 6, "frame description longer than the buffer")                   \
  _(STALE, 7, "object replaced since its description was read")                \
  _(BAD_CFA, 8, "frame address not above the last, or too far")                \
  _(UNREADABLE, 9, "stack not readable")                                       \
  _(UNKNOWN_REG, 10, "rule needs a register whose value is lost")              \
  _(BAD_RETURN, 11, "return address does not follow a call")

enum ljp_unwind_result {
#define LJP_UNWIND_ENUM(name, number, text) LJP_UNWIND_##name = number,
  LJP_UNWIND_LIST(LJP_UNWIND_ENUM)
#undef LJP_UNWIND_ENUM
};

/* Not LJP_SIGSAFE. */
const char *ljp_unwind_result_text(enum ljp_unwind_result result);

struct ljp_unwind;     /* one for the process: maps, objects, tables */
struct ljp_unwind_map; /* one state of the loaded objects; never changes */

/* -- The handler's side ---------------------------------------------------- */

/* All registers of the interrupted context; exact. context: ucontext_t. */
LJP_SIGSAFE void ljp_regs_from_context(struct ljp_regs *regs,
                                       const void *context,
                                       struct ljp_unwind_room *room);

/* Borrows the current map until it is released. NULL if the map is being
** replaced at this very moment (rare: count a loss). Each acquire needs its
** release before the handler returns. */
LJP_SIGSAFE const struct ljp_unwind_map *
ljp_unwind_acquire(struct ljp_unwind *unwind);
LJP_SIGSAFE void ljp_unwind_release(struct ljp_unwind *unwind,
                                    const struct ljp_unwind_map *map);

/* No two maps have the same serial. */
LJP_SIGSAFE uint64_t ljp_unwind_map_serial(const struct ljp_unwind_map *map);

/* Where a step reads CFI: too large for a coroutine's stack. One thread at a
** time. */
struct ljp_unwind_room {
  uint64_t words[320];
};

/* From a frame to its caller, in the room that the registers name. The CFA is
** above the old rsp by at most 64 MiB.
** Across a signal frame it may be anywhere, because the interrupted stack may
** be another one; so the caller needs a depth cap of its own. Reads the stack
** only by src/base/saferead.h. */
LJP_SIGSAFE enum ljp_unwind_result
ljp_unwind_step(const struct ljp_unwind_map *map, struct ljp_regs *regs);

/* Is this code address in a loaded object's executable part? */
LJP_SIGSAFE bool ljp_unwind_has_module(const struct ljp_unwind_map *map,
                                       uint64_t address);

/* Has a step met an address without a module or a table since the last poll?
** The handler may then wake the writer. */
LJP_SIGSAFE bool ljp_unwind_wants_poll(const struct ljp_unwind *unwind);

/* Do steps find objects that were loaded after the last poll? Any thread; the answer
** never changes. */
bool ljp_unwind_finds_new(const struct ljp_unwind *unwind);

/* -- For callers that remember steps --------------------------------------- */

/* Where the current map's serial is kept. Valid as long as unwind. */
const _Atomic uint64_t *ljp_unwind_serial(const struct ljp_unwind *unwind);

/* A step from a return address that is always the same: the caller's rsp is
** rsp or rbp plus cfa, its rip is in the word below, and each saved register is
** at a fixed distance. Good for the map that it was made from, as long as the
** witness has its value. */
struct ljp_unwind_plain {
  int32_t cfa; /* from rsp, or from rbp */
  bool from_rbp;
  int8_t rbx, rbp, r14; /* in words from the caller's rsp; 0: not saved */
  uint64_t witness_at, witness;
};
/* False: the step from this address is not so plain. */
bool ljp_unwind_plain_step(const struct ljp_unwind_map *map, uint64_t rip,
                           struct ljp_unwind_plain *plain,
                           struct ljp_unwind_room *room);
/* The address of the witness of the object that holds an address; 0: there is
** none. */
uint64_t ljp_unwind_witness_of(const struct ljp_unwind_map *map,
                               uint64_t address);

/* -- The writer's side ----------------------------------------------------- */

/* Reads the list of loaded objects and publishes the first map. Compiles
** nothing: until an object has a table, steps interpret its CFI. */
enum ljp_status ljp_unwind_new(struct ljp_unwind **out);

/* No handler may be using it any more, or start to. */
void ljp_unwind_free(struct ljp_unwind *unwind);

/* Follows dlopen and dlclose, and nothing else: quick. */
enum ljp_status ljp_unwind_refresh(struct ljp_unwind *unwind);

/* One round, for the writer: follows dlopen and dlclose, reads the headers of
** new objects, compiles tables for objects that steps have met, and frees what
** no handler can be using. Compiles for about budget_us microseconds, and at
** least a little; 0: until everything is done. */
enum ljp_status ljp_unwind_poll(struct ljp_unwind *unwind, uint32_t budget_us);

/* Somebody is waiting for the polling thread: between begin and end a poll
** compiles nothing more. Calls nest; any thread. */
void ljp_unwind_hurry(struct ljp_unwind *unwind, bool begin);

/* In a forked child, before its first acquire: none of the parent's handlers
** runs here, whatever the copied counters say. */
void ljp_unwind_after_fork(struct ljp_unwind *unwind);

struct ljp_unwind_stats {
  uint64_t maps;         /* published so far */
  uint64_t retired_busy; /* rounds in which a map had to be kept or put off */
  uint32_t objects;      /* in the current map */
  uint32_t tables;       /* those of them with a table */
  uint64_t rows;         /* in those tables */
  uint64_t table_bytes;
  uint64_t compile_ns; /* spent on tables so far */
  uint64_t failed;     /* objects whose tables could not be compiled */
};
void ljp_unwind_stats(struct ljp_unwind *unwind, struct ljp_unwind_stats *out);

#endif
