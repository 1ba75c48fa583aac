/*
** See own_path.h.
*/
#include "src/base/own_path.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { MAX_IMAGES = 1000000 };

/* The name is BASE.s and digits. */
static bool path_is_segment(const char *name, const char *base, size_t len)
{
  return strncmp(name, base, len) == 0 && name[len] == '.' &&
         name[len + 1] == 's' && name[len + 2] &&
         !name[len + 2 + strspn(name + len + 2, "0123456789")];
}

bool ljp_path_has_segments(const char *path, uint64_t since_ns)
{
  const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
  /* On the heap: a child of fork() may have little stack. */
  char *folder = slash ? strndup(path, (size_t)(base - path)) : NULL;
  const struct dirent *entry;
  struct stat st;
  bool found = false;
  DIR *dir = slash && !folder ? NULL : opendir(slash ? folder : ".");
  free(folder);
  while (dir && !found && (entry = readdir(dir)))
    found = path_is_segment(entry->d_name, base, strlen(base)) &&
            fstatat(dirfd(dir), entry->d_name, &st, 0) == 0 &&
            (uint64_t)st.st_mtim.tv_sec * 1000000000u +
                    (uint64_t)st.st_mtim.tv_nsec >=
                since_ns;
  if (dir)
    closedir(dir);
  return found;
}

bool ljp_path_numbered(char *out, size_t room, const char *path, long pid,
                       bool executed, bool segments)
{
  struct stat st;
  for (int image = executed ? 2 : 1; image < MAX_IMAGES; image++) {
    int n = image == 1 ? snprintf(out, room, "%s.%ld", path, pid)
                       : snprintf(out, room, "%s.%ld-%d", path, pid, image);
    if (n < 0 || (size_t)n >= room)
      return false;
    if (lstat(out, &st) != 0 && !(segments && ljp_path_has_segments(out, 0)))
      return true;
  }
  return false;
}
