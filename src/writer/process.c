/*
** See process.h.
*/
#include "src/writer/process.h"

#include <cpuid.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "src/base/clock.h"
#include "src/base/open_file.h"
#include "src/base/own_proc.h"

enum { MODEL_BYTES = 49 };

static size_t process_read_file(const char *name, char *buf, size_t room)
{
  size_t len = 0;
  int fd = ljp_fd_not_standard(ljp_own_proc_open(name, O_RDONLY | O_CLOEXEC));
  if (fd < 0)
    return 0;
  ssize_t n;
  while (len < room && (n = read(fd, buf + len, room - len)) > 0)
    len += (size_t)n;
  close(fd);
  return len;
}

void ljp_process_put(struct ljp_body *body)
{
  enum { EXE = 4096, ARGS = 16384 };
  /* Not on the stack, which may be a small one (a fiber's). */
  char *exe = malloc(EXE + ARGS), *args = exe + EXE;
  ssize_t exe_len = exe ? ljp_own_proc_link("exe", exe, EXE) : 0;
  size_t args_len = exe ? process_read_file("cmdline", args, ARGS) : 0;
  if (args_len && !args[args_len - 1])
    args_len--;
  ljp_body_u(body, (uint64_t)getpid());
  ljp_body_u(body, (uint64_t)getppid());
  /* Both clocks at almost the same moment: the wall clock is read between two
  ** reads of the monotonic one. */
  uint64_t before = ljp_clock_ns();
  uint64_t wall = ljp_clock_of(CLOCK_REALTIME);
  uint64_t after = ljp_clock_ns();
  ljp_body_u(body, before + (after - before) / 2);
  ljp_body_u(body, wall);
  ljp_body_str(body, exe, exe_len > 0 ? (size_t)exe_len : 0, EXE);
  ljp_body_str(body, args, args_len, ARGS);
  free(exe);
}

/* What /proc/cpuinfo calls "model name"; the kernel takes longer to write that file
** than everything else here. */
static void process_ask_cpu(char out[MODEL_BYTES])
{
  enum { FIRST = 0x80000002, LAST = 0x80000004 };
  uint32_t part[4];
  size_t bytes = 0;
  for (uint32_t leaf = FIRST; leaf <= LAST; leaf++) {
    if (!__get_cpuid(leaf, &part[0], &part[1], &part[2], &part[3]))
      break;
    memcpy(out + bytes, part, sizeof part);
    bytes += sizeof part;
  }
  out[bytes] = 0;
}

/* It is asked once: in a virtual machine each question takes some 7 us. */
static void process_cpu_model(char out[MODEL_BYTES])
{
  enum { UNKNOWN, BEING_TOLD, KNOWN };
  static char model[MODEL_BYTES];
  static _Atomic int state;
  if (atomic_load_explicit(&state, memory_order_acquire) == KNOWN) {
    memcpy(out, model, MODEL_BYTES);
    return;
  }
  process_ask_cpu(out);
  int unknown = UNKNOWN;
  if (atomic_compare_exchange_strong(&state, &unknown, BEING_TOLD)) {
    memcpy(model, out, MODEL_BYTES);
    atomic_store_explicit(&state, KNOWN, memory_order_release);
  }
}

void ljp_process_facts(void (*fact)(void *ctx, const char *key,
                                    const char *value),
                       void *ctx)
{
  char value[256], model[MODEL_BYTES];
  struct utsname names;
  if (uname(&names) == 0) {
    snprintf(value, sizeof value, "%s %s", names.sysname, names.release);
    fact(ctx, "host.kernel", value);
    fact(ctx, "host.machine", names.machine);
    fact(ctx, "host.name", names.nodename);
  }
  process_cpu_model(model);
  if (model[0])
    fact(ctx, "host.cpu", model + strspn(model, " "));
  snprintf(value, sizeof value, "%ld", sysconf(_SC_NPROCESSORS_ONLN));
  fact(ctx, "host.cpus", value);
  snprintf(value, sizeof value, "%ld", sysconf(_SC_PAGESIZE));
  fact(ctx, "host.page_bytes", value);
}

bool ljp_process_deserted(unsigned own_threads)
{
  char buf[1024];
  size_t len = process_read_file("stat", buf, sizeof buf - 1);
  buf[len] = 0;
  /* "pid (name) state ...": the name may contain anything, so parse from its
  ** end. Field 20 is the number of threads. */
  const char *p = strrchr(buf, ')');
  if (!p || p[1] != ' ' || p[2] != 'Z')
    return false;
  p += 2;
  for (int field = 3; field < 20 && p; field++) {
    p = strchr(p, ' ');
    p = p ? p + 1 : NULL;
  }
  return p && strtoul(p, NULL, 10) <= own_threads + 1;
}
