/*
** What the halves of the unwinder share: objects, tables, views. Only
** profilers/unwind_*.c include this.
**
** Ownership: a view borrows its objects; each object counts the views that do
** (writer only). A table belongs to its object, is published in it once, and
** is freed with it. Nothing that a handler can reach is ever changed, but for
** the atomics named here.
*/
#ifndef LJP_UNWIND_PRIV_H
#define LJP_UNWIND_PRIV_H

#include <stdatomic.h>
#include <stddef.h>

#include "profilers/unwind/unwind.h"
#include "profilers/unwind/cfi.h"

/* The registers that compiled rules restore, besides rsp and rip. */
enum { LJP_RULE_SAVED = 6 };
static const uint8_t ljp_rule_saved[LJP_RULE_SAVED] = {
    LJP_RBP, LJP_RBX, LJP_R12, LJP_R13, LJP_R14, LJP_R15};

enum ljp_rule_kind {
  LJP_RULE_NONE,      /* a gap between functions, or CFI that makes no sense */
  LJP_RULE_INTERPRET, /* expressible in CFI only: expressions and the like */
  LJP_RULE_END,
  LJP_RULE_REGULAR /* CFA = base + offset, return address just below it */
};

struct ljp_unwind_rule {
  int32_t cfa_offset;
  uint8_t kind, base;
  uint8_t saved;               /* bit i: ljp_rule_saved[i] is on the stack */
  int8_t slot[LJP_RULE_SAVED]; /* in words from the CFA */
  uint8_t zero[3];             /* rules are compared byte by byte */
};
_Static_assert(sizeof(struct ljp_unwind_rule) == 16, "a rule is small");

/* A compiled object: row i covers code offsets pc[i] .. pc[i + 1] and says
** rules[rule[i]]. start[b] is the last row that begins at or before offset
** b << shift, so that a search begins almost where it ends. */
struct ljp_unwind_table {
  uint32_t rows, buckets, rules_used;
  unsigned shift;
  uint32_t *pc;
  uint16_t *rule;
  uint32_t *start;
  struct ljp_unwind_rule *rules;
};

struct ljp_unwind_object {
  uint64_t lo, hi;  /* all its segments; code offsets count from lo */
  uint64_t header;  /* .eh_frame_hdr, or 0: no CFI */
  uint64_t witness; /* a word of the header, to know the object by */
  uint64_t frames;  /* .eh_frame */
  /* The sorted index: pairs of 32-bit offsets from header, code and FDE. It is
  ** the object's own, or one that we made. */
  uint64_t index, index_count;
  int32_t *own_index;
  uint32_t refs;
  /* The header has been read: what stands above from witness on is true. Until
  ** then its code is as good as unknown; see fresh.c. */
  _Atomic bool ready;
  _Atomic bool failed; /* could not be compiled; steps go on interpreting */
  _Atomic bool wanted;
  _Atomic(struct ljp_unwind_table *) table;
};

struct ljp_unwind_range {
  uint64_t lo, hi; /* an executable segment */
  struct ljp_unwind_object *object;
};

struct dl_find_object;

/* Ranges are sorted and disjoint. */
struct ljp_unwind_view {
  _Atomic bool *wants_poll;
  int (*finder)(void *, struct dl_find_object *); /* see fresh.c */
  uint32_t ranges_count, objects_count;
  struct ljp_unwind_range *ranges;
  struct ljp_unwind_object **objects;
  unsigned slot;
  uint64_t serial;
};

/* Views in use. A slot's counter is never freed, so a late handler may touch it
** at any time; see ljp_unwind_acquire. */
enum { LJP_UNWIND_SLOTS = 4 };
struct ljp_unwind_slot {
  _Alignas(64) _Atomic uint64_t users;
  struct ljp_unwind_view *view;
};

struct ljp_unwind {
  struct ljp_unwind_slot slots[LJP_UNWIND_SLOTS];
  _Atomic unsigned current;
  _Atomic uint64_t serial; /* of the current view */
  _Atomic bool wants_poll;
  _Atomic uint32_t hurried;
  struct ljp_unwind_writer *writer;
};

