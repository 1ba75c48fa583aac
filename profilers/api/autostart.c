/*
** What the environment asks for: a session, a door for clients, and labels for other
** profilers; see autostart.h. Session and door begin once in a process, on the thread
** of its first VM; each VM publishes its labels.
*/
#include "profilers/api/autostart.h"

#include <errno.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "profilers/api/settings.h"
#include "profilers/cpu/sysprof.h"
#include "profilers/join/listen.h"
#include "profilers/memory/memprof.h"
#include "profilers/session/published.h"
#include "profilers/session/side_run.h"
#include "profilers/session/told.h"
#include "src/base/clock.h"
#include "src/base/futex.h"
#include "src/base/own_path.h"

struct request {
  const char *path;
  const char *before; /* "DEVICE:INODE" of the file that may be replaced. */
  size_t before_len;
  uint64_t began_ns; /* Since 1970: when the recording began. */
  uint64_t until_ns; /* When it ends, by ljp_clock_ns(); 0: it does not. */
  long pid;
  bool children, keep;
  bool store; /* The path is a folder, with files of each process. */
};

/* Pushes a value as a number, a boolean or a string. Lua reads numbers, since
** strtod() would ask the locale for the point. */
static void autostart_push_value(lua_State *L, const char *p, size_t len)
{
  bool yes = len == 4 && memcmp(p, "true", 4) == 0;
  if (yes || (len == 5 && memcmp(p, "false", 5) == 0)) {
    lua_pushboolean(L, yes);
    return;
  }
  lua_pushlstring(L, p, len);
  if (len && lua_isnumber(L, -1)) {
    lua_Number number = lua_tonumber(L, -1);
    lua_pop(L, 1);
    lua_pushnumber(L, number);
  }
}

/* Sets an option in the table on top of the stack: "cpu.interval", "1" becomes
** cpu = {interval = 1}. */
static void autostart_set_option(lua_State *L, const char *name, size_t len,
                                 const char *value, size_t bytes)
{
  const char *dot = memchr(name, '.', len);
  if (!dot) {
    lua_pushlstring(L, name, len);
    if (len == 7 && memcmp(name, "service", 7) == 0)
      lua_pushlstring(L, value, bytes); /* Even if it is a number. */
    else
      autostart_push_value(L, value, bytes);
    lua_rawset(L, -3);
    return;
  }
  size_t group = (size_t)(dot - name);
  lua_pushlstring(L, name, group);
  lua_pushvalue(L, -1);
  lua_rawget(L, -3);
  if (!lua_istable(L, -1)) {
    lua_pop(L, 1);
    lua_newtable(L);
    lua_pushvalue(L, -2);
    lua_pushvalue(L, -2);
    lua_rawset(L, -5);
  }
  lua_pushlstring(L, dot + 1, len - group - 1);
  autostart_push_value(L, value, bytes);
  lua_rawset(L, -3);
  lua_pop(L, 2);
}

/* Fills the table on top of the stack with the options. */
static void autostart_read_request(lua_State *L, const char *text,
                                   struct request *r)
{
  while (*text) {
    size_t len = strcspn(text, "=;");
    const char *value = text + len + (text[len] == '=');
    size_t bytes = strcspn(value, ";");
    if (len == 4 && memcmp(text, "path", 4) == 0) {
      r->path = value;
      return;
    }
    if (len == 3 && memcmp(text, "pid", 3) == 0)
      r->pid = strtol(value, NULL, 10);
    else if (len == 8 && memcmp(text, "children", 8) == 0)
      r->children = *value == 't';
    else if ((len == 4 && memcmp(text, "told", 4) == 0) ||
             (len == 7 && memcmp(text, "preload", 7) == 0))
      ; /* see told.c */
    else if (len == 5 && memcmp(text, "began", 5) == 0)
      r->began_ns = strtoull(value, NULL, 10);
    else if (len == 5 && memcmp(text, "until", 5) == 0)
      r->until_ns = strtoull(value, NULL, 10);
    else if (len == 6 && memcmp(text, "before", 6) == 0) {
      r->before = value;
      r->before_len = bytes;
    } else {
      r->keep |= len == 4 && memcmp(text, "keep", 4) == 0;
      r->store |= len == 7 && memcmp(text, "service", 7) == 0;
      autostart_set_option(L, text, len, value, bytes);
    }
    text = value + bytes + (value[bytes] == ';');
  }
}

