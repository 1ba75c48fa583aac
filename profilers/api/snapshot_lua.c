/*
** misc.memprof.snapshot: a heap snapshot. A call that fails returns nil, a
** message and an errno number.
*/
#include "profilers/api/snapshot_lua.h"

#include "profilers/api/options.h"
#include "profilers/memory/heap_snapshot.h"
#include "profilers/session/side_run.h"

struct snapshot_options {
  struct ljp_heap_snapshot_options heap;
  bool gc; /* collect all garbage first */
};

static bool snapshot_read_path(lua_State *L, void *to, const char **wants)
{
  struct snapshot_options *o = to;
  return ljp_option_path(L, &o->heap.path, wants);
}

static bool snapshot_read_strings(lua_State *L, void *to, const char **wants)
{
  struct snapshot_options *o = to;
  int bytes = 0;
  *wants = "the number of bytes of each string to keep, from 0 to 4096";
  bool ok = ljp_option_whole(L, 0, LJP_HEAP_TEXT_MAX_BYTES, &bytes);
  o->heap.text_limit = (uint32_t)bytes;
  return ok;
}

static bool snapshot_read_compress(lua_State *L, void *to, const char **wants)
{
  struct snapshot_options *o = to;
  *wants = LJP_COMPRESS_WANTS;
  return ljp_option_whole(L, 0, LJP_COMPRESS_MOST, &o->heap.zstd_level);
}

static bool snapshot_read_gc(lua_State *L, void *to, const char **wants)
{
  return ljp_option_bool(L, &((struct snapshot_options *)to)->gc, wants);
}

static bool snapshot_read_wait(lua_State *L, void *to, const char **wants)
{
  return ljp_option_bool(L, &((struct snapshot_options *)to)->heap.wait, wants);
}

static bool snapshot_read_in_place(lua_State *L, void *to, const char **wants)
{
  return ljp_option_bool(L, &((struct snapshot_options *)to)->heap.in_place,
                         wants);
}

static const struct ljp_option snapshot_options[] = {
    {"path", snapshot_read_path},         {"strings", snapshot_read_strings},
    {"compress", snapshot_read_compress}, {"gc", snapshot_read_gc},
    {"wait", snapshot_read_wait},         {"in_place", snapshot_read_in_place},
};
enum { OPTIONS = sizeof snapshot_options / sizeof *snapshot_options };

bool ljp_option_is_snapshot(const char *name)
{
  return ljp_options_have(snapshot_options, OPTIONS, name);
}

static void snapshot_set_seconds(lua_State *L, const char *name, uint64_t ns)
{
  lua_pushnumber(L, (lua_Number)ns / 1e9);
  lua_setfield(L, -2, name);
}

int ljp_memprof_snapshot(lua_State *L)
{
  struct snapshot_options o = {.gc = false};
  struct ljp_snapshot_result result;
  struct ljp_failure why;
  ljp_side_bind();
  ljp_heap_snapshot_options_init(&o.heap);
  int results = ljp_options_argument(L, LJP_PLACE_SNAPSHOT, &o.heap.path);
  if (!results && lua_istable(L, 1))
    results = ljp_options_read(L, 1, LJP_PLACE_SNAPSHOT, snapshot_options,
                               OPTIONS, &o);
  if (results)
    return results;
  if (o.heap.zstd_level && !o.heap.path)
    return ljp_options_misused(L, "compress is for a file of its own (path): "
                                  "the session's file has its own compression");
  if (o.gc)
    lua_gc(L, LUA_GCCOLLECT, 0);
  enum ljp_status status = ljp_heap_snapshot(L, &o.heap, &result, &why);
  if (status)
    return ljp_options_refused(L, status, &why);
  lua_newtable(L);
  lua_pushstring(L, result.taken == LJP_HEAP_TAKEN_COPY ? "copy" : "place");
  lua_setfield(L, -2, "taken");
  snapshot_set_seconds(L, "pause", result.pause_ns);
  if (result.refused)
    ljp_options_set_count(L, "refused", (uint64_t)result.refused);
  if (!result.objects)
    return 1; /* It is still being written. */
  snapshot_set_seconds(L, "walk", result.walk_ns);
  ljp_options_set_count(L, "objects", result.objects);
  ljp_options_set_count(L, "refs", result.refs);
  ljp_options_set_count(L, "bytes", result.bytes);
  ljp_options_set_count(L, "heap_bytes", result.heap_bytes);
  ljp_options_set_count(L, "file_bytes", result.file_bytes);
  return 1;
}
