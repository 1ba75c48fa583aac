/*
** luaM_memprof_*: the C interface of lmisclib.h. Records every event. Any
** thread that may call into the VM may call this.
*/
#include <errno.h>
#include <string.h>

#include "profilers/api/c_output.h"
#include "profilers/api/c_result.h"
#include "profilers/api/lmisclib.h"
#include "profilers/memory/memprof.h"
#include "profilers/session/side_run.h"

/* The output of the running session; on_stop is read when it has ended. */
static struct ljp_c_output running;

/* The errno of a failed on_stop, for the thread that stopped the session; or
** 0. */
static __thread int on_stop_error;

static void memprof_stopped(void *ctx)
{
  (void)ctx;
  struct ljp_c_output was = running;
  running.on_stop = NULL;
  errno = 0;
  if (was.on_stop && was.on_stop(was.ctx, was.buf))
    on_stop_error = errno ? errno : EIO;
}

int luaM_memprof_start(lua_State *L, const struct luam_Memprof_Options *opt)
{
  struct ljp_memprof_options options;
  struct ljp_failure why;
  ljp_side_bind();
  if (!L || !opt || !opt->writer) {
    errno = EINVAL;
    return PROFILE_ERRUSE;
  }
  if (ljp_memprof_running()) { /* must not replace its options */
    errno = EBUSY;
    return PROFILE_ERRRUN;
  }
  ljp_memprof_options_init(&options);
  options.sample_bytes = 0;
  options.output.callback = ljp_c_output_write;
  options.output.callback_ctx = &running;
  options.output.on_stop = memprof_stopped;
  running = (struct ljp_c_output){opt->writer, opt->on_stop, opt->ctx, opt->buf,
                                  opt->len};
  return ljp_c_result(ljp_memprof_start(L, &options, &why), &why);
}

int luaM_memprof_isrunning(void)
{
  return ljp_memprof_running();
}

int luaM_memprof_stop(const lua_State *L)
{
  struct ljp_failure why;
  if (!L) {
    errno = EINVAL;
    return PROFILE_ERRUSE;
  }
  on_stop_error = 0;
  int code =
      ljp_c_result(ljp_memprof_stop((lua_State *)(uintptr_t)L, &why), &why);
  if (code != PROFILE_SUCCESS || !on_stop_error)
    return code;
  errno = on_stop_error;
  return PROFILE_ERRIO;
}
