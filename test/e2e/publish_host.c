/*
** A host program whose VMs publish their labels: what its threads show inside and
** outside of Lua, with several VMs and threads, in children, and after lua_close().
*/
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "lmisclib.h"
#include "test/support/host_vm.h"
#include "test/support/published.h"

/* What this thread shows, read as from outside. "-": nothing. */
static const char *shown(void)
{
  static _Thread_local struct published_context context;
  static _Thread_local char text[PUBLISHED_TEXT];
  const void *const *slot = dlsym(RTLD_DEFAULT, "otel_thread_ctx_v1");
  if (!slot || !*slot)
    return slot ? "-" : "no variable";
  const char *wrong = published_read_context(getpid(), &context);
  if (wrong)
    return wrong;
  published_labels(getpid(), (uintptr_t)*slot, &context, text);
  return text;
}

static const char *context_is(void)
{
  struct published_context context;
  const char *wrong = published_read_context(getpid(), &context);
  return wrong ? wrong : "there";
}

static _Atomic unsigned checks;
static void check(const char *what, const char *wanted, const char *got)
{
  if (strcmp(wanted, got) != 0) {
    fprintf(stderr, "FAILED: %s: wanted '%s', got '%s'\n", what, wanted, got);
    _exit(1);
  }
  checks++;
}

static void check_number(const char *what, int wanted, int got)
{
  if (wanted != got) {
    fprintf(stderr, "FAILED: %s: wanted %d, got %d\n", what, wanted, got);
    _exit(1);
  }
  checks++;
}

/* shows(wanted): for Lua. */
static int lua_shows(lua_State *L)
{
  check("in Lua", luaL_checkstring(L, 1), shown());
  return 0;
}

static lua_State *vm_with(const char *route)
{
  lua_State *L = new_vm();
  lua_register(L, "shows", lua_shows);
  if (route)
    check_number("publish", PROFILE_SUCCESS, luaM_publish_labels(L, 1));
  if (route)
    luaM_label(L, "route", route);
  return L;
}

/* -- One VM ---------------------------------------------------------------- */

static int c_fails(lua_State *L)
{
  check("lua_cpcall", "route=/main", shown());
  return luaL_error(L, "fails");
}

/* A C function that resumes a coroutine, as nginx's module does. */
static int c_resumes(lua_State *L)
{
  lua_State *co = lua_newthread(L);
  lua_pushvalue(L, 1);
  lua_xmove(L, co, 1);
  luaM_label(co, "route", "/co");
  check("a coroutine that does not run", "route=/main", shown());
  check_number("yield", LUA_YIELD, lua_resume(co, 0));
  check("after a yield", "route=/main", shown());
  luaM_label(L, "route", "/other");
  check("the running coroutine gets a label", "route=/other", shown());
  luaM_label(L, "route", "/main");
  check_number("an error", LUA_ERRRUN, lua_resume(co, 0));
  check("after an error", "route=/main", shown());
  check_number("a dead one", LUA_ERRRUN, lua_resume(co, 0));
  check("after a dead one", "route=/main", shown());
  return 0;
}

/* The end of publishing inside of an entry. */
static int c_ends(lua_State *L)
{
  lua_State *co = lua_newthread(L);
  luaL_loadstring(co, "shows('route=/main') "
                      "misc.profile.publish_labels(false) shows('-')");
  check_number("an end inside", 0, lua_resume(co, 0));
  check("after an end inside", "-", shown());
  check_number("begin again", PROFILE_SUCCESS, luaM_publish_labels(L, 1));
  check("after a beginning", "route=/main", shown());
  return 0;
}

/* When the context was published; it must change with each key. */
static uint64_t context_time(void)
{
  struct published_header header;
  unsigned count;
  uint64_t at = published_find(getpid(), &count);
  return published_header(getpid(), at, &header) ? header.time : 0;
}

static void new_keys(lua_State *L)
{
  for (int i = 0; i < 5; i++) {
    char code[128];
    const uint64_t before = context_time();
    snprintf(code, sizeof code,
             "misc.profile.with({new%d = 1}, shows, 'new%d=1,route=/main')", i,
             i);
    run(L, code);
    check_number("a later time", 1, before && context_time() > before);
  }
}

/* An error that leaves a call on another coroutine. */
static int c_leaves(lua_State *L)
{
  lua_State *co = lua_newthread(L);
  luaM_label(co, "route", "/left");
  luaL_loadstring(co, "shows('route=/left') error('x')");
  lua_call(co, 0, 0);
  return 0;
}

static int c_catches(lua_State *L)
{
  lua_pushcfunction(L, c_leaves);
  check_number("an error leaves a coroutine", LUA_ERRRUN,
               lua_pcall(L, 0, 0, 0));
  check("after it", "route=/main", shown());
  return 0;
}

