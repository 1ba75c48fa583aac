/*
** Our own code in a profile. The VM calls our hooks, whose work is no work of
** the program: it counts at a frame LJP_FRAME_PROFILER, above the function that
** called them. They are known by their names, so only where the library has
** symbols. Plain helper.
*/
#ifndef LJP_PARSERS_PROFILE_OWN_CODE_H
#define LJP_PARSERS_PROFILE_OWN_CODE_H

#include "parsers/profile/profile.h"

/* What the code at a node of the stack tree is. */
enum ljp_own_code {
  LJP_OWN_NO,    /* Not ours. */
  LJP_OWN_ENTRY, /* Our allocator, which calls the VM's own one: what that does
                 ** is the program's again. */
  LJP_OWN_WORK   /* Ours, and so is what it calls, except for Lua code and the
                 ** collector. */
};

/* A function that code of the kind `by` has called. vm: it is in the VM's module,
** and so is its caller, if that has a name. */
enum ljp_own_code ljp_own_function(enum ljp_own_code by, bool vm,
                                   struct ljp_str caller, struct ljp_str name);

/* The same for any other frame. */
enum ljp_own_code ljp_own_frame(enum ljp_own_code by, unsigned kind);

#endif