/* Has an earlier program of this process recorded into the path? Then it is not
** the file that was there before, or file segments have come. (`ljprof record`
** has followed the links that count.) */
static bool autostart_path_taken(const struct request *r)
{
  struct stat st;
  char id[64];
  if (r->keep && ljp_path_has_segments(r->path, r->began_ns))
    return true;
  if (!r->before || lstat(r->path, &st) || !S_ISREG(st.st_mode))
    return false;
  int n = snprintf(id, sizeof id, LJP_FILE_ID, LJP_FILE_ID_OF(&st));
  return (size_t)n != r->before_len || memcmp(id, r->before, (size_t)n) != 0;
}

/* Memory: of all VMs, unless the options say otherwise. */
static void autostart_set_vms(lua_State *L)
{
  lua_getfield(L, -1, "memory");
  if (lua_istable(L, -1)) {
    lua_getfield(L, -1, "vms");
    bool given = !lua_isnil(L, -1);
    lua_pop(L, 1);
    if (!given) {
      lua_pushliteral(L, "all");
      lua_setfield(L, -2, "vms");
    }
  } else if (lua_isnil(L, -1) || lua_toboolean(L, -1)) {
    lua_newtable(L);
    lua_pushliteral(L, "all");
    lua_setfield(L, -2, "vms");
    lua_setfield(L, -3, "memory");
  }
  lua_pop(L, 1);
}

/* The rest of the time that the recording may take. False: it is over. */
static bool autostart_set_duration(lua_State *L, const struct request *r)
{
  uint64_t now = ljp_clock_ns();
  if (!r->until_ns)
    return true;
  double seconds = r->until_ns > now ? (double)(r->until_ns - now) / 1e9 : 0;
  lua_pushnumber(L, seconds);
  lua_setfield(L, -2, "duration");
  return seconds >= 0.001;
}

/* In a protected call, because Lua may run out of memory. Arguments: the
** library's table and the variable's text. */
static int autostart_protected(lua_State *L)
{
  struct request r = {0};
  char own[PATH_MAX];
  lua_newtable(L);
  autostart_read_request(L, lua_touserdata(L, 2), &r);
  if (!r.path)
    return luaL_error(L, "LJPROF_RECORD names no path");
  bool child = r.pid != (long)getpid();
  bool first = !child && (r.store || !autostart_path_taken(&r));
  if (child && !r.children)
    return 0; /* a child of the recorded program, not to be recorded */
  if (!autostart_set_duration(L, &r))
    return first ? luaL_error(L, "its time was over before its first VM") : 0;
  bool named = first || r.store;
  if (!named &&
      !ljp_path_numbered(own, sizeof own, r.path, getpid(), !child, r.keep))
    return luaL_error(L, "%s.%d: %s", r.path, (int)getpid(),
                      strerror(ENAMETOOLONG));
  lua_pushstring(L, named ? r.path : own);
  lua_setfield(L, -2, "path");
  autostart_set_vms(L);
  lua_getfield(L, 1, "profile");
  lua_getfield(L, -1, "start");
  lua_pushvalue(L, 3);
  lua_call(L, 1, 2);
  if (lua_isnil(L, -2))
    return luaL_error(L, "%s", lua_tostring(L, -1));
  ljp_sysprof_disown();
  ljp_memprof_disown();
  return 0;
}

/* 0: not begun; the negative id of the process that is starting the session;
** 1: done. */
static _Atomic uint32_t autostart_state;

/* Waits for a thread that is starting the session, so that this thread's VM is
** recorded like the others. Not for ever: that thread may be gone, in a child
** of fork(). */
static void autostart_wait(void)
{
  enum { TRIES = 200, PAUSE_NS = 50000000 };
  const uint32_t busy = (uint32_t)-getpid();
  for (int i = 0; i < TRIES && atomic_load(&autostart_state) == busy; i++)
    ljp_futex_wait(&autostart_state, busy, PAUSE_NS);
}

