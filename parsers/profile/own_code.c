/*
** See own_code.h.
*/
#include "parsers/profile/own_code.h"

#include <string.h>

static bool own_starts(struct ljp_str s, const char *start)
{
  size_t len = strlen(start);
  return s.len >= len && memcmp(s.data, start, len) == 0;
}

static bool own_equals(struct ljp_str s, const char *text)
{
  return s.len == strlen(text) && own_starts(s, text);
}

/* Whether a function of LuaJIT with this name may call a hook. Those that are left
** out call functions of the host. */
static bool own_is_caller(struct ljp_str name)
{
  return own_equals(name, "fs_finish") || own_equals(name, "trace_start") ||
         (own_starts(name, "lj_") && !own_starts(name, "lj_BC_") &&
          !own_starts(name, "lj_ccall_") && !own_starts(name, "lj_ff") &&
          !own_starts(name, "lj_vm_"));
}

/* Our static functions may have a caller that is not ours: they are called
** through a pointer, or a hook ends with a call, of which compilers make a jump.
** A host's functions may have such names, too. */
static bool own_is_static(struct ljp_str caller, struct ljp_str name)
{
  return own_starts(name, "memprof_") || own_starts(name, "sysprof_") ||
         ((own_starts(name, "every_") || own_starts(name, "hook_") ||
           own_starts(name, "marker_") || own_starts(name, "proto_")) &&
          own_is_caller(caller));
}

/* Hooks that run the program's code (src/luajit/hooks/publish.c). */
static bool own_is_passage(struct ljp_str name)
{
  return own_starts(name, "ljp_hook_enter_");
}

/* Functions of the allocator that call the VM's own one. */
static bool own_is_allocator(struct ljp_str name)
{
  return own_starts(name, "ljp_every_") || own_starts(name, "ljp_sampled_") ||
         own_equals(name, "ljp_recorder_every") ||
         own_equals(name, "ljp_recorder_fresh") ||
         own_equals(name, "ljp_recorder_sampled") || own_starts(name, "every_");
}

/* Whether it may be a static function that the allocator calls. */
static bool own_is_recorder(struct ljp_str name)
{
  return own_starts(name, "every_") || own_starts(name, "recorder_") ||
         own_starts(name, "sampled_");
}

/* The collector may run wherever memory is allocated. */
static bool own_is_collector(struct ljp_str name)
{
  return own_starts(name, "lj_gc_step") || own_equals(name, "lj_gc_fullgc") ||
         own_starts(name, "lj_gc_finalize_");
}

enum ljp_own_code ljp_own_function(enum ljp_own_code by, bool vm,
                                   struct ljp_str caller, struct ljp_str name)
{
  bool ours = vm && ((own_starts(name, "ljp_") && !own_is_passage(name)) ||
                     (by == LJP_OWN_NO && own_is_static(caller, name)) ||
                     (by == LJP_OWN_ENTRY && own_is_recorder(name)));
  if (by == LJP_OWN_WORK)
    return own_is_collector(name) ? LJP_OWN_NO : LJP_OWN_WORK;
  if (ours)
    return own_is_allocator(name) ? LJP_OWN_ENTRY : LJP_OWN_WORK;
  /* All that our allocator asks the C library for: where errno is. */
  return by == LJP_OWN_ENTRY && (own_starts(name, "__errno_location") ||
                                 own_starts(name, "___errno_location"))
             ? LJP_OWN_WORK
             : LJP_OWN_NO;
}

enum ljp_own_code ljp_own_frame(enum ljp_own_code by, unsigned kind)
{
  switch (kind) {
  case LJP_FRAME_BUILTIN:
  case LJP_FRAME_CFUNC:
  case LJP_FRAME_HOST: /* Without a name. */
  case LJP_FRAME_VM:
    return by == LJP_OWN_WORK ? LJP_OWN_WORK : LJP_OWN_NO;
  case LJP_FRAME_KERNEL:
  case LJP_FRAME_PROFILER:
    return by ? LJP_OWN_WORK : LJP_OWN_NO;
  default:
    return LJP_OWN_NO;
  }
}
