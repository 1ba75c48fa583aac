/*
** From a row of CFI to a compiled rule.
**
** A rule says exactly what its row says, or "interpret".
** Safety: ordinary code; calls nothing that allocates or locks.
*/
#include <string.h>

#include "profilers/unwind/step.h"
#include "profilers/unwind/table.h"

void ljp_unwind_make_rule(const struct ljp_cfi_row *row, bool signal,
                          struct ljp_unwind_rule *rule)
{
  memset(rule, 0, sizeof *rule);
  rule->kind = LJP_RULE_INTERPRET;
  if (row->how[LJP_RIP] == LJP_HOW_UNDEFINED) {
    rule->kind = LJP_RULE_END;
    return;
  }
  if (signal || ljp_unwind_is_eh_return(row) ||
      row->cfa_how != LJP_HOW_REGISTER || row->how[LJP_RIP] != LJP_HOW_OFFSET ||
      row->arg[LJP_RIP] != -8 || row->how[LJP_RSP] != LJP_HOW_DEFAULT)
    return;
  struct ljp_unwind_rule result = {.cfa_offset = row->cfa_arg,
                                   .kind = LJP_RULE_REGULAR,
                                   .base = row->cfa_reg};
  for (unsigned i = 0; i < LJP_RULE_SAVED; i++) {
    unsigned reg = ljp_rule_saved[i];
    int32_t arg = row->arg[reg];
    if (row->how[reg] == LJP_HOW_DEFAULT || row->how[reg] == LJP_HOW_SAME)
      continue;
    if (row->how[reg] != LJP_HOW_OFFSET || arg % 8 || arg / 8 < INT8_MIN ||
        arg / 8 > INT8_MAX)
      return;
    result.saved |= (uint8_t)(1u << i);
    result.slot[i] = (int8_t)(arg / 8);
  }
  *rule = result;
}
