/*
** See stacks.h. Threads that run are stopped by the client, one after the other,
** each only while its stack is read here; so what runs with all signals blocked
** is seen, too, and no signal is taken from the program. Threads that wait are
** read where the kernel says that they wait, and are not stopped.
**
** While a thread is stopped, nothing here takes a lock or memory: the thread may
** be in malloc(). Names are looked up afterwards. A hold keeps the functions
** that the stacks name, even if they are freed meanwhile. (A child of a fork() in
** that short time has the hold for ever, and keeps names of freed functions.)
*/
#include "profilers/join/stacks.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "profilers/cpu/proc_task.h"
#include "profilers/join/stacks_out.h"
#include "profilers/join/stacks_read.h"
#include "profilers/session/host.h"
#include "profilers/session/side_run.h"
#include "src/base/clock.h"
#include "src/base/own_proc.h"
#include "src/luajit/functions.h"

enum { PLACES = 64, COROUTINES = 10000 };
#define SEARCH_NS UINT64_C(200000000)

struct ljp_stacks {
  bool locals;
  unsigned placed;
  uint64_t threads, coroutines;
  struct ljp_guest_hold hold;
  struct ljp_guest_proto proto;
  struct ljp_stacks_out out;
  /* Touched only as far as threads are given. */
  struct ljp_read_stack scratch, place[PLACES];
};

/* A function was freed: it waits for the hold's end, which comes soon. */
static void stacks_on_crowded(void)
{
}

enum ljp_status ljp_stacks_new(struct ljp_stacks **out, int output, bool locals,
                               struct ljp_failure *why)
{
  struct stat st;
  if (fstat(output, &st) || !S_ISREG(st.st_mode))
    return ljp_fail(why, LJP_ERR_USE, EINVAL, "the output is no plain file");
  struct ljp_stacks *s = calloc(1, sizeof *s);
  if (!s)
    return ljp_fail(why, LJP_ERR_MEM, ENOMEM, "out of memory");
  ljp_side_bind();
  enum ljp_status status = ljp_host_prepare(why);
  if (status) {
    free(s);
    return status;
  }
  s->locals = locals;
  ljp_stacks_out_begin(&s->out, output);
  ljp_guest_protos_hold(&s->hold, stacks_on_crowded);
  ljp_guest_protos_ready(&s->hold);
  *out = s;
  return LJP_OK;
}

void ljp_stacks_free(struct ljp_stacks *s)
{
  if (!s)
    return;
  ljp_guest_protos_release(&s->hold);
  ljp_host_release();
  free(s);
}

uint32_t ljp_stacks_place(struct ljp_stacks *s, int tid,
                          const uint64_t *registers)
{
  struct ljp_regs regs = {.known = LJP_REGS_ALL, .exact = true};
  if (s->placed == PLACES)
    return 0;
  struct ljp_read_stack *place = &s->place[s->placed++];
  memcpy(regs.r, registers, sizeof regs.r);
  ljp_read_thread(place, &regs, s->locals);
  place->tid = tid;
  place->flags = 0;
  return place->count;
}

/* -- Frames ---------------------------------------------------------------- */

static void stacks_put_lua(struct ljp_stacks *s, uint64_t frame)
{
  struct ljp_guest_proto *p = &s->proto;
  memset(p, 0, sizeof *p);
  if (!ljp_guest_proto(ljp_frame_proto_ref(frame), p))
    p->flags = LJP_PROTO_UNKNOWN;
  ljp_stacks_put(&s->out, LJP_STACKS_LUA);
  ljp_stacks_put_text(&s->out, p->name);
  ljp_stacks_put_text(&s->out, p->chunk);
  ljp_stacks_put_number(&s->out, ljp_frame_line(frame));
  ljp_stacks_put_number(&s->out, p->first_line);
  ljp_stacks_put_number(&s->out, p->flags);
  ljp_stacks_put_number(&s->out,
                        ljp_frame_kind(frame) == LJP_FRAME_LUA_INLINED);
}

static void stacks_put_frame(struct ljp_stacks *s, uint64_t frame, bool exact)
{
  uint64_t payload = ljp_frame_payload(frame);
  uint32_t offset;
  const char *name = NULL;
  switch (ljp_frame_kind(frame)) {
  case LJP_FRAME_LUA:
  case LJP_FRAME_LUA_INLINED:
    stacks_put_lua(s, frame);
    break;
  case LJP_FRAME_BUILTIN:
    name = ljp_guest_builtin((uint32_t)payload);
    ljp_stacks_put(&s->out, LJP_STACKS_BUILTIN);
    ljp_stacks_put_text(&s->out, name ? name : "?");
    break;
  case LJP_FRAME_CFUNC:
    ljp_stacks_put(&s->out, LJP_STACKS_C);
    ljp_stacks_put_address(&s->out, payload);
    break;
  case LJP_FRAME_HOST:
    ljp_stacks_put(&s->out, LJP_STACKS_HOST);
    ljp_stacks_put_address(&s->out, payload);
    ljp_stacks_put_number(&s->out, exact);
    break;
  case LJP_FRAME_VM:
    name = ljp_guest_vm_symbol(payload, &offset);
    ljp_stacks_put(&s->out, LJP_STACKS_VM);
    ljp_stacks_put_text(&s->out, name ? name : "?");
    break;
  case LJP_FRAME_CUT:
    ljp_stacks_put(&s->out, LJP_STACKS_GAP);
    ljp_stacks_put_number(&s->out, payload);
    break;
  default:
    return; /* a trace: its functions are frames of their own */
  }
  ljp_stacks_put_end(&s->out);
}

