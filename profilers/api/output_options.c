/*
** Lua options of a session's output; see output_options.h.
*/
#include "profilers/api/output_options.h"

#include "profilers/session/output.h"
#include "src/base/store_name.h"

bool ljp_option_is_session(const char *name)
{
  static const struct ljp_option options[] = {LJP_OUTPUT_OPTIONS};
  return ljp_options_have(options, sizeof options / sizeof *options, name);
}

bool ljp_read_path(lua_State *L, void *to, const char **wants)
{
  /* Borrowed: the caller's table keeps the string. */
  return ljp_option_path(L, &((struct ljp_output *)to)->path, wants);
}

bool ljp_read_fork(lua_State *L, void *to, const char **wants)
{
  static const char *const words[] = {"stop", "follow", NULL};
  int i = 0;
  *wants = "\"stop\" or \"follow\"";
  bool ok = ljp_option_one_of(L, words, &i);
  ((struct ljp_output *)to)->follow_fork = i == 1;
  return ok;
}

bool ljp_read_flush(lua_State *L, void *to, const char **wants)
{
  int ms = 0;
  *wants = "milliseconds, a whole number from 10 to 10000";
  bool ok = ljp_option_whole(L, 10, 10000, &ms);
  ((struct ljp_output *)to)->flush_ms = (uint32_t)ms;
  return ok;
}

bool ljp_read_compress(lua_State *L, void *to, const char **wants)
{
  *wants = LJP_COMPRESS_WANTS;
  return ljp_option_whole(L, 0, LJP_COMPRESS_MOST,
                          &((struct ljp_output *)to)->zstd_level);
}

bool ljp_read_sync(lua_State *L, void *to, const char **wants)
{
  return ljp_option_bool(L, &((struct ljp_output *)to)->sync, wants);
}

bool ljp_read_rotate_bytes(lua_State *L, void *to, const char **wants)
{
  double bytes = 0;
  *wants = "a number of bytes from 4096 to 1e15";
  bool ok = ljp_option_number(L, 4096, 1e15, &bytes);
  ((struct ljp_output *)to)->segment_bytes = (uint64_t)bytes;
  return ok;
}

bool ljp_read_rotate_seconds(lua_State *L, void *to, const char **wants)
{
  double seconds = 0;
  *wants = "a number of seconds from 0.1 to 1e9";
  bool ok = ljp_option_number(L, 0.1, 1e9, &seconds);
  ((struct ljp_output *)to)->segment_ms = (uint64_t)(seconds * 1000);
  return ok;
}

bool ljp_read_keep(lua_State *L, void *to, const char **wants)
{
  int files = 0;
  *wants = "a number of files from 1 to 1000000 (0: all)";
  bool ok = ljp_option_whole(L, 0, 1000000, &files);
  ((struct ljp_output *)to)->keep_segments = (uint32_t)files;
  return ok;
}

bool ljp_read_service(lua_State *L, void *to, const char **wants)
{
  const char **service = &((struct ljp_output *)to)->service;
  *wants = "a name of at most 64 letters, digits and \"._+@-\"";
  return lua_type(L, -1) == LUA_TSTRING &&
         ljp_option_path(L, service, &(const char *){NULL}) &&
         ljp_store_service_valid(*service);
}

bool ljp_read_ring(lua_State *L, void *to, const char **wants)
{
  double bytes = 0;
  *wants = "a number of bytes from 1048576 to 1e15";
  bool ok = ljp_option_number(L, 1048576, 1e15, &bytes);
  ((struct ljp_output *)to)->ring_bytes = (uint64_t)bytes;
  return ok;
}

bool ljp_read_duration(lua_State *L, void *to, const char **wants)
{
  double seconds = 0;
  *wants = "a number of seconds, from 0.001 to 1e9";
  bool ok = ljp_option_number(L, 0.001, 1e9, &seconds);
  ((struct ljp_output *)to)->until_ns =
      ok ? ljp_clock_ns() + (uint64_t)(seconds * 1e9) : 0;
  return ok;
}
