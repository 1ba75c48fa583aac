/*
** See nameless.h. A file on disk comes first: the pages of one in memory would
** count for the program that writes them, and a container may have little.
*/
#include "tools/join/nameless.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tools/shared/command.h"

/* -1: not in this folder. */
static int nameless_in(const char *folder)
{
  int fd = open(folder, O_RDWR | O_TMPFILE | O_EXCL | O_CLOEXEC, 0600);
  if (fd >= 0 &&
      fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096)) {
    close(fd);
    fd = -1;
  }
  return fd;
}

int ljp_nameless_open(struct ljp_nameless *file, const char *command)
{
  const char *const folders[] = {getenv("TMPDIR"), "/var/tmp", "/tmp"};
  enum { FOLDERS = sizeof folders / sizeof *folders };
  unsigned i = 0;
  int fd = -1;
  for (; i < FOLDERS; i++)
    if (folders[i] && *folders[i] && (fd = nameless_in(folders[i])) >= 0)
      break;
  if (fd < 0)
    fd = memfd_create("ljprof", MFD_CLOEXEC);
  /* What is written to a standard stream must not land in it. */
  file->fd = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  int error = errno;
  if (fd >= 0)
    close(fd);
  if (file->fd < 0) {
    ljp_command_error(command, "no file for the recording: %s",
                      strerror(error));
    return LJP_EXIT_FAILED;
  }
  snprintf(file->shown, sizeof file->shown, "a file without a name in %.*s",
           LJP_NAMELESS_BYTES - 1, i < FOLDERS ? folders[i] : "memory");
  snprintf(file->path, sizeof file->path, "/proc/self/fd/%d", file->fd);
  return -1;
}
