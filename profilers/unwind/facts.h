/*
** Facts: what is known of registers while code is followed. Where a switch jumps
** through a table, they tell where the table is.
**
** Private to profilers/unwind. Safety: LJP_SIGSAFE throughout; reads no memory.
*/
#ifndef LJP_UNWIND_FACTS_H
#define LJP_UNWIND_FACTS_H

#include "profilers/unwind/instruction.h"
#include "profilers/unwind/unwind.h"

/* What a register has. */
enum ljp_fact_kind {
  LJP_FACT_NONE,
  LJP_FACT_ADDRESS, /* this address */
  LJP_FACT_ENTRY,   /* an entry of the table there */
  LJP_FACT_TARGET,  /* the sum of both */
  LJP_FACT_POINTER  /* a word from memory that is no entry */
};

enum { LJP_FACTS = 3 };

struct ljp_facts {
  uint64_t address[LJP_FACTS]; /* the newest first */
  uint32_t same; /* registers that are as at the start; DWARF's numbers */
  uint8_t kind[LJP_FACTS], reg[LJP_FACTS];
};

/* start: the registers where the way began. */
LJP_SIGSAFE enum ljp_fact_kind ljp_fact(const struct ljp_facts *facts,
                                        uint32_t reg,
                                        const struct ljp_regs *start,
                                        uint64_t *address);

/* What the instruction makes of facts, and the end of those that it changes. */
LJP_SIGSAFE void ljp_facts_tell(struct ljp_facts *facts,
                                const struct ljp_insn *insn,
                                const struct ljp_regs *start);

LJP_SIGSAFE void ljp_facts_forget(struct ljp_facts *facts, uint32_t registers);

LJP_SIGSAFE static inline bool ljp_facts_same(const struct ljp_facts *facts,
                                              uint32_t reg)
{
  return facts->same >> reg & 1;
}

#endif
