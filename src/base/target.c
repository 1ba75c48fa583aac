/*
** See target.h. The path is walked name by name, as the kernel does it.
*/
#include "src/base/target.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "src/base/open_file.h"

enum { MAX_LINKS = 40, FOLDER = O_PATH | O_DIRECTORY | O_CLOEXEC };

struct walk {
  int dir;
  unsigned links;
  char at[PATH_MAX]; /* The path of dir; "" is the root. */
  char name[NAME_MAX + 1];
  char rest[2 * PATH_MAX]; /* What comes after name. */
  char target[PATH_MAX];
};

bool ljp_target_trusts(int dir, const struct stat *entry)
{
  struct stat folder;
  if (fstat(dir, &folder))
    return false;
  if (!(folder.st_mode & S_ISVTX) || !(folder.st_mode & S_IWOTH))
    return true;
  return entry->st_uid == geteuid() || entry->st_uid == folder.st_uid;
}

/* Moves the next name from rest to name. */
static int target_next(struct walk *w)
{
  const char *from = w->rest + strspn(w->rest, "/");
  size_t len = strcspn(from, "/");
  if (!len)
    return EISDIR; /* "folder/" */
  if (len > NAME_MAX)
    return ENAMETOOLONG;
  memcpy(w->name, from, len);
  w->name[len] = '\0';
  memmove(w->rest, from + len, strlen(from + len) + 1);
  return 0;
}

static int target_enter(struct walk *w, int base, const char *name, int flags)
{
  int next = ljp_fd_not_standard(openat(base, name, FOLDER | flags));
  if (next < 0)
    return errno;
  if (w->dir >= 0)
    close(w->dir);
  w->dir = next;
  return 0;
}

static int target_append(char *path, const char *name)
{
  size_t len = strlen(path), more = strlen(name);
  if (len + more + 2 > PATH_MAX)
    return ENAMETOOLONG;
  path[len] = '/';
  memcpy(path + len + 1, name, more + 1);
  return 0;
}

static int target_descend(struct walk *w)
{
  int error = target_enter(w, w->dir, w->name, O_NOFOLLOW);
  char *slash = strrchr(w->at, '/');
  if (error || strcmp(w->name, ".") == 0)
    return error;
  if (strcmp(w->name, "..") != 0)
    return target_append(w->at, w->name);
  if (slash)
    *slash = '\0';
  return 0;
}

/* Puts the target of the link `name` before rest. *ends: only the kernel can
** follow it. */
static int target_follow(struct walk *w, const struct stat *link, bool *ends)
{
  struct statfs fs;
  if (++w->links > MAX_LINKS)
    return ELOOP;
  if (!ljp_target_trusts(w->dir, link))
    return EACCES;
  ssize_t n = readlinkat(w->dir, w->name, w->target, sizeof w->target - 1);
  if (n <= 0)
    return n ? errno : ENOENT;
  w->target[n] = '\0';
  if (strchr(w->target, ':') && fstatfs(w->dir, &fs) == 0 &&
      fs.f_type == PROC_SUPER_MAGIC) {
    *ends = true; /* "pipe:[1234]" */
    return w->rest[0] ? ENOTDIR : 0;
  }
  size_t rest = strlen(w->rest);
  if ((size_t)n + rest + 1 > sizeof w->rest)
    return ENAMETOOLONG;
  memmove(w->rest + n, w->rest, rest + 1);
  memcpy(w->rest, w->target, (size_t)n);
  if (w->target[0] != '/')
    return 0;
  w->at[0] = '\0';
  return target_enter(w, AT_FDCWD, "/", 0);
}

static int target_walk(struct walk *w, struct ljp_target *found)
{
  for (;;) {
    int error = target_next(w);
    if (error)
      return error;
    bool last = !w->rest[0];
    found->there =
        fstatat(w->dir, w->name, &found->st, AT_SYMLINK_NOFOLLOW) == 0;
    if (!found->there && (errno != ENOENT || !last))
      return errno;
    if (found->there && S_ISLNK(found->st.st_mode)) {
      error = target_follow(w, &found->st, &found->kernel_link);
      if (error || found->kernel_link)
        return error;
    } else if (last) {
      return found->there && S_ISDIR(found->st.st_mode) ? EISDIR : 0;
    } else if ((error = target_descend(w)) != 0) {
      return error;
    }
  }
}

int ljp_target_find(struct ljp_target *found, const char *path)
{
  *found = (struct ljp_target){.dir = -1};
  const size_t bytes = strlen(path) + 1;
  if (bytes > PATH_MAX)
    return ENAMETOOLONG;
  struct walk *w = malloc(sizeof *w);
  if (!w)
    return ENOMEM;
  w->dir = -1;
  w->links = 0;
  w->at[0] = '\0';
  memcpy(w->rest, path, bytes);
  int error = 0;
  if (path[0] != '/' && !getcwd(w->at, sizeof w->at))
    error = errno;
  if (strcmp(w->at, "/") == 0)
    w->at[0] = '\0';
  if (!error)
    error = target_enter(w, AT_FDCWD, path[0] == '/' ? "/" : ".", 0);
  if (!error)
    error = target_walk(w, found);
  if (!error)
    error = target_append(w->at, w->name);
  if (!error && !(found->path = strdup(w->at)))
    error = ENOMEM;
  if (!error) {
    found->dir = w->dir;
    found->name = strrchr(found->path, '/') + 1;
  } else if (w->dir >= 0) {
    close(w->dir);
  }
  free(w);
  return error;
}