/* A call on another coroutine of the VM. */
static int c_calls(lua_State *L)
{
  lua_State *co = lua_newthread(L);
  luaM_label(co, "route", "/called");
  luaL_loadstring(co, "shows('route=/called')");
  lua_call(co, 0, 0);
  check("after a call on another coroutine", "route=/main", shown());
  luaL_loadstring(co, "shows('route=/called') error('x')");
  check_number("a failed call", LUA_ERRRUN, lua_pcall(co, 0, 0, 0));
  check("after it", "route=/main", shown());
  return 0;
}

static void one_vm(void)
{
  lua_State *L = vm_with("/main");
  check("outside", "-", shown());
  check("the context", "there", context_is());
  for (int i = 0; i < 2; i++) {
    run(L, "shows('route=/main')");
    check("after lua_pcall", "-", shown());
  }
  luaL_loadstring(L, "shows('route=/main') error('x')");
  check_number("an error", LUA_ERRRUN, lua_pcall(L, 0, 0, 0));
  check("after an error", "-", shown());
  luaL_loadstring(L, "shows('route=/main')");
  lua_call(L, 0, 0);
  check("after lua_call", "-", shown());
  check_number("lua_cpcall", LUA_ERRRUN, lua_cpcall(L, c_fails, NULL));
  check("after lua_cpcall", "-", shown());
  lua_register(L, "c_resumes", c_resumes);
  lua_register(L, "c_calls", c_calls);
  run(L, "c_resumes(function() shows('route=/co') coroutine.yield() "
         "shows('route=/co') error('x') end)");
  run(L, "c_calls() shows('route=/main')");
  lua_register(L, "c_catches", c_catches);
  run(L, "c_catches() shows('route=/main')");
  lua_register(L, "c_ends", c_ends);
  run(L, "c_ends() shows('route=/main')");
  new_keys(L);
  check("after C functions", "-", shown());
  lua_State *co = lua_newthread(L);
  luaM_label(co, "route", "/host");
  luaL_loadstring(co, "shows('route=/host') coroutine.yield()");
  check_number("a resume by the host", LUA_YIELD, lua_resume(co, 0));
  check("after a resume by the host", "-", shown());
  run(L, "misc.profile.label {route = false} shows('-') "
         "misc.profile.label {tenant = 't'} shows('tenant=t')");
  check("outside again", "-", shown());
  run(L, "shows('tenant=t') misc.profile.publish_labels(false) shows('-')");
  check("no context", "none", context_is());
  run(L, "shows('-')");
  /* The entry in which publishing begins is over before the next one. */
  run(L, "misc.profile.publish_labels(true) shows('tenant=t')");
  run(L, "shows('tenant=t')");
  check("the entry that began it is over", "-", shown());
  luaM_label(L, "more", "1");
  check("a label outside", "-", shown());
  lua_close(L);
  check("closed", "none", context_is());
  check("closed: nothing is shown", "-", shown());
  check_number("no VM", PROFILE_ERRUSE, luaM_publish_labels(NULL, 1));
}

/* Publishing begins in a coroutine that the host resumed before. */
static void begins_inside(void)
{
  lua_State *L = new_vm(), *co = lua_newthread(L);
  lua_register(L, "shows", lua_shows);
  luaL_loadstring(co, "misc.profile.publish_labels(true) "
                      "misc.profile.label {route = '/in'} shows('-') "
                      "coroutine.yield() shows('route=/in')");
  check_number("begun inside", LUA_YIELD, lua_resume(co, 0));
  run(L, "shows('-')");
  check("outside", "-", shown());
  check_number("goes on", 0, lua_resume(co, 0));
  check("outside again", "-", shown());
  lua_close(L);
}

/* -- Several VMs ----------------------------------------------------------- */

static lua_State *other_vm;
static int c_other(lua_State *L)
{
  (void)L;
  run(other_vm, lua_tostring(L, 1));
  return 0;
}

static void two_vms(void)
{
  lua_State *L = vm_with("/one");
  lua_register(L, "other", c_other);
  other_vm = vm_with(NULL);
  run(L, "other [[ misc.profile.label {route = '/two'} shows('-') "
         "coroutine.wrap(function() shows('-') end)() ]] shows('route=/one')");
  run(L, "other [[ shows('-') ]] shows('route=/one')");
  check_number("publish", PROFILE_SUCCESS, luaM_publish_labels(other_vm, 1));
  run(L, "other [[ shows('route=/two') coroutine.wrap(function() "
         "shows('route=/two') end)() ]] shows('route=/one')");
  check("after both", "-", shown());
  lua_close(L);
  check("one of two is closed", "there", context_is());
  run(other_vm, "shows('route=/two')");
  run(other_vm, "misc.profile.publish_labels(false)");
  check("none publishes", "none", context_is());
  lua_close(other_vm);
}

