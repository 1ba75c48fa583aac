/*
** Settings by hand: what LJPROF_RECORD says if it does not come from `ljprof
** record`, for services that nobody starts by hand. Either "name=value;..." or,
** without any '=', the path of a file with a setting a line. Names are those of
** the options of `ljprof record` (base/settings.h). Ordinary code; takes little
** stack.
*/
#ifndef LJP_API_SETTINGS_H
#define LJP_API_SETTINGS_H

#include <stdbool.h>

/* Is this the request of `ljprof record`? */
bool ljp_settings_is_request(const char *text);

/* Makes a request of what the variable says, as `ljprof record` does. Returns
** memory that the caller frees: the request or, if *wrong, what is wrong with the
** settings. NULL: no memory. */
char *ljp_settings_request(const char *text, bool *wrong);

#endif
