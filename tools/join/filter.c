/*
** See filter.h. A filter is run for each number of a system call, with everything else
** that it may look at unknown. Its jumps lead forward only, so one pass over its
** instructions is enough: where two ways meet, a word that differs is unknown.
*/
#include "tools/join/filter.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <stdint.h>
#include <string.h>
#include <sys/ptrace.h>

enum { MOST_CALLS = 1024, MEMORY = BPF_MEMWORDS };
/* The kernel allows 32768 instructions in all filters of a thread. */
enum { MOST_FILTERS = 256, MOST_CODE = 32768 };

/* The accumulator, the index register, the memory. */
enum { A, X, M, WORDS = M + MEMORY };

struct state {
  bool reached;
  bool known[WORDS];
  uint32_t word[WORDS];
};

static void filter_meet(struct state *at, const struct state *from)
{
  if (!at->reached) {
    *at = *from;
    return;
  }
  for (int i = 0; i < WORDS; i++)
    at->known[i] =
        at->known[i] && from->known[i] && at->word[i] == from->word[i];
}

static void filter_set(struct state *s, int word, bool known, uint32_t value)
{
  s->known[word] = known;
  s->word[word] = known ? value : 0;
}

/* false: there is no such instruction in filters of seccomp. */
static bool filter_load(struct state *s, const struct sock_filter *f,
                        uint32_t number)
{
  int to = BPF_CLASS(f->code) == BPF_LD ? A : X;
  switch (BPF_MODE(f->code)) {
  case BPF_ABS:
    if (f->k == offsetof(struct seccomp_data, nr))
      filter_set(s, to, true, number);
    else if (f->k == offsetof(struct seccomp_data, arch))
      filter_set(s, to, true, AUDIT_ARCH_X86_64);
    else
      filter_set(s, to, false, 0);
    return true;
  case BPF_IMM:
    filter_set(s, to, true, f->k);
    return true;
  case BPF_LEN:
    filter_set(s, to, true, sizeof(struct seccomp_data));
    return true;
  case BPF_MEM:
    if (f->k >= MEMORY)
      return false;
    filter_set(s, to, s->known[M + f->k], s->word[M + f->k]);
    return true;
  default:
    return false;
  }
}

static bool filter_calculate(struct state *s, const struct sock_filter *f)
{
  bool by_x = BPF_SRC(f->code) == BPF_X;
  uint32_t a = s->word[A], b = by_x ? s->word[X] : f->k;
  bool known = s->known[A] && (!by_x || s->known[X]);
  switch (BPF_OP(f->code)) {
  case BPF_ADD:
    a += b;
    break;
  case BPF_SUB:
    a -= b;
    break;
  case BPF_MUL:
    a *= b;
    break;
  case BPF_DIV:
    known = known && b;
    a = known ? a / b : 0;
    break;
  case BPF_AND:
    a &= b;
    break;
  case BPF_OR:
    a |= b;
    break;
  case BPF_XOR:
    a ^= b;
    break;
  case BPF_LSH:
    a = b < 32 ? a << b : 0;
    break;
  case BPF_RSH:
    a = b < 32 ? a >> b : 0;
    break;
  case BPF_NEG:
    known = s->known[A];
    a = 0 - a;
    break;
  default:
    return false;
  }
  filter_set(s, A, known, a);
  return true;
}

struct run {
  const struct sock_filter *code;
  size_t count;
  struct state *at;
};

static bool filter_go(const struct run *r, size_t to, const struct state *s)
{
  if (to >= r->count)
    return false;
  filter_meet(&r->at[to], s);
  return true;
}

static bool filter_jump(const struct run *r, size_t i, const struct state *s)
{
  const struct sock_filter *f = &r->code[i];
  bool by_x = BPF_SRC(f->code) == BPF_X, met = false;
  uint32_t a = s->word[A], b = by_x ? s->word[X] : f->k;
  if (BPF_OP(f->code) == BPF_JA)
    return f->k < r->count && filter_go(r, i + 1 + f->k, s);
  switch (BPF_OP(f->code)) {
  case BPF_JEQ:
    met = a == b;
    break;
  case BPF_JGT:
    met = a > b;
    break;
  case BPF_JGE:
    met = a >= b;
    break;
  case BPF_JSET:
    met = (a & b) != 0;
    break;
  default:
    return false;
  }
  bool known = s->known[A] && (!by_x || s->known[X]);
  return (known && !met ? true : filter_go(r, i + 1 + f->jt, s)) &&
         (known && met ? true : filter_go(r, i + 1 + f->jf, s));
}