static void stacks_put_frames(struct ljp_stacks *s,
                              const struct ljp_read_stack *stack)
{
  const char *at = stack->locals, *end = at + stack->locals_bytes;
  for (uint32_t i = 0; i < stack->count; i++) {
    stacks_put_frame(s, stack->frames[i], !i);
    while (at < end && strtoul(at, NULL, 10) == i) {
      const char *name = at + strlen(at) + 1, *value = name + strlen(name) + 1;
      ljp_stacks_put(&s->out, LJP_STACKS_LOCAL);
      ljp_stacks_put_text(&s->out, name);
      ljp_stacks_put_text(&s->out, value);
      ljp_stacks_put_end(&s->out);
      at = value + strlen(value) + 1;
    }
  }
}

/* -- Threads --------------------------------------------------------------- */

static void stacks_read_proc(pid_t tid, const char *file, char *out,
                             size_t room)
{
  char name[48];
  snprintf(name, sizeof name, "task/%ld/%s", (long)tid, file);
  int fd = ljp_own_proc_open(name, O_RDONLY | O_CLOEXEC);
  ssize_t n = fd >= 0 ? read(fd, out, room - 1) : -1;
  if (fd >= 0)
    close(fd);
  out[n > 0 ? n : 0] = '\0';
}

/* "PID (NAME) STATE ..."; the name may have any bytes. */
static char stacks_task_state(pid_t tid)
{
  char text[256];
  stacks_read_proc(tid, "stat", text, sizeof text);
  const char *name_end = strrchr(text, ')');
  return name_end && name_end[1] == ' ' && name_end[2] ? name_end[2] : '?';
}

static void stacks_tell_thread(pid_t tid, void *stacks)
{
  struct ljp_stacks *s = stacks;
  struct ljp_read_stack *stack = NULL;
  char name[16], waits[64], state[2] = {0};
  ljp_task_name(tid, name);
  if (!*name || strncmp(name, "ljprof-", 7) == 0)
    return;
  state[0] = stacks_task_state(tid);
  for (unsigned i = 0; i < s->placed && !stack; i++)
    if (s->place[i].tid == tid)
      stack = &s->place[i];
  if (stack) {
    state[0] = 'R';
  } else {
    stack = &s->scratch;
    ljp_read_waiting(stack, tid, s->locals);
  }
  stacks_read_proc(tid, "wchan", waits, sizeof waits);
  ljp_stacks_put(&s->out, LJP_STACKS_THREAD);
  ljp_stacks_put_number(&s->out, (uint64_t)tid);
  ljp_stacks_put_text(&s->out, state);
  ljp_stacks_put_number(&s->out, stack->vm);
  ljp_stacks_put_number(&s->out, stack->state);
  ljp_stacks_put_number(&s->out, stack->cut);
  ljp_stacks_put_number(&s->out, stack->flags);
  ljp_stacks_put_text(&s->out,
                      state[0] != 'R' && strcmp(waits, "0") != 0 ? waits : "");
  ljp_stacks_put_text(&s->out, name);
  ljp_stacks_put_end(&s->out);
  stacks_put_frames(s, stack);
  s->threads++;
}

static bool stacks_tell_coroutine(void *stacks,
                                  const struct ljp_lua_coroutine *coroutine)
{
  struct ljp_stacks *s = stacks;
  ljp_read_coroutine(&s->scratch, coroutine, s->locals);
  ljp_stacks_put(&s->out, LJP_STACKS_COROUTINE);
  ljp_stacks_put_number(&s->out, coroutine->vm);
  ljp_stacks_put_address(&s->out, coroutine->L);
  ljp_stacks_put_number(&s->out, coroutine->started);
  ljp_stacks_put_number(&s->out, s->scratch.cut);
  ljp_stacks_put_number(&s->out, s->scratch.flags);
  ljp_stacks_put_end(&s->out);
  stacks_put_frames(s, &s->scratch);
  s->coroutines++;
  return !s->out.error;
}

enum ljp_status ljp_stacks_tell(struct ljp_stacks *s, uint64_t sums[2],
                                struct ljp_failure *why)
{
  struct ljp_lua_search search = {.until_ns = ljp_clock_ns() + SEARCH_NS,
                                  .most = COROUTINES,
                                  .each = stacks_tell_coroutine,
                                  .ctx = s};
  ljp_stacks_put(&s->out, LJP_STACKS_HEAD);
  ljp_stacks_put_number(&s->out, 1);
  ljp_stacks_put_end(&s->out);
  ljp_task_each(stacks_tell_thread, s);
  ljp_lua_search(&search);
  ljp_stacks_put(&s->out, LJP_STACKS_END);
  ljp_stacks_put_number(&s->out, search.objects);
  ljp_stacks_put_number(&s->out, search.whole);
  ljp_stacks_put_end(&s->out);
  int error = ljp_stacks_out_end(&s->out);
  sums[0] = s->threads;
  sums[1] = s->coroutines;
  return error
             ? ljp_fail(why, LJP_ERR_IO, error,
                        "the stacks could not be written: %s", strerror(error))
             : LJP_OK;
}
