/*
** Takes the place of autostart.c in a library without profilers: says that
** nothing is recorded.
*/
#include "profilers/api/autostart.h"

#include <stdlib.h>
#include <unistd.h>

void ljp_autostart(lua_State *L)
{
  static const char text[] =
      "ljprof: not recorded: this library was built without profilers\n";
  static int told;
  (void)L;
  if (!told &&
      (secure_getenv("LJPROF_RECORD") || secure_getenv("LJPROF_LISTEN") ||
       secure_getenv("LJPROF_PUBLISH_LABELS"))) {
    told = 1;
    if (write(STDERR_FILENO, text, sizeof text - 1) < 0)
      return;
  }
}
