/*
** What the programs of the host zoo share: a VM, a fixed amount of Lua work,
** and lines of output. Each program is one trait of a host. It runs without any
** session and under every kind of session; what it prints and its exit code
** must be the same. So it prints what it saw, and never a time or an address.
**
** Lines of the form "zoo: WORD VALUE..." in a program's opening comment tell
** the runner (test/hosts/zoo/run.sh) what is special about it; README.md lists
** them.
*/
#ifndef LJP_TEST_ZOO_H
#define LJP_TEST_ZOO_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "lauxlib.h"
#include "lua.h"
#include "lualib.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define ZOO_SANITIZED 1
#else
#define ZOO_SANITIZED 0
#endif

/* A function that libraries find in the program first. */
#define ZOO_PUBLIC __attribute__((visibility("default")))

/* Exit code of a program that cannot run on this machine. */
enum { ZOO_SKIPPED = 77 };

/* About a tenth of a second, if nothing is recorded. */
enum { ZOO_ROUNDS = ZOO_SANITIZED ? 20 : 60 };

/* Prints one line, by one write() to the standard output. */
__attribute__((format(printf, 1, 2))) void zoo_say(const char *format, ...);

/* Ends the program with exit code 77 and one line that gives the reason. */
__attribute__((format(printf, 1, 2), noreturn)) void
zoo_skip(const char *format, ...);

/* zoo_skip() under a sanitizer, for programs that fork: where a session has a
** thread, a child may find the sanitizer's locks taken for ever. */
void zoo_skip_forks(void);

/* Ends the program with exit code 1 and one line unless `good`. */
void zoo_need(bool good, const char *what);

/* A VM with its libraries. Under ljprof record the session begins in here. */
lua_State *zoo_vm(void);

/* The same; install() is called before, with the argument "early", or after. */
lua_State *zoo_vm_and(void (*install)(void), int argc, char **argv);

/* Gives a VM that is already there its libraries. */
void zoo_open(lua_State *L);

/* Lua work of every kind: tables, closures, coroutines, errors, texts, compiled
** loops, collections. Returns a checksum that depends on `rounds` only. */
long zoo_work(lua_State *L, int rounds);

/* The same without what takes kilobytes of the C stack (texts, the
** compiler). */
long zoo_light(lua_State *L, int rounds);

/* zoo_work() with a new VM, which is closed again. */
long zoo_work_alone(int rounds);

/* A thread that calls work(argument); zoo_join() returns the result. A stack of
** `stack` bytes, 0: of the usual size. */
pthread_t zoo_thread(void *(*work)(void *), void *argument, size_t stack);
void *zoo_join(pthread_t thread);

/* A thread that calls zoo_work_alone(); zoo_result() returns the checksum. */
pthread_t zoo_worker(int rounds);
long zoo_result(pthread_t worker);

/* Waits for a child. Returns its exit code, or 128 and the signal. */
int zoo_wait(pid_t child);

/* The least size of an alternate stack that a careful program asks for. */
size_t zoo_least_stack(void);

#endif
