/*
** See zoo.h.
*/
#include "test/hosts/zoo/zoo.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/wait.h>
#include <unistd.h>

/* Makes the functions "work" and "light" of a VM. */
static const char zoo_chunk[] =
    "local parts = {}\n"
    "function parts.tables(n)\n"
    "  local t, sum = {}, 0\n"
    "  for i = 1, 60 do t[i] = {i * n % 97, name = i} end\n"
    "  for _, v in ipairs(t) do sum = sum + v[1] + v.name end\n"
    "  return sum\n"
    "end\n"
    "function parts.closures(n)\n"
    "  local sum = 0\n"
    "  for i = 1, 60 do\n"
    "    local add = function(a) return a + i end\n"
    "    sum = add(sum) % 65521\n"
    "  end\n"
    "  return sum + n\n"
    "end\n"
    "function parts.coroutines(n)\n"
    "  local sum = 0\n"
    "  local co = coroutine.wrap(function()\n"
    "    for i = 1, 20 do coroutine.yield(i + n) end\n"
    "    return 0\n"
    "  end)\n"
    "  for _ = 1, 21 do sum = sum + co() end\n"
    "  return sum\n"
    "end\n"
    "function parts.errors(n)\n"
    "  local function fail(depth)\n"
    "    if depth == 0 then error({n}) end\n"
    "    return 1 + fail(depth - 1)\n"
    "  end\n"
    "  local _, what = pcall(fail, 7)\n"
    "  return what[1]\n"
    "end\n"
    "function parts.numbers(n)\n"
    "  local sum = n\n"
    "  for i = 1, 9000 do sum = (sum * 31 + i) % 65521 end\n"
    "  return sum\n"
    "end\n"
    "local heavy = {}\n"
    "function heavy.texts(n)\n"
    "  local words = {}\n"
    "  for w in ('one two three four ' .. n):gmatch('%w+') do\n"
    "    words[#words + 1] = w:gsub('%w', function(c) return c .. c end)\n"
    "  end\n"
    "  table.sort(words, function(a, b) return a < b end)\n"
    "  return #table.concat(words, ',') + #('%5.2f %s'):format(n / 7, n)\n"
    "end\n"
    "function heavy.sorts(n)\n"
    "  local t = {}\n"
    "  for i = 1, 150 do t[i] = i * 7919 * n % 251 end\n"
    "  table.sort(t, function(a, b) return a > b end)\n"
    "  return t[1] + t[75]\n"
    "end\n"
    "function heavy.collections(n)\n"
    "  if n % 16 == 0 then collectgarbage() end\n"
    "  return 1\n"
    "end\n"
    "local names = {'tables', 'closures', 'coroutines', 'errors', 'numbers'}\n"
    "local more = {'texts', 'sorts', 'collections'}\n"
    "local function all(from, with, n, sum)\n"
    "  for _, name in ipairs(with) do sum = sum * 3 % 65521 + from[name](n) "
    "end\n"
    "  return sum\n"
    "end\n"
    "function light(rounds)\n"
    "  local sum = 0\n"
    "  for n = 1, rounds * 10 do sum = all(parts, names, n, sum) end\n"
    "  return sum\n"
    "end\n"
    "function work(rounds)\n"
    "  local sum = 0\n"
    "  for n = 1, rounds * 10 do\n"
    "    sum = all(heavy, more, n, all(parts, names, n, sum))\n"
    "  end\n"
    "  return sum\n"
    "end\n";

static void zoo_print(const char *before, const char *format, va_list list)
{
  char line[512];
  int n = snprintf(line, sizeof line, "%s", before);
  n += vsnprintf(line + n, sizeof line - (size_t)n, format, list);
  if (n > (int)sizeof line - 2)
    n = sizeof line - 2;
  line[n++] = '\n';
  if (write(STDOUT_FILENO, line, (size_t)n) != n)
    _exit(1);
}

void zoo_say(const char *format, ...)
{
  va_list list;
  va_start(list, format);
  zoo_print("", format, list);
  va_end(list);
}

void zoo_skip(const char *format, ...)
{
  va_list list;
  va_start(list, format);
  zoo_print("skipped: ", format, list);
  va_end(list);
  _exit(ZOO_SKIPPED);
}

void zoo_skip_forks(void)
{
  if (ZOO_SANITIZED)
    zoo_skip("a child may find the sanitizer's locks taken");
}

void zoo_need(bool good, const char *what)
{
  if (good)
    return;
  zoo_say("%s failed: %s", what, strerror(errno));
  _exit(1);
}

void zoo_open(lua_State *L)
{
  luaL_openlibs(L);
  if (luaL_loadbuffer(L, zoo_chunk, sizeof zoo_chunk - 1, "=work") ||
      lua_pcall(L, 0, 0, 0)) {
    zoo_say("%s", lua_tostring(L, -1));
    _exit(1);
  }
}

lua_State *zoo_vm(void)
{
  lua_State *L = luaL_newstate();
  zoo_need(L != NULL, "luaL_newstate");
  zoo_open(L);
  return L;
}

lua_State *zoo_vm_and(void (*install)(void), int argc, char **argv)
{
  bool early = argc > 1 && !strcmp(argv[1], "early");
  if (early)
    install();
  lua_State *L = zoo_vm();
  if (!early)
    install();
  return L;
}

static long zoo_call(lua_State *L, const char *function, int rounds)
{
  lua_getglobal(L, function);
  lua_pushinteger(L, rounds);
  if (lua_pcall(L, 1, 1, 0)) {
    zoo_say("%s: %s", function, lua_tostring(L, -1));
    _exit(1);
  }
  long sum = (long)lua_tointeger(L, -1);
  lua_pop(L, 1);
  return sum;
}

long zoo_work(lua_State *L, int rounds)
{
  return zoo_call(L, "work", rounds);
}

long zoo_light(lua_State *L, int rounds)
{
  return zoo_call(L, "light", rounds);
}

long zoo_work_alone(int rounds)
{
  lua_State *L = zoo_vm();
  long sum = zoo_work(L, rounds);
  lua_close(L);
  return sum;
}

pthread_t zoo_thread(void *(*work)(void *), void *argument, size_t stack)
{
  pthread_attr_t attributes;
  pthread_t thread;
  pthread_attr_init(&attributes);
  if (stack)
    zoo_need(pthread_attr_setstacksize(&attributes, stack) == 0,
             "pthread_attr_setstacksize");
  zoo_need(pthread_create(&thread, &attributes, work, argument) == 0,
           "pthread_create");
  pthread_attr_destroy(&attributes);
  return thread;
}

void *zoo_join(pthread_t thread)
{
  void *result = NULL;
  zoo_need(pthread_join(thread, &result) == 0, "pthread_join");
  return result;
}

static void *zoo_worker_run(void *rounds)
{
  return (void *)(intptr_t)zoo_work_alone((int)(intptr_t)rounds);
}

pthread_t zoo_worker(int rounds)
{
  return zoo_thread(zoo_worker_run, (void *)(intptr_t)rounds, 0);
}

long zoo_result(pthread_t worker)
{
  return (long)(intptr_t)zoo_join(worker);
}

int zoo_wait(pid_t child)
{
  int status = -1;
  zoo_need(child > 0, "fork");
  while (waitpid(child, &status, 0) < 0)
    zoo_need(errno == EINTR, "waitpid");
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

size_t zoo_least_stack(void)
{
  size_t least = getauxval(AT_MINSIGSTKSZ);
  return least > 8192 ? least : 8192;
}
