/*
** See recording.h. In a combined session the CPU profiler owns the output, and
** the memory profiler takes part (profilers/session/shared.h).
*/
#include "profilers/join/recording.h"

#include <stdatomic.h>
#include <string.h>

#include "src/base/join_message.h"

/* What the latest session consists of. */
static _Atomic unsigned recording_parts;

static enum ljp_status recording_start_both(struct ljp_recording *r,
                                            struct ljp_failure *why)
{
  struct ljp_failure ignored;
  if (ljp_memprof_running()) /* refused before anything starts */
    return ljp_memprof_busy(why);
  r->memory.output = r->cpu.output;
  r->memory.output.path = NULL;
  r->memory.output.on_stop = NULL;
  r->memory.shared = r->cpu.joint = true;
  enum ljp_status status = ljp_sysprof_start(NULL, &r->cpu, why);
  if (status)
    return status;
  status = ljp_memprof_start(NULL, &r->memory, why);
  status = status ? status : ljp_sysprof_commit(why);
  if (status) {
    ljp_memprof_stop_joined(&ignored);
    ljp_sysprof_stop_joined(&ignored);
  }
  return status;
}

enum ljp_status ljp_recording_start(struct ljp_recording *r,
                                    struct ljp_failure *why)
{
  enum ljp_status status;
  r->memory.client = r->cpu.client;
  r->memory.all = true;
  if (r->with_cpu && r->with_memory) {
    status = recording_start_both(r, why);
  } else if (r->with_cpu) {
    status = ljp_sysprof_start(NULL, &r->cpu, why);
  } else {
    r->memory.output = r->cpu.output;
    status = ljp_memprof_start(NULL, &r->memory, why);
  }
  if (!status)
    atomic_store(&recording_parts,
                 (r->with_cpu ? LJP_JOIN_SESSION_CPU : 0u) |
                     (r->with_memory ? LJP_JOIN_SESSION_MEMORY : 0u));
  return status;
}

static bool recording_samples(void)
{
  struct ljp_sysprof_status status;
  ljp_sysprof_status(&status);
  return status.client != 0;
}

static bool recording_has_events(void)
{
  struct ljp_memprof_status status;
  ljp_memprof_status(&status);
  return status.client != 0;
}

enum ljp_status ljp_recording_stop(struct ljp_failure *why)
{
  enum ljp_status status = LJP_OK;
  bool cpu = recording_samples();
  if (recording_has_events())
    status = ljp_memprof_stop_joined(why);
  else if (!cpu)
    return ljp_sysprof_stop_joined(why); /* which says that there is none */
  return status || !cpu ? status : ljp_sysprof_stop_joined(why);
}

pid_t ljp_recording_client(void)
{
  struct ljp_sysprof_status cpu;
  struct ljp_memprof_status memory;
  ljp_sysprof_status(&cpu);
  ljp_memprof_status(&memory);
  return cpu.client ? cpu.client : memory.client;
}

bool ljp_recording_failed(bool running)
{
  struct ljp_sysprof_status cpu;
  struct ljp_memprof_status memory;
  ljp_sysprof_status(&cpu);
  ljp_memprof_status(&memory);
  /* A profiler that is no part of it says what became of an earlier session. */
  unsigned parts = atomic_load(&recording_parts);
  return (parts & LJP_JOIN_SESSION_CPU && strcmp(cpu.state, "failed") == 0 &&
          (cpu.running || !running)) ||
         (parts & LJP_JOIN_SESSION_MEMORY && memory.unwritten &&
          (memory.running || !running));
}

unsigned ljp_recording_parts(void)
{
  return atomic_load(&recording_parts);
}

static uint64_t recording_events(const struct ljp_memprof_counts *counts)
{
  return counts->allocs + counts->frees + counts->reallocs + counts->failed;
}

void ljp_recording_sums(unsigned parts, uint64_t sums[LJP_RECORDING_SUMS])
{
  struct ljp_sysprof_status cpu;
  struct ljp_memprof_status memory;
  struct ljp_sysprof_report report;
  memset(sums, 0, LJP_RECORDING_SUMS * sizeof *sums);
  if (parts & LJP_JOIN_SESSION_MEMORY) {
    ljp_memprof_status(&memory);
    sums[LJP_RECORDING_BYTES] = memory.bytes;
    sums[LJP_RECORDING_EVENTS] = recording_events(&memory.counts);
    sums[LJP_RECORDING_LOST] = memory.counts.untold;
    for (int i = 0; i < LJP_LOSS_COUNT; i++)
      sums[LJP_RECORDING_LOST] += memory.counts.lost[i];
  }
  if (parts & LJP_JOIN_SESSION_CPU) {
    ljp_sysprof_status(&cpu);
    ljp_sysprof_report(&report);
    sums[LJP_RECORDING_BYTES] = cpu.bytes;
    sums[LJP_RECORDING_SAMPLES] = report.samples;
    for (int i = 0; i < LJP_LOSS_COUNT; i++)
      sums[LJP_RECORDING_LOST] += report.lost[i];
  }
}
