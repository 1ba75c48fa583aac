/*
** See process.h.
*/
#include "tools/join/process.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <unistd.h>

static FILE *process_open(pid_t pid, pid_t tid, const char *name)
{
  char path[96];
  if (tid)
    snprintf(path, sizeof path, "/proc/%d/task/%d/%s", (int)pid, (int)tid,
             name);
  else
    snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, name);
  return fopen(path, "re");
}

/* The rest of a line that begins with this name; NULL: it does not. */
static const char *process_field(const char *line, const char *name)
{
  size_t len = strlen(name);
  return strncmp(line, name, len) == 0 && line[len] == ':'
             ? line + len + 1 + strspn(line + len + 1, " \t")
             : NULL;
}

static void process_status_line(struct ljp_proc_status *out, const char *line)
{
  const char *v;
  if ((v = process_field(line, "Name")))
    snprintf(out->comm, sizeof out->comm, "%.*s", (int)strcspn(v, "\n"), v);
  else if ((v = process_field(line, "State")))
    out->state = *v;
  else if ((v = process_field(line, "Tgid")))
    out->tgid = (pid_t)atol(v);
  else if ((v = process_field(line, "PPid")))
    out->parent = (pid_t)atol(v);
  else if ((v = process_field(line, "TracerPid")))
    out->tracer = (pid_t)atol(v);
  else if ((v = process_field(line, "Uid")))
    out->uid = (uid_t)strtoul(v + strcspn(v, "\t"), NULL, 10);
  else if ((v = process_field(line, "NSpid"))) {
    const char *last = strrchr(v, '\t');
    out->ns_pid = (pid_t)atol(last ? last : v);
  } else if ((v = process_field(line, "Seccomp")))
    out->seccomp = atoi(v);
  else if ((v = process_field(line, "SigPnd")) ||
           (v = process_field(line, "ShdPnd")))
    out->pending |= strtoull(v, NULL, 16);
  else if ((v = process_field(line, "SigBlk")))
    out->blocked = strtoull(v, NULL, 16);
  else if ((v = process_field(line, "x86_Thread_features")))
    out->shadow_stack = strstr(v, "shstk") != NULL;
}

bool ljp_proc_status(pid_t pid, pid_t tid, struct ljp_proc_status *out)
{
  char line[4096];
  *out = (struct ljp_proc_status){.comm = ""};
  FILE *f = process_open(pid, tid, "status");
  if (!f)
    return false;
  while (fgets(line, sizeof line, f))
    process_status_line(out, line);
  fclose(f);
  return out->state != '\0' && out->tgid > 0;
}

unsigned ljp_proc_threads(pid_t pid, pid_t *tids, unsigned room)
{
  char path[64];
  unsigned count = 0;
  snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
  DIR *dir = opendir(path);
  struct dirent *entry;
  while (dir && count < room && (entry = readdir(dir)) != NULL) {
    pid_t tid = (pid_t)atol(entry->d_name);
    if (tid <= 0)
      continue;
    tids[count++] = tid;
    if (tid == pid) {
      tids[count - 1] = tids[0];
      tids[0] = tid;
    }
  }
  if (dir)
    closedir(dir);
  return count;
}

long ljp_proc_call(pid_t pid, pid_t tid, struct ljp_proc_place *at)
{
  char text[256];
  long number = -1;
  struct ljp_proc_place place;
  FILE *f = process_open(pid, tid, "syscall");
  if (f && fgets(text, sizeof text, f) &&
      sscanf(text, "%ld %*x %*x %*x %*x %*x %*x %" SCNx64 " %" SCNx64, &number,
             &place.rsp, &place.rip) == 3 &&
      at)
    *at = place;
  if (f)
    fclose(f);
  return number;
}

void ljp_proc_link(pid_t pid, const char *name, char *out, size_t room)
{
  char path[64];
  snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, name);
  ssize_t n = readlink(path, out, room - 1);
  out[n > 0 ? n : 0] = '\0';
}

