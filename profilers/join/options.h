/*
** Options of a session that a client asks for; see options.c.
*/
#ifndef LJP_JOIN_OPTIONS_H
#define LJP_JOIN_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "profilers/join/recording.h"

/* Reads "name=value;...;path=PATH", as `ljprof record` writes it. The path is
** where the client has the file, for messages only; it points into the text,
** which the caller may reuse once the session has begun. False: *why says what is
** wrong. */
bool ljp_join_options(struct ljp_recording *recording, char *text,
                      struct ljp_failure *why);

/* Copies a path into room with '?' for what is not a printable byte of ASCII:
** messages carry UTF-8 only. */
void ljp_join_clean(char *out, size_t room, const char *path);

#endif