static void *thread_runs(void *vm)
{
  run(vm, "shows('route=/moves')");
  check("after the thread's call", "-", shown());
  return NULL;
}

static void *thread_works(void *route)
{
  char code[256];
  lua_State *L = vm_with(route);
  snprintf(code, sizeof code,
           "for i = 1, 300 do shows('route=%s') "
           "coroutine.wrap(function() misc.profile.label {i = i %% 7} "
           "shows('i=' .. i %% 7 .. ',route=%s') end)() end",
           (const char *)route, (const char *)route);
  for (int i = 0; i < 10; i++)
    run(L, code);
  lua_close(L);
  check("the thread's VM is closed", "-", shown());
  return NULL;
}

static void threads(void)
{
  pthread_t thread[4];
  static char routes[4][4] = {"/t0", "/t1", "/t2", "/t3"};
  lua_State *L = vm_with("/moves");
  run(L, "shows('route=/moves')");
  pthread_create(&thread[0], NULL, thread_runs, L);
  pthread_join(thread[0], NULL);
  run(L, "shows('route=/moves')");
  for (int i = 0; i < 4; i++)
    pthread_create(&thread[i], NULL, thread_works, routes[i]);
  for (int i = 0; i < 4; i++)
    pthread_join(thread[i], NULL);
  check("the first VM still publishes", "there", context_is());
  lua_close(L);
  check("all are closed", "none", context_is());
}

/* -- Children -------------------------------------------------------------- */

static void child_works(lua_State *L, const char *what)
{
  check(what, "none", context_is());
  run(L, "misc.profile.label {child = 1} shows('child=1,route=/fork')");
  check(what, "there", context_is());
  run(L, "misc.profile.label {new_key = 1} "
         "shows('child=1,new_key=1,route=/fork')");
  check(what, "-", shown());
  lua_close(L);
  check(what, "none", context_is());
  _exit(0);
}

static void wait_for(const char *what, pid_t pid)
{
  int status;
  while (waitpid(pid, &status, 0) < 0)
    ;
  check_number(what, 0, status);
}

static int c_forks(lua_State *L)
{
  pid_t pid = fork();
  if (pid)
    wait_for("a fork below Lua", pid);
  lua_pushboolean(L, pid == 0);
  return 1;
}

static void children(void)
{
  lua_State *L = vm_with("/fork");
  run(L, "shows('route=/fork')");
  pid_t pid = fork();
  if (!pid)
    child_works(L, "a child");
  wait_for("a child", pid);
  lua_register(L, "forks", c_forks);
  run(L, "if forks() then "
         "  coroutine.wrap(function() shows('route=/fork') end)() "
         "  shows('route=/fork') os.exit(0) end");
  /* A copy that no handler is told of. It has no process context, and gets one with
  ** the next set of labels. */
  pid = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
  if (!pid)
    child_works(L, "a copy");
  wait_for("a copy", pid);
  run(L, "misc.profile.label {parent = 1} shows('parent=1,route=/fork')");
  check("the parent's context", "there", context_is());
  lua_close(L);
}

/* -- Others ---------------------------------------------------------------- */

static void others(void)
{
  lua_State *L = new_vm();
  int fd = (int)syscall(SYS_memfd_create, "OTEL_CTX", 0);
  check_number("memfd", 0, ftruncate(fd, 4096));
  void *theirs = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0);
  close(fd);
  errno = 0;
  check_number("another library", PROFILE_ERRRUN, luaM_publish_labels(L, 1));
  check_number("another library: errno", EEXIST, errno);
  run(L, "local ok, why, number = misc.profile.publish_labels(true) "
         "assert(not ok and number == 17 and why == 'another library of this "
         "process publishes its context (OTEL_CTX) already', why)");
  munmap(theirs, 4096);
  check_number("without it", PROFILE_SUCCESS, luaM_publish_labels(L, 1));
  lua_close(L);
}

/* A thread's variable that another library has set. */
static void others_variable(void)
{
  static const int theirs;
  lua_State *L = new_vm();
  const void **slot = dlsym(RTLD_DEFAULT, "otel_thread_ctx_v1");
  *slot = &theirs;
  check_number("their variable", PROFILE_ERRRUN, luaM_publish_labels(L, 1));
  check_number("it stays", 1, *slot == &theirs);
  *slot = NULL;
  lua_close(L);
}

int main(void)
{
  check("at first", "-", shown());
  check("at first: context", "none", context_is());
  one_vm();
  begins_inside();
  two_vms();
  threads();
  children();
  others();
  others_variable();
  printf("%u checks\n", checks);
  return 0;
}