void ljp_proc_command(pid_t pid, char *out, size_t room)
{
  FILE *f = process_open(pid, 0, "cmdline");
  size_t n = f ? fread(out, 1, room - 1, f) : 0;
  if (f)
    fclose(f);
  while (n && !out[n - 1])
    n--;
  for (size_t i = 0; i < n; i++)
    if (!out[i])
      out[i] = ' ';
  out[n] = '\0';
}

/* -- Mappings -------------------------------------------------------------- */
static bool maps_take(struct ljp_maps *maps, size_t *room, char *line)
{
  struct ljp_mapping m = {0};
  unsigned major, minor;
  char rights[5] = "";
  int path = 0;
  if (sscanf(line,
             "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %x:%x %" SCNu64 " %n",
             &m.low, &m.high, rights, &m.offset, &major, &minor, &m.inode,
             &path) < 7)
    return true; /* not what the kernel writes */
  m.device = makedev(major, minor);
  m.read = rights[0] == 'r';
  m.write = rights[1] == 'w';
  m.execute = rights[2] == 'x';
  line[strcspn(line, "\n")] = '\0';
  m.path = strdup(path ? line + path : "");
  if (maps->count == *room) {
    size_t more = *room ? 2 * *room : 64;
    void *list = realloc(maps->list, more * sizeof *maps->list);
    if (!list) {
      free(m.path);
      return false;
    }
    maps->list = list;
    *room = more;
  }
  if (!m.path)
    return false;
  maps->list[maps->count++] = m;
  return true;
}

int ljp_maps_read(struct ljp_maps *maps, pid_t pid)
{
  enum { MOST = 200000 };
  char *line = NULL;
  size_t bytes = 0, room = 0;
  bool fits = true;
  *maps = (struct ljp_maps){NULL, 0};
  errno = 0;
  FILE *f = process_open(pid, 0, "maps");
  if (!f)
    return errno;
  while (fits && maps->count < MOST && getline(&line, &bytes, f) > 0)
    fits = maps_take(maps, &room, line);
  int error = !fits ? ENOMEM : ferror(f) ? errno : 0;
  free(line);
  fclose(f);
  if (error)
    ljp_maps_free(maps);
  return error;
}

void ljp_maps_free(struct ljp_maps *maps)
{
  for (size_t i = 0; i < maps->count; i++)
    free(maps->list[i].path);
  free(maps->list);
  *maps = (struct ljp_maps){NULL, 0};
}

const struct ljp_mapping *ljp_maps_at(const struct ljp_maps *maps, uint64_t at)
{
  size_t low = 0, high = maps->count;
  while (low < high) {
    size_t mid = low + (high - low) / 2;
    if (at >= maps->list[mid].high)
      low = mid + 1;
    else
      high = mid;
  }
  return low < maps->count && at >= maps->list[low].low ? &maps->list[low]
                                                        : NULL;
}

bool ljp_maps_writable(const struct ljp_maps *maps, uint64_t low, uint64_t high)
{
  while (low < high) {
    const struct ljp_mapping *m = ljp_maps_at(maps, low);
    if (!m || !m->write)
      return false;
    low = m->high;
  }
  return true;
}

/* -- Memory ---------------------------------------------------------------- */
bool ljp_memory_read(pid_t pid, uint64_t at, void *to, size_t bytes)
{
  struct iovec here = {to, bytes};
  struct iovec there = {(void *)(uintptr_t)at, bytes};
  errno = 0;
  return process_vm_readv(pid, &here, 1, &there, 1, 0) == (ssize_t)bytes;
}

int ljp_memory_open(pid_t pid)
{
  char path[64];
  snprintf(path, sizeof path, "/proc/%d/mem", (int)pid);
  return open(path, O_RDWR | O_CLOEXEC);
}

bool ljp_memory_get(int memory, uint64_t at, void *to, size_t bytes)
{
  errno = 0;
  return pread(memory, to, bytes, (off_t)at) == (ssize_t)bytes;
}

bool ljp_memory_put(int memory, uint64_t at, const void *from, size_t bytes)
{
  errno = 0;
  return pwrite(memory, from, bytes, (off_t)at) == (ssize_t)bytes;
}