static bool filter_answers_well(const struct sock_filter *f,
                                const struct state *s)
{
  bool by_a = BPF_RVAL(f->code) == BPF_A;
  uint32_t action = (by_a ? s->word[A] : f->k) & SECCOMP_RET_ACTION_FULL;
  return (!by_a || s->known[A]) &&
         (action == SECCOMP_RET_ALLOW || action == SECCOMP_RET_ERRNO ||
          action == SECCOMP_RET_LOG);
}

/* One instruction; false: the filter may do harm, or is none. */
static bool filter_step(const struct run *r, size_t i, uint32_t number)
{
  const struct sock_filter *f = &r->code[i];
  struct state s = r->at[i];
  bool good = true;
  switch (BPF_CLASS(f->code)) {
  case BPF_LD:
  case BPF_LDX:
    good = filter_load(&s, f, number);
    break;
  case BPF_ST:
  case BPF_STX: {
    int from = BPF_CLASS(f->code) == BPF_ST ? A : X;
    good = f->k < MEMORY;
    if (good)
      filter_set(&s, M + (int)f->k, s.known[from], s.word[from]);
    break;
  }
  case BPF_ALU:
    good = filter_calculate(&s, f);
    break;
  case BPF_JMP:
    return filter_jump(r, i, &s);
  case BPF_RET:
    return filter_answers_well(f, &s);
  default: { /* BPF_MISC */
    bool to_x = BPF_MISCOP(f->code) == BPF_TAX;
    filter_set(&s, to_x ? X : A, s.known[to_x ? A : X], s.word[to_x ? A : X]);
  }
  }
  return good && filter_go(r, i + 1, &s);
}

bool ljp_filter_is_harmless(const struct sock_filter *code, size_t count)
{
  static struct state at[BPF_MAXINSNS];
  if (!count || count > BPF_MAXINSNS)
    return false;
  const struct run r = {code, count, at};
  for (uint32_t number = 0; number < MOST_CALLS; number++) {
    for (size_t i = 0; i < count; i++)
      at[i].reached = false;
    at[0] = (struct state){.reached = true};
    for (size_t i = 0; i < count; i++)
      if (at[i].reached && !filter_step(&r, i, number))
        return false;
  }
  return true;
}

/* -- Of a thread ----------------------------------------------------------- */

static struct filters {
  enum ljp_filters
      state; /* before they are judged: HARMLESS, if all were read */
  size_t filters, instructions;
  size_t counts[MOST_FILTERS];
  struct sock_filter code[MOST_CODE];
} filters, judged; /* judged: the last ones that were harmless */

void ljp_filters_read(pid_t tid)
{
  struct filters *f = &filters;
  f->filters = f->instructions = 0;
  f->state = LJP_FILTERS_HARMFUL;
  for (;;) {
    void *which = (void *)(uintptr_t)f->filters;
    long count = ptrace(PTRACE_SECCOMP_GET_FILTER, tid, which, NULL);
    if (count < 0 && errno == ENOENT && f->filters)
      f->state = LJP_FILTERS_HARMLESS;
    else if (count < 0 && errno == EACCES)
      f->state = LJP_FILTERS_UNSEEN;
    if (count <= 0 || f->filters == MOST_FILTERS ||
        (size_t)count > MOST_CODE - f->instructions ||
        ptrace(PTRACE_SECCOMP_GET_FILTER, tid, which,
               &f->code[f->instructions]) != count)
      return;
    f->counts[f->filters++] = (size_t)count;
    f->instructions += (size_t)count;
  }
}

static bool filters_were_judged(const struct filters *f)
{
  return judged.filters == f->filters &&
         memcmp(judged.counts, f->counts, f->filters * sizeof *f->counts) ==
             0 &&
         memcmp(judged.code, f->code, f->instructions * sizeof *f->code) == 0;
}

enum ljp_filters ljp_filters_judge(void)
{
  struct filters *f = &filters;
  if (f->state != LJP_FILTERS_HARMLESS || filters_were_judged(f))
    return f->state;
  size_t at = 0;
  for (size_t i = 0; i < f->filters; at += f->counts[i++])
    if (!ljp_filter_is_harmless(&f->code[at], f->counts[i]))
      return f->state = LJP_FILTERS_HARMFUL;
  judged = *f;
  return f->state;
}

const char *ljp_filters_hint(enum ljp_filters state)
{
  return state == LJP_FILTERS_UNSEEN
             ? "try sudo, since only root can see whether it does, or "
             : "if it does not, ";
}
