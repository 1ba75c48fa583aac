/*
** luaM_memprof_*: the C interface of lmisclib.h. Records every event. Any
** thread that may call into the VM may call this.
*/
#include <errno.h>
#include <stdlib.h>

#include "profilers/api/c_output.h"
#include "profilers/api/c_result.h"
#include "profilers/api/lmisclib.h"
#include "profilers/memory/memprof.h"
#include "profilers/session/side_run.h"

/* The errno of a failed on_stop, for the thread that stopped the session; or
** 0. */
static __thread int on_stop_error;

static void memprof_stopped(void *output, bool left)
{
  if (ljp_c_output_end(output, left))
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
  struct ljp_c_output *output = ljp_c_output_new((struct ljp_c_output){
      opt->writer, opt->on_stop, opt->ctx, opt->buf, opt->len});
  if (!output) {
    errno = ENOMEM;
    return PROFILE_ERRMEM;
  }
  ljp_memprof_options_init(&options);
  options.sample_bytes = 0;
  options.output.callback = ljp_c_output_write;
  options.output.callback_ctx = options.output.on_stop_ctx = output;
  options.output.on_stop = memprof_stopped;
  int code = ljp_c_result(ljp_memprof_start(L, &options, &why), &why);
  if (code != PROFILE_SUCCESS)
    free(output);
  return code;
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
