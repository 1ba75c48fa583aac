/*
** Recording: the session that a client of a joined program has begun: of CPU
** samples, of memory events, or of both. There is one at most. On threads of
** ours; see sysprof.h and memprof.h.
*/
#ifndef LJP_JOIN_RECORDING_H
#define LJP_JOIN_RECORDING_H

#include <stdbool.h>
#include <stdint.h>

#include "profilers/cpu/sysprof.h"
#include "profilers/memory/memprof.h"

struct ljp_recording {
  struct ljp_sysprof_options cpu; /* its output is that of the session */
  struct ljp_memprof_options memory;
  bool with_cpu, with_memory;
  uint64_t
      room; /* bytes that the output may take on its disk at any time; 0: no
                 ** limit */
};

/* Starts it. On failure the output's on_stop may have been called. */
enum ljp_status ljp_recording_start(struct ljp_recording *recording,
                                    struct ljp_failure *why);
enum ljp_status ljp_recording_stop(struct ljp_failure *why);

/* The client's number; 0: no client has begun a session that runs. */
pid_t ljp_recording_client(void);
/* Has the output of the running session, or of the last one, failed? running:
** only of a running one. */
bool ljp_recording_failed(bool running);

/* Of the running sessions, else of the last ones, of these kinds: a combination
** of LJP_JOIN_SESSION_*. */
enum ljp_recording_sum {
  LJP_RECORDING_BYTES,
  LJP_RECORDING_SAMPLES,
  LJP_RECORDING_LOST,
  LJP_RECORDING_EVENTS, /* of memory */
  LJP_RECORDING_SUMS
};
void ljp_recording_sums(unsigned parts, uint64_t sums[LJP_RECORDING_SUMS]);
/* The kinds of the session that a client has begun last. */
unsigned ljp_recording_parts(void);

#endif
