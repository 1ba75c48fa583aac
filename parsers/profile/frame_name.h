/*
** Frames as text: the only way, for every view. Bytes are copied as they are in
** the stream; a view must make them safe for its output. Call after
** ljp_profile_finish(). Any thread.
**
**   Lua function   name file:12      (line of definition; `function file:12`
**                                    without a name, `main chunk file`)
**   with LINES     name file:17      (current line)
**   builtin        table.sort
**   C, VM, kernel  name, or libfoo.so+0x1234 if the name is not known
**   trace          trace 7 file:12
**   others         (no stack), (unknown: lost in a gap) ...
*/
#ifndef LJP_PARSERS_FRAME_NAME_H
#define LJP_PARSERS_FRAME_NAME_H

#include "parsers/profile/profile.h"

#define LJP_NAME_LINES 1u
/* Append _[j] compiled, _[i] inlined in compiled code, _[k] kernel. */
#define LJP_NAME_SUFFIX 2u
/* C functions: append " file:line" if known. Use with LINES. */
#define LJP_NAME_C_LINES 4u

#define LJP_FRAME_NAME_BYTES 1024u

/* Like snprintf(): writes at most room bytes, terminated, and returns the
** length of the whole text. */
size_t ljp_frame_name(const struct ljp_profile *p, uint32_t frame, unsigned how,
                      char *out, size_t room);

/* The two parts: the function, and its place ("file:12", "libfoo.so"). */
size_t ljp_frame_function_text(const struct ljp_profile *p, uint32_t frame,
                               char *out, size_t room);
size_t ljp_frame_place_text(const struct ljp_profile *p, uint32_t frame,
                            unsigned how, char *out, size_t room);

/* The name of a function in p->functions, without a current line. */
size_t ljp_function_name(const struct ljp_profile *p, uint32_t function,
                         char *out, size_t room);

/* "Lua", "inlined", "C" ..., for enum ljp_profile_kind, too. */
const char *ljp_profile_kind_text(unsigned kind);

/* "interpreter", "compiled" ..., for enum ljp_profile_state, too; NULL: there
** is no such state. */
const char *ljp_profile_state_text(unsigned state);

#endif
