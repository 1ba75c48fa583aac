/*
** Asks /proc for the process that writes a stream.
*/
#include "parsers/stream/recording.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define RECORDING_SECOND_NS UINT64_C(1000000000)

/* Reads a small file of /proc as text. False: it cannot be read. */
static bool recording_read(int folder, const char *name, char *text,
                           size_t room)
{
  int fd = openat(folder, name, O_RDONLY | O_CLOEXEC);
  if (fd < 0)
    return false;
  ssize_t n = read(fd, text, room - 1);
  close(fd);
  text[n > 0 ? n : 0] = '\0';
  return n > 0;
}

static uint64_t recording_clock(clockid_t clock)
{
  struct timespec t;
  return clock_gettime(clock, &t)
             ? 0
             : (uint64_t)t.tv_sec * RECORDING_SECOND_NS + (uint64_t)t.tv_nsec;
}

/* Whether the process began before this time of CLOCK_MONOTONIC. Its start is
** told in ticks of CLOCK_BOOTTIME, which also runs while the machine sleeps. */
static bool recording_is_older(int process, uint64_t mono_ns)
{
  enum { START = 20 }; /* Fields from the name's end to the start. */
  char stat[1024];
  long ticks = sysconf(_SC_CLK_TCK);
  char *p = recording_read(process, "stat", stat, sizeof stat)
                ? strrchr(stat, ')')
                : NULL;
  for (int i = 0; p && i < START; i++)
    p = strchr(p + 1, ' ');
  if (!p || ticks <= 0)
    return false;
  uint64_t start_ns =
      strtoull(p + 1, NULL, 10) * (RECORDING_SECOND_NS / (uint64_t)ticks);
  uint64_t boot = recording_clock(CLOCK_BOOTTIME);
  uint64_t mono = recording_clock(CLOCK_MONOTONIC);
  return start_ns <= mono_ns + (boot > mono ? boot - mono : 0);
}

static bool recording_writes(int process, const char *number)
{
  char name[300], text[512];
  snprintf(name, sizeof name, "fdinfo/%.255s", number);
  const char *flags = recording_read(process, name, text, sizeof text)
                          ? strstr(text, "flags:")
                          : NULL;
  return flags && (strtoul(flags + sizeof "flags:" - 1, NULL, 8) & O_ACCMODE) !=
                      O_RDONLY;
}

/* Whether the process or thread has the file open for writing. */
static bool recording_has_open(int process, const struct stat *file)
{
  int fd = openat(process, "fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR *list = fd < 0 ? NULL : fdopendir(fd);
  bool found = false;
  struct dirent *entry;
  struct stat st;
  if (!list && fd >= 0)
    close(fd);
  while (list && !found && (entry = readdir(list)))
    found = entry->d_name[0] != '.' &&
            fstatat(fd, entry->d_name, &st, 0) == 0 &&
            st.st_dev == file->st_dev && st.st_ino == file->st_ino &&
            recording_writes(process, entry->d_name);
  if (list)
    closedir(list);
  return found;
}

/* The same for our threads: in a program that was joined, they have a table of
** descriptors of their own (RFC 8). */
static bool recording_threads_have_open(int process, const struct stat *file)
{
  static const char ours[] = "ljprof-";
  int fd = openat(process, "task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR *list = fd < 0 ? NULL : fdopendir(fd);
  bool found = false;
  struct dirent *entry;
  char name[32];
  if (!list && fd >= 0)
    close(fd);
  while (list && !found && (entry = readdir(list))) {
    int thread =
        entry->d_name[0] == '.'
            ? -1
            : openat(fd, entry->d_name, O_PATH | O_DIRECTORY | O_CLOEXEC);
    found = thread >= 0 && recording_read(thread, "comm", name, sizeof name) &&
            strncmp(name, ours, sizeof ours - 1) == 0 &&
            recording_has_open(thread, file);
    if (thread >= 0)
      close(thread);
  }
  if (list)
    closedir(list);
  return found;
}

bool ljp_recording(const struct ljp_rec_process *process, int fd,
                   uint64_t bytes)
{
  char path[32];
  struct stat st;
  if (!process || fd < 0 || fstat(fd, &st) || !S_ISREG(st.st_mode))
    return false;
  snprintf(path, sizeof path, "/proc/%" PRIu64, process->pid);
  int folder = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
  bool writes = folder >= 0 &&
                recording_is_older(folder, process->anchor_mono_ns) &&
                (recording_has_open(folder, &st) ||
                 recording_threads_have_open(folder, &st));
  if (folder >= 0)
    close(folder);
  /* The end may have come between the last read and now. */
  return writes || (!fstat(fd, &st) && (uint64_t)st.st_size > bytes);
}
