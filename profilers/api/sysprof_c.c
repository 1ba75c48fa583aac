/*
** luaM_sysprof_*: the C interface of lmisclib.h. Any thread may call this. The
** writer, on_stop and backtracer that are set apply to sessions that C starts;
** sessions that Lua starts write into files.
*/
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "profilers/api/c_output.h"
#include "profilers/api/c_result.h"
#include "profilers/api/lmisclib.h"
#include "profilers/cpu/sysprof.h"
#include "profilers/session/side_run.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
  luam_Sysprof_writer writer;
  luam_Sysprof_on_stop on_stop;
  luam_Sysprof_backtracer backtracer;
} set;

/* Programs give -1 for a timer that never expires. */
static const uint64_t longest_ms = INT32_MAX;

static int sysprof_wrong(int error)
{
  errno = error;
  return PROFILE_ERRUSE;
}

int luaM_sysprof_set_writer(luam_Sysprof_writer writer)
{
  if (!writer)
    return sysprof_wrong(EINVAL);
  pthread_mutex_lock(&lock);
  set.writer = writer;
  pthread_mutex_unlock(&lock);
  return PROFILE_SUCCESS;
}

int luaM_sysprof_set_on_stop(luam_Sysprof_on_stop on_stop)
{
  if (!on_stop)
    return sysprof_wrong(EINVAL);
  pthread_mutex_lock(&lock);
  set.on_stop = on_stop;
  pthread_mutex_unlock(&lock);
  return PROFILE_SUCCESS;
}

int luaM_sysprof_set_backtracer(luam_Sysprof_backtracer backtracer)
{
  pthread_mutex_lock(&lock);
  set.backtracer = backtracer;
  pthread_mutex_unlock(&lock);
  return PROFILE_SUCCESS;
}

static void sysprof_stopped(void *output, bool left)
{
  ljp_c_output_end(output, left);
}

int luaM_sysprof_start(lua_State *L, const struct luam_Sysprof_Options *opt)
{
  struct ljp_sysprof_options options;
  struct ljp_failure why;
  ljp_side_bind();
  if (!L || !opt || opt->mode > LUAM_SYSPROF_CALLGRAPH || !opt->interval)
    return sysprof_wrong(EINVAL);
  ljp_sysprof_options_init(&options);
  options.mode = (enum ljp_sampler_mode)opt->mode;
  options.interval_ns =
      (opt->interval < longest_ms ? opt->interval : longest_ms) * 1000000;
  options.asked = SIGPROF;
  options.output.on_stop = sysprof_stopped;
  struct ljp_c_output of = {.ctx = opt->ctx, .buf = opt->buf, .len = opt->len};
  pthread_mutex_lock(&lock);
  of.writer = set.writer;
  of.on_stop = set.on_stop;
  options.backtracer = set.backtracer;
  pthread_mutex_unlock(&lock);
  if (options.mode != LJP_SAMPLER_COUNT && !of.writer)
    return sysprof_wrong(EINVAL);
  struct ljp_c_output *output = ljp_c_output_new(of);
  if (!output) {
    errno = ENOMEM;
    return PROFILE_ERRMEM;
  }
  options.output.callback = of.writer ? ljp_c_output_write : NULL;
  options.output.callback_ctx = options.output.on_stop_ctx = output;
  int code = ljp_c_result(ljp_sysprof_start(L, &options, &why), &why);
  if (code != PROFILE_SUCCESS)
    free(output);
  return code;
}

int luaM_sysprof_stop(lua_State *L)
{
  struct ljp_failure why;
  return ljp_c_result(ljp_sysprof_stop(L, &why), &why);
}

int luaM_sysprof_report(struct luam_Sysprof_Counters *counters)
{
  struct ljp_sysprof_report r;
  if (!counters)
    return sysprof_wrong(EINVAL);
  ljp_sysprof_report(&r);
  /* What has no state of the VM counts as INTERP, so that the states add up. */
  counters->vmst_interp =
      r.state[LJP_VMSTATE_INTERP] - r.lfunc + r.state[LJP_VMSTATE_HOST] +
      r.state[LJP_VMSTATE_WAITING] + r.state[LJP_VMSTATE_UNKNOWN];
  counters->vmst_lfunc = r.lfunc;
  counters->vmst_ffunc = r.state[LJP_VMSTATE_BUILTIN];
  counters->vmst_cfunc = r.state[LJP_VMSTATE_C];
  counters->vmst_gc = r.state[LJP_VMSTATE_GC];
  counters->vmst_exit = r.state[LJP_VMSTATE_EXIT];
  counters->vmst_record = r.state[LJP_VMSTATE_RECORD];
  counters->vmst_opt = r.state[LJP_VMSTATE_OPT];
  counters->vmst_asm = r.state[LJP_VMSTATE_ASM];
  counters->vmst_trace = r.state[LJP_VMSTATE_TRACE];
  counters->samples = r.samples;
  return PROFILE_SUCCESS;
}