/* Where the word that identifies an object stands. */
static inline uint64_t ljp_unwind_witness_at(uint64_t header)
{
  return (header + 8) & ~UINT64_C(7);
}

/* find.c: the CFI for one address, copied from the object. */
enum { LJP_FDE_MAX = 1024, LJP_CIE_MAX = 192 };
struct ljp_found {
  struct ljp_cfi_cie cie;
  struct ljp_cfi_machine machine; /* .row is the one for the address */
  struct ljp_cfi_fde fde;
  uint8_t cie_bytes[LJP_CIE_MAX];
  uint8_t fde_bytes[LJP_FDE_MAX];
};
LJP_SIGSAFE enum ljp_unwind_result
ljp_unwind_find(const struct ljp_unwind_object *object, uint64_t pc,
                struct ljp_found *found);

/* apply.c: a row of CFI applied to a frame. */
LJP_SIGSAFE enum ljp_unwind_result
ljp_unwind_apply(const struct ljp_cfi_row *row, const struct ljp_cfi_cie *cie,
                 const struct ljp_cfi_span *fde, struct ljp_regs *regs);
LJP_SIGSAFE bool ljp_unwind_cfa_ok(uint64_t cfa, uint64_t rsp);

/* fresh.c: fills the object from its header; false if the header makes
** no sense. */
LJP_SIGSAFE bool ljp_unwind_read_header(struct ljp_unwind_object *object);
/* An object that no view knows yet, for as long as it is there. finder: glibc's
** _dl_find_object, or NULL. */
struct dl_find_object;
typedef int ljp_unwind_finder(void *address, struct dl_find_object *result);
LJP_SIGSAFE bool ljp_unwind_find_fresh(ljp_unwind_finder *finder, uint64_t pc,
                                       struct ljp_unwind_object *object);

/* crt.c: functions that have no CFI and are known by their bytes. */
LJP_SIGSAFE bool ljp_unwind_step_crt(uint64_t pc, struct ljp_regs *regs);

/* land.c: frames that are about to land where an error is caught. Does a
** row belong to such a function? */
LJP_SIGSAFE bool ljp_unwind_lands(const struct ljp_cfi_row *row);
/* What was stepped from frame to caller: is it the place of landing? Then its
** rsp is set right. */
LJP_SIGSAFE void ljp_unwind_land(const struct ljp_regs *frame,
                                 struct ljp_regs *caller);
/* Runs the last instructions of such a function, if these are next. */
LJP_SIGSAFE bool ljp_unwind_jump_off(const struct ljp_cfi_row *row,
                                     struct ljp_regs *regs);

/* object.c, writer's side. */
struct ljp_unwind_object *ljp_unwind_object_new(uint64_t lo, uint64_t hi,
                                                uint64_t header);
/* Reads the header, which may have to come from the disk. False if there is no
** memory; the object can then be read again later. */
bool ljp_unwind_object_read(struct ljp_unwind_object *object);
void ljp_unwind_object_free(struct ljp_unwind_object *object);

/* compile.c: says a row as a rule, if a rule can. */
void ljp_unwind_make_rule(const struct ljp_cfi_row *row, bool signal,
                          struct ljp_unwind_rule *rule);

/* compile.c, writer's side: an object's table, piece by piece. */
struct ljp_unwind_job;
struct ljp_unwind_job *ljp_unwind_job_new(struct ljp_unwind_object *object);
/* Works until the CLOCK_MONOTONIC time, or until *hurried (may be NULL). True when
** done; *table is then the result, or NULL if it failed, and the job is freed. */
bool ljp_unwind_job_run(struct ljp_unwind_job *job, uint64_t until_ns,
                        const _Atomic uint32_t *hurried,
                        struct ljp_unwind_table **table);
void ljp_unwind_job_free(struct ljp_unwind_job *job);
struct ljp_unwind_object *ljp_unwind_job_object(struct ljp_unwind_job *job);
void ljp_unwind_table_free(struct ljp_unwind_table *table);
uint64_t ljp_unwind_now_ns(void);

#endif
