/*
** See guard.h. One static struct: a handler of signals has no argument.
*/
#define LUA_CORE

#include <setjmp.h>
#include <signal.h>
#include <string.h>

#include "src/luajit/heap/guard.h"

static struct {
  sigjmp_buf back;
  volatile sig_atomic_t armed;
  uint64_t refs_left;
} guard_try;

static void guard_caught(int signal_number)
{
  if (guard_try.armed)
    siglongjmp(guard_try.back, 1);
  signal(signal_number, SIG_DFL);
}

void ljp_heap_guard_begin(struct ljp_heap_guard *guard, uint64_t heap_bytes)
{
  enum { LEAST_BYTES = 16, SLACK = 100000 };
  struct sigaction action;
  sigset_t faults;
  /* Not blocked in its own handler, which is left by a jump. */
  memset(&action, 0, sizeof action);
  action.sa_handler = guard_caught;
  action.sa_flags = SA_NODEFER;
  sigaction(SIGSEGV, &action, NULL);
  sigaction(SIGBUS, &action, NULL);
  sigemptyset(&faults);
  sigaddset(&faults, SIGSEGV);
  sigaddset(&faults, SIGBUS);
  sigprocmask(SIG_UNBLOCK, &faults, NULL);
  guard->unreadable = 0;
  guard->objects = heap_bytes / LEAST_BYTES + SLACK;
  guard->refs = heap_bytes / sizeof(uint64_t) + SLACK;
}

/* -- The output of a try --------------------------------------------------- */

static bool null_object(struct ljp_heap_out *out,
                        const struct ljp_heap_object *o)
{
  volatile char byte;
  (void)out;
  for (size_t i = 0; i < o->text_bytes; i++)
    byte = o->text[i];
  (void)byte;
  return true;
}

/* The address of an object, as far as one can see it. */
static bool null_is_object(uint64_t address)
{
  return address && !(address & 7) && address < UINT64_C(1) << 47;
}

static bool null_count(uint64_t target)
{
  return null_is_object(target) && guard_try.refs_left-- > 0;
}

static bool null_field(struct ljp_heap_out *out, unsigned how, uint64_t key,
                       uint64_t target)
{
  (void)out;
  (void)how;
  return null_is_object(key) && null_count(target);
}

static bool null_ref(struct ljp_heap_out *out, unsigned how, uint64_t number,
                     uint64_t target)
{
  (void)out;
  (void)how;
  (void)number;
  return null_count(target);
}

static bool null_named(struct ljp_heap_out *out, unsigned how, const char *name,
                       size_t name_bytes, uint64_t target)
{
  volatile char byte;
  (void)out;
  (void)how;
  for (size_t i = 0; i < name_bytes; i++)
    byte = name[i];
  (void)byte;
  return null_count(target);
}

static bool null_end(struct ljp_heap_out *out)
{
  (void)out;
  return true;
}

static bool null_ctype(struct ljp_heap_out *out,
                       const struct ljp_heap_ctype *type)
{
  (void)out;
  (void)type;
  return guard_try.refs_left-- > 0;
}

/* -- Tries ----------------------------------------------------------------- */

bool ljp_heap_guard_read(struct ljp_heap_walk *w, const void *object,
                         size_t bytes)
{
  const volatile char *at = object;
  struct ljp_heap_guard *guard = w->guard;
  bool good = false;
  if (!guard)
    return true;
  if (guard->objects && !((uintptr_t)object & 7) && bytes &&
      !sigsetjmp(guard_try.back, 0)) {
    guard_try.armed = 1;
    (void)at[0];
    (void)at[bytes - 1];
    good = true;
  }
  guard_try.armed = 0;
  if (good)
    guard->objects--;
  else
    guard->unreadable++;
  return good;
}

bool ljp_heap_guard_try(struct ljp_heap_walk *w,
                        bool (*part)(struct ljp_heap_walk *w, void *arg),
                        void *arg)
{
  struct ljp_heap_out null = {.object = null_object,
                              .ref = null_ref,
                              .field = null_field,
                              .named = null_named,
                              .object_end = null_end,
                              .ctype = null_ctype};
  struct ljp_heap_walk dry = *w;
  volatile bool good = false;
  if (!w->guard)
    return true;
  null.text_limit = w->out->text_limit;
  dry.out = &null;
  dry.guard = NULL;
  guard_try.refs_left = w->guard->refs;
  if (!sigsetjmp(guard_try.back, 0)) {
    guard_try.armed = 1;
    good = part(&dry, arg);
  }
  guard_try.armed = 0;
  if (!good)
    w->guard->unreadable++;
  return good;
}
