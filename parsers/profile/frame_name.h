/*
** The one way to write a frame, for every view. Bytes come as they are in the
** stream: a view makes them safe for where it puts them. After
** ljp_profile_finish(); any thread.
**
**   Lua function   name file:12      (line of definition; `function file:12`
**                                    without a name, `main chunk file`)
**   with LINES     name file:17      (current line)
**   builtin        table.sort
**   C, VM, kernel  name, or libfoo.so+0x1234 where it is not known
**   trace          trace 7 file:12
**   others         (no stack), (unknown: lost in a gap) ...
*/
#ifndef LJP_PARSERS_FRAME_NAME_H
#define LJP_PARSERS_FRAME_NAME_H

#include "parsers/profile/profile.h"

#define LJP_NAME_LINES 1u
/* _[j] compiled, _[i] inlined in compiled code, _[k] kernel. */
#define LJP_NAME_SUFFIX 2u
/* C functions: with " file:line" where it is known (with LINES). */
#define LJP_NAME_C_LINES 4u

#define LJP_FRAME_NAME_BYTES 1024u

/* Like snprintf: writes at most room bytes, terminated, and returns how long
** the whole is. */
size_t ljp_frame_name(const struct ljp_profile *p, uint32_t frame, unsigned how,
                      char *out, size_t room);

/* The parts: what is called, and where it stands ("file:12", "libfoo.so"). */
size_t ljp_frame_function_text(const struct ljp_profile *p, uint32_t frame,
                               char *out, size_t room);
size_t ljp_frame_place_text(const struct ljp_profile *p, uint32_t frame,
                            unsigned how, char *out, size_t room);

/* Of a function in p->functions: never with a current line. */
size_t ljp_function_name(const struct ljp_profile *p, uint32_t function,
                         char *out, size_t room);

/* "Lua", "inlined", "C" ..., also of the kinds that are the profile's. */
const char *ljp_profile_kind_text(unsigned kind);

#endif
