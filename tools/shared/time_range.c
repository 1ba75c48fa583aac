/*
** Parses ranges of seconds.
*/
#include "tools/shared/time_range.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "tools/shared/command.h"

/* False: not a number of seconds. */
static bool range_seconds(const char *text, size_t len, uint64_t *ns)
{
  char copy[32], *end;
  if (len == 0 || len >= sizeof copy)
    return false;
  memcpy(copy, text, len);
  copy[len] = '\0';
  if ((copy[0] < '0' || copy[0] > '9') && copy[0] != '.')
    return false;
  double value = strtod(copy, &end);
  if (*end || !(value >= 0 && value < 9e9))
    return false;
  *ns = (uint64_t)llround(value * 1e9);
  return true;
}

int ljp_time_range(const char *command, const char *text, uint64_t *from_ns,
                   uint64_t *to_ns)
{
  const char *wanted = "a range of seconds such as 1.5..3, ..3 or 1.5..";
  const char *dots = strstr(text, "..");
  bool ok =
      dots &&
      (dots == text || range_seconds(text, (size_t)(dots - text), from_ns)) &&
      (!dots[2] || range_seconds(dots + 2, strlen(dots + 2), to_ns));
  if (ok && dots[2] && *to_ns <= *from_ns) {
    wanted = "a range whose end is after its start";
    ok = false;
  }
  if (!ok)
    ljp_command_error(command, "--time: '%s' is not %s", text, wanted);
  return ok ? 0 : LJP_EXIT_USAGE;
}