/* A function of its own because it binds our calls before anything else; its
** caller looks up the variable first, for each VM. */
__attribute__((noinline)) static void autostart_begin(lua_State *L,
                                                      const char *text)
{
  ljp_side_bind();
  int top = lua_gettop(L);
  lua_pushcfunction(L, autostart_protected);
  lua_pushvalue(L, top);
  lua_pushlightuserdata(L, (void *)(uintptr_t)text);
  if (lua_pcall(L, 2, 0, 0))
    ljp_told_refused(lua_isstring(L, -1) ? lua_tostring(L, -1) : "no memory");
  lua_settop(L, top);
}

/* Somebody has set the variable by hand. The program runs on, whatever it says. */
__attribute__((noinline)) static void autostart_by_hand(lua_State *L,
                                                        const char *text)
{
  bool wrong;
  ljp_side_bind();
  char *request = ljp_settings_request(text, &wrong);
  if (request && !wrong)
    autostart_begin(L, request);
  else
    ljp_told_refused(request ? request : "no memory");
  free(request);
}

/* A line on stderr, where the variable is named. */
static void autostart_tell(const char *variable, const char *text)
{
  static const char begin[] = "ljprof: ", middle[] = ": ", end[] = "\n";
  const struct iovec line[] = {
      {(void *)(uintptr_t)begin, sizeof begin - 1},
      {(void *)(uintptr_t)variable, strlen(variable)},
      {(void *)(uintptr_t)middle, sizeof middle - 1},
      {(void *)(uintptr_t)text, strlen(text)},
      {(void *)(uintptr_t)end, 1},
  };
  if (writev(STDERR_FILENO, line, sizeof line / sizeof *line) < 0)
    return; /* nothing else can be done */
}

/* -- A door ---------------------------------------------------------------- */
static void autostart_no_door(const char *text)
{
  autostart_tell("LJPROF_LISTEN", text);
}

/* A function of its own, for its failure takes stack. */
__attribute__((noinline)) static void autostart_open_door(const char *path)
{
  struct ljp_failure why;
  ljp_side_bind();
  if (ljp_listen_start(path, autostart_no_door, &why))
    autostart_no_door(why.text);
}

/* Once in a process; a child of fork() has its parent's answer. */
static void autostart_listen(void)
{
  static _Atomic bool asked;
  const char *path = secure_getenv("LJPROF_LISTEN");
  if (path && *path && !atomic_exchange(&asked, true))
    autostart_open_door(path);
}

/* -- Labels ---------------------------------------------------------------- */
__attribute__((noinline)) static void autostart_publish(lua_State *L)
{
  static _Atomic bool told;
  struct ljp_failure why;
  ljp_side_bind();
  if (ljp_publish_start(L, &why) && !atomic_exchange(&told, true))
    autostart_tell("LJPROF_PUBLISH_LABELS", why.text);
}

/* Each VM. */
static void autostart_labels(lua_State *L)
{
  const char *wanted = secure_getenv("LJPROF_PUBLISH_LABELS");
  if (wanted && *wanted && strcmp(wanted, "0") != 0)
    autostart_publish(L);
}

void ljp_autostart(lua_State *L)
{
  autostart_listen();
  autostart_labels(L);
  const char *text = secure_getenv("LJPROF_RECORD");
  uint32_t none = 0;
  if (!text || !*text ||
      !atomic_compare_exchange_strong(&autostart_state, &none,
                                      (uint32_t)-getpid())) {
    autostart_wait();
    ljp_memprof_meet(L);
    return;
  }
  if (ljp_settings_is_request(text))
    autostart_begin(L, text);
  else
    autostart_by_hand(L, text);
  atomic_store(&autostart_state, 1);
  ljp_futex_call(&autostart_state, FUTEX_WAKE_PRIVATE, INT_MAX, NULL);
}
