/*
** See facts.h. A compiler makes a switch of the table's address, an entry, which is
** a distance from the table, and the sum of both.
*/
#include "profilers/unwind/facts.h"

enum ljp_fact_kind ljp_fact(const struct ljp_facts *facts, uint32_t reg,
                            const struct ljp_regs *start, uint64_t *address)
{
  for (uint32_t i = 0; i < LJP_FACTS; i++)
    if (facts->kind[i] && facts->reg[i] == reg) {
      *address = facts->address[i];
      return (enum ljp_fact_kind)facts->kind[i];
    }
  if (reg >= 16 || reg == LJP_RSP || !ljp_facts_same(facts, reg))
    return LJP_FACT_NONE;
  *address = start->r[reg];
  return LJP_FACT_ADDRESS;
}

/* If there is no room the oldest fact is forgotten. */
static void facts_put(struct ljp_facts *facts, uint32_t reg,
                      enum ljp_fact_kind kind, uint64_t address)
{
  uint32_t i = 0;
  while (i < LJP_FACTS - 1 && facts->kind[i])
    i++;
  for (; i > 0; i--) {
    facts->address[i] = facts->address[i - 1];
    facts->kind[i] = facts->kind[i - 1];
    facts->reg[i] = facts->reg[i - 1];
  }
  facts->address[0] = address;
  facts->kind[0] = (uint8_t)kind;
  facts->reg[0] = (uint8_t)reg;
}

void ljp_facts_forget(struct ljp_facts *facts, uint32_t registers)
{
  facts->same &= ~registers;
  for (uint32_t i = 0; i < LJP_FACTS; i++)
    if (registers >> facts->reg[i] & 1)
      facts->kind[i] = LJP_FACT_NONE;
}

void ljp_facts_tell(struct ljp_facts *facts, const struct ljp_insn *insn,
                    const struct ljp_regs *start)
{
  uint64_t one = insn->target, other = 0;
  enum ljp_fact_kind kind = LJP_FACT_NONE, more;
  switch (insn->kind) {
  case LJP_INSN_ADDRESS:
    kind = LJP_FACT_ADDRESS;
    break;
  case LJP_INSN_COPY:
    kind = ljp_fact(facts, insn->from, start, &one);
    break;
  case LJP_INSN_ENTRY:
    if (ljp_fact(facts, insn->from, start, &one) == LJP_FACT_ADDRESS)
      kind = LJP_FACT_ENTRY;
    break;
  case LJP_INSN_SUM:
    kind = ljp_fact(facts, insn->reg, start, &one);
    more = ljp_fact(facts, insn->from, start, &other);
    if (kind == LJP_FACT_ADDRESS && more == LJP_FACT_ADDRESS)
      one += other;
    else if (one == other &&
             ((kind == LJP_FACT_ADDRESS && more == LJP_FACT_ENTRY) ||
              (kind == LJP_FACT_ENTRY && more == LJP_FACT_ADDRESS)))
      kind = LJP_FACT_TARGET;
    else
      kind = LJP_FACT_NONE;
    break;
  case LJP_INSN_LOAD:
    kind = LJP_FACT_POINTER;
    break;
  default:
    break;
  }
  ljp_facts_forget(facts, insn->writes);
  if (kind)
    facts_put(facts, insn->reg, kind, one);
}
