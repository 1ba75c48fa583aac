/*
** See labels.h.
*/
#include "tools/shared/labels.h"

#include <string.h>

#include "tools/shared/command.h"

const char *ljp_label_key(const char *by)
{
  static const char start[] = "label:";
  const size_t len = sizeof start - 1;
  return strncmp(by, start, len) == 0 && by[len] ? by + len : NULL;
}

int ljp_label_options(const char *command,
                      const struct ljp_label_options *given,
                      struct ljp_profile_options *options)
{
  for (unsigned i = 0; i < LJP_LABEL_FILTERS && given->labels[i]; i++) {
    const char *label = given->labels[i];
    if (!strchr(label, '=') || *label == '=') {
      ljp_command_error(command,
                        "--label: '%s' is not KEY=VALUE (KEY= for what does "
                        "not have KEY)",
                        label);
      return LJP_EXIT_USAGE;
    }
    options->labels.list[options->labels.count++] = label;
  }
  if (!given->by)
    return 0;
  options->label_key = ljp_label_key(given->by);
  options->label_frames = true;
  if (options->label_key)
    return 0;
  ljp_command_error(command, "--by: '%s' is not label:KEY", given->by);
  return LJP_EXIT_USAGE;
}
