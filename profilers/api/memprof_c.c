/*
** luaM_memprof_*: the C interface of lmisclib.h. May be called from any thread
** that may call into the VM; every event is recorded.
*/
#include <errno.h>
#include <string.h>

#include "profilers/api/c_result.h"
#include "profilers/api/lmisclib.h"
#include "profilers/memory/memprof.h"

/* Of the session that runs; read when it has ended. */
static struct luam_Memprof_Options running;

/* What on_stop has said to the thread that stopped: an errno. */
static __thread int refused;

static void stopped(void *ctx)
{
  (void)ctx;
  struct luam_Memprof_Options was = running;
  running.on_stop = NULL;
  errno = 0;
  if (was.on_stop && was.on_stop(was.ctx, was.buf))
    refused = errno ? errno : EIO;
}

int luaM_memprof_start(lua_State *L, const struct luam_Memprof_Options *opt)
{
  struct ljp_memprof_options options;
  struct ljp_memprof_status now;
  struct ljp_failure why;
  if (!L || !opt || !opt->writer) {
    errno = EINVAL;
    return PROFILE_ERRUSE;
  }
  ljp_memprof_status(&now);
  if (now.running) { /* its options stay */
    errno = EBUSY;
    return PROFILE_ERRRUN;
  }
  ljp_memprof_options_init(&options);
  options.sample_bytes = 0;
  options.output.callback = opt->writer;
  options.output.callback_ctx = opt->ctx;
  options.output.on_stop = stopped;
  running = *opt;
  return ljp_c_result(ljp_memprof_start(L, &options, &why), &why);
}

int luaM_memprof_stop(lua_State *L)
{
  struct ljp_failure why;
  if (!L) {
    errno = EINVAL;
    return PROFILE_ERRUSE;
  }
  refused = 0;
  int code = ljp_c_result(ljp_memprof_stop(L, &why), &why);
  if (code != PROFILE_SUCCESS || !refused)
    return code;
  errno = refused;
  return PROFILE_ERRIO;
}
