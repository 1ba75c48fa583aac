/* Fuzz target: any text as a budget. What the parser accepts keeps its bounds,
** and is accepted again in the same way; an error is within the text. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tools/expect/budget.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_within(struct ljp_str part, const char *text, size_t size)
{
  if (part.len && (part.data < text || part.data + part.len > text + size))
    abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  static struct ljp_budget budget;
  struct ljp_budget_error error;
  char *text = malloc(size + 1);
  if (!text)
    return 0;
  memcpy(text, data, size);
  text[size] = '\0';
  size = strlen(text);
  if (!ljp_budget_parse(text, &budget, &error)) {
    if (error.at > size || !*error.text)
      abort();
  } else {
    if (!budget.term_count || budget.term_count > LJP_BUDGET_TERMS ||
        !budget.unit)
      abort();
    check_within(budget.subject, text, size);
    for (unsigned i = 0; i < budget.term_count; i++) {
      check_within(budget.terms[i].base, text, size);
      if (isnan(budget.terms[i].factor))
        abort();
    }
  }
  free(text);
  return 0;
}
