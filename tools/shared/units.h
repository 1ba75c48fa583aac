/*
** Units: amounts for people, with three significant digits: 12.3 ms, 4.50 MiB.
*/
#ifndef LJP_TOOLS_UNITS_H
#define LJP_TOOLS_UNITS_H

#include "tools/shared/print.h"

void ljp_units_time(struct ljp_print *out, uint64_t ns);
void ljp_units_bytes(struct ljp_print *out, uint64_t bytes);
/* unit: "ns", "bytes", or what is counted. */
void ljp_units_amount(struct ljp_print *out, uint64_t amount, const char *unit);

#endif
