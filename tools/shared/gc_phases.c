/*
** Writes what the collector's time went into, and how exactly that is known.
*/
#include "tools/shared/gc_phases.h"

#include <inttypes.h>
#include <math.h>

#include "tools/shared/units.h"

void ljp_gc_phases(struct ljp_print *out, const struct ljp_profile_gc_cost *c)
{
  if (!c->samples) {
    ljp_print_str(out, "no sample met the collector");
    return;
  }
  ljp_print_str(out, "marking ");
  ljp_units_time(out, c->mark_ns);
  ljp_print_str(out, ", sweeping ");
  ljp_units_time(out, c->sweep_ns);
  if (c->unplaced_ns) {
    ljp_print_str(out, ", in unknown phases ");
    ljp_units_time(out, c->unplaced_ns);
  }
  ljp_print_format(
      out, ", in %" PRIu64 " sample%s (+- %.0f %% in 95 of 100 cases)",
      c->samples, c->samples == 1 ? "" : "s", 200 / sqrt((double)c->samples));
}
