/*
** Formats amounts with units.
*/
#include "tools/shared/units.h"

#include <inttypes.h>
#include <string.h>

static void units_scaled(struct ljp_print *out, double x, double step,
                         const char *const *units, unsigned count)
{
  unsigned i = 0;
  for (; i + 1 < count && x >= step * 0.9995; i++)
    x /= step;
  ljp_print_format(out,
                   i == 0 || x >= 99.95 ? "%.0f %s"
                   : x >= 9.995         ? "%.1f %s"
                                        : "%.2f %s",
                   x, units[i]);
}

void ljp_units_time(struct ljp_print *out, uint64_t ns)
{
  static const char *const units[] = {"ns", "us", "ms", "s"};
  units_scaled(out, (double)ns, 1000, units, 4);
}

void ljp_units_bytes(struct ljp_print *out, uint64_t bytes)
{
  static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  units_scaled(out, (double)bytes, 1024, units, 5);
}

void ljp_units_amount(struct ljp_print *out, uint64_t amount, const char *unit)
{
  if (strcmp(unit, "ns") == 0)
    ljp_units_time(out, amount);
  else if (strcmp(unit, "bytes") == 0)
    ljp_units_bytes(out, amount);
  else
    ljp_print_format(out, "%" PRIu64 " %s", amount, unit);
}
