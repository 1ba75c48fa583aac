/*
** The C part of the storms, a Lua module: several VMs in a thread, threads with
** a VM each, code that is loaded and unloaded, child processes. One VM calls it
** from one thread.
*/
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lauxlib.h"
#include "lua.h"
#include "lualib.h"

enum { RESULT_BYTES = 128, THREADS = 2 };

/* Runs a chunk with a number as argument. The result is one string. */
static void storm_run_text(lua_State *L, const char *text, int number,
                           char *result)
{
  if (luaL_loadstring(L, text)) {
    snprintf(result, RESULT_BYTES, "%s", lua_tostring(L, -1));
  } else {
    lua_pushinteger(L, number);
    (void)lua_pcall(L, 1, 1, 0);
    const char *got = lua_tostring(L, -1);
    snprintf(result, RESULT_BYTES, "%s", got ? got : "no string");
  }
  lua_settop(L, 0);
}

/* -- Threads --------------------------------------------------------------- */
struct job {
  const char *text;
  int number;
  char result[RESULT_BYTES];
};

static void *storm_run_job(void *arg)
{
  struct job *job = arg;
  lua_State *L = luaL_newstate();
  snprintf(job->result, sizeof job->result, "no VM");
  if (L) {
    luaL_openlibs(L);
    storm_run_text(L, job->text, job->number, job->result);
    lua_close(L);
  }
  return NULL;
}

/* threads(text, number): the result of each thread, in order. */
static int storm_threads(lua_State *L)
{
  struct job jobs[THREADS];
  pthread_t threads[THREADS];
  const char *text = luaL_checkstring(L, 1);
  int number = (int)luaL_checkinteger(L, 2);
  for (int i = 0; i < THREADS; i++) {
    jobs[i].text = text;
    jobs[i].number = number + i;
    if (pthread_create(&threads[i], NULL, storm_run_job, &jobs[i]))
      return luaL_error(L, "no thread");
  }
  for (int i = 0; i < THREADS; i++)
    pthread_join(threads[i], NULL);
  for (int i = 0; i < THREADS; i++)
    lua_pushstring(L, jobs[i].result);
  return THREADS;
}

/* -- A second VM in the same thread ---------------------------------------- */
static lua_State *second;

/* In the second VM: calls the function that storm_second() was given. */
static int storm_call_first(lua_State *L)
{
  lua_State *first = lua_touserdata(L, lua_upvalueindex(1));
  lua_pushvalue(first, 2);
  lua_pushinteger(first, luaL_checkinteger(L, 1));
  if (lua_pcall(first, 1, 1, 0))
    return luaL_error(L, "the first VM failed");
  lua_pushnumber(L, lua_tonumber(first, -1));
  lua_pop(first, 1);
  return 1;
}

/* second(text, function, number): runs the text in the second VM, where first()
** calls the function in this VM. */
static int storm_second(lua_State *L)
{
  char result[RESULT_BYTES];
  const char *text = luaL_checkstring(L, 1);
  luaL_checktype(L, 2, LUA_TFUNCTION);
  int number = (int)luaL_checkinteger(L, 3);
  if (!second) {
    second = luaL_newstate();
    luaL_openlibs(second);
  }
  lua_pushlightuserdata(second, L);
  lua_pushcclosure(second, storm_call_first, 1);
  lua_setglobal(second, "first");
  storm_run_text(second, text, number, result);
  if (number % 10 == 0) {
    lua_close(second);
    second = NULL;
  }
  lua_pushstring(L, result);
  return 1;
}

/* -- Code that comes and goes ---------------------------------------------- */
struct callback {
  lua_State *L;
};

static int storm_call_lua(void *ctx)
{
  lua_State *L = ((struct callback *)ctx)->L;
  lua_pushvalue(L, 2);
  lua_call(L, 0, 1);
  int got = (int)lua_tointeger(L, -1);
  lua_pop(L, 1);
  return got;
}

/* plugin(path, function, depth): loads the library, calls the function through
** it, and unloads it. */
static int storm_plugin(lua_State *L)
{
  struct callback callback = {L};
  int (*descend)(int (*)(void *), void *, int);
  void *library = dlopen(luaL_checkstring(L, 1), RTLD_NOW | RTLD_LOCAL);
  if (!library)
    return luaL_error(L, "dlopen: %s", dlerror());
  void *symbol = dlsym(library, "storm_descend");
  if (!symbol)
    return luaL_error(L, "dlsym: %s", dlerror());
  memcpy(&descend, &symbol, sizeof descend);
  int got = descend(storm_call_lua, &callback, (int)luaL_checkinteger(L, 3));
  dlclose(library);
  lua_pushinteger(L, got);
  return 1;
}

/* -- Child processes ------------------------------------------------------- */
/* fork(function, number): the string that the function returns in a child. The
** child ends by exit() if the number is odd, else by _exit(). */
static int storm_fork(lua_State *L)
{
  int ends[2], status = 0;
  int number = (int)luaL_checkinteger(L, 2);
  char result[RESULT_BYTES] = "";
  size_t used = 0;
  ssize_t got;
  fflush(NULL);
  if (pipe(ends))
    return luaL_error(L, "no pipe");
  pid_t child = fork();
  if (child == 0) {
    lua_pushvalue(L, 1);
    lua_pushinteger(L, number);
    const char *said =
        lua_pcall(L, 1, 1, 0) == 0 ? lua_tostring(L, -1) : "error";
    ssize_t wrote = write(ends[1], said, strlen(said));
    if (number % 2)
      exit(wrote < 0);
    _exit(wrote < 0);
  }
  close(ends[1]);
  if (child < 0)
    return luaL_error(L, "no child");
  while (used < sizeof result - 1 &&
         (got = read(ends[0], result + used, sizeof result - 1 - used)) > 0)
    used += (size_t)got;
  close(ends[0]);
  if (waitpid(child, &status, 0) != child || status)
    return luaL_error(L, "the child ended with status %d", status);
  lua_pushlstring(L, result, used);
  return 1;
}

__attribute__((visibility("default"))) int luaopen_storm_module(lua_State *L);

int luaopen_storm_module(lua_State *L)
{
  static const luaL_Reg functions[] = {{"threads", storm_threads},
                                       {"second", storm_second},
                                       {"plugin", storm_plugin},
                                       {"fork", storm_fork},
                                       {NULL, NULL}};
  lua_newtable(L);
  luaL_register(L, NULL, functions);
  return 1;
}
