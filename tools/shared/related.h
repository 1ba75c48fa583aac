/*
** Related: whether two profiles are of one program, so that their figures can be
** compared. One thread.
*/
#ifndef LJP_TOOLS_RELATED_H
#define LJP_TOOLS_RELATED_H

#include "parsers/profile/profile.h"

/* The script that an interpreter ran, by its base name: the first argument that
** ends in .lua. Empty: there is none. */
struct ljp_str ljp_related_script(const struct ljp_profile *p);
/* The same of the arguments, each with a NUL behind it. */
struct ljp_str ljp_related_script_of(struct ljp_str command_line);
/* The base name of the executable. Empty: not known. */
struct ljp_str ljp_related_program(const struct ljp_profile *p);

enum ljp_related {
  LJP_RELATED,         /* One program; or it is not known. */
  LJP_RELATED_RENAMED, /* Other scripts that share functions. */
  LJP_RELATED_NOT
};

/* Two scripts are related if a quarter of the named Lua functions of the
** smaller one are in the other. LJP_ERR_MEM. */
enum ljp_status ljp_related(const struct ljp_profile *a,
                            const struct ljp_profile *b,
                            enum ljp_related *related);

#endif
