/*
** See door_socket.h. Programs that make a socket at the same path at the same
** time hold a lock on its folder meanwhile: a socket that is bound but does not
** listen yet looks like one that is left over. Others may hold such a lock for
** as long as they like, so it is not waited for for long.
*/
#include "profilers/join/door_socket.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "profilers/join/table.h"

_Static_assert(sizeof((struct sockaddr_un *)0)->sun_path == LJP_DOOR_PATH_BYTES,
               "the room for a socket's path");

static enum ljp_status socket_refuse(struct ljp_failure *why, const char *path,
                                     int error)
{
  return ljp_fail(why, LJP_ERR_IO, error, "%s: %s", path, strerror(error));
}

static int socket_make(bool own)
{
  int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  int moved = fd < 0 ? -1 : ljp_table_move(fd, own);
  if (fd >= 0 && (!own || moved < 0))
    close(fd);
  return moved;
}

/* -- What is at the path --------------------------------------------------- */
static const char *socket_kind(mode_t mode)
{
  return S_ISLNK(mode)    ? "a symbolic link"
         : S_ISREG(mode)  ? "a regular file"
         : S_ISDIR(mode)  ? "a folder"
         : S_ISFIFO(mode) ? "a pipe"
                          : "a device";
}

/* Who listens there; 0: it is not known. */
static pid_t socket_owner(int fd)
{
  struct ucred peer;
  socklen_t bytes = sizeof peer;
  return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) ? 0 : peer.pid;
}

static enum ljp_status socket_refuse_living(struct ljp_failure *why,
                                            const char *path, pid_t pid)
{
  static const char advice[] =
      "name another path, or write %p in it for the process's number";
  if (!pid)
    return ljp_fail(why, LJP_ERR_IO, EADDRINUSE,
                    "%s: another program listens there already: %s", path,
                    advice);
  return ljp_fail(why, LJP_ERR_IO, EADDRINUSE,
                  "%s: process %ld listens there already: %s", path, (long)pid,
                  advice);
}

/* Removes what is at the path if it is a socket of a program that has ended. */
static enum ljp_status socket_make_way(const struct sockaddr_un *at, bool own,
                                       struct ljp_failure *why)
{
  const char *path = at->sun_path;
  struct stat st;
  if (lstat(path, &st))
    return errno == ENOENT ? LJP_OK : socket_refuse(why, path, errno);
  if (!S_ISSOCK(st.st_mode))
    return ljp_fail(why, LJP_ERR_IO, EEXIST,
                    "%s is %s, which is not replaced: name another path", path,
                    socket_kind(st.st_mode));
  int fd = socket_make(own);
  if (fd < 0)
    return socket_refuse(why, path, errno);
  int error = connect(fd, (const struct sockaddr *)at, sizeof *at) ? errno : 0;
  pid_t owner = error ? 0 : socket_owner(fd);
  close(fd);
  /* EPROTOTYPE: a socket of another type. */
  if (!error || error == EAGAIN || error == EPROTOTYPE)
    return socket_refuse_living(why, path, owner);
  if (error != ECONNREFUSED)
    return socket_refuse(why, path, error);
  if (unlink(path) && errno != ENOENT)
    return ljp_fail(why, LJP_ERR_IO, errno,
                    "%s: nobody listens there any more, but it cannot be "
                    "removed: %s",
                    path, strerror(errno));
  return LJP_OK;
}

/* -- The socket ------------------------------------------------------------ */
static enum ljp_status socket_set_address(struct ljp_door_socket *s,
                                          struct sockaddr_un *at,
                                          const char *path,
                                          struct ljp_failure *why)
{
  size_t len = strlen(path), folder = 0;
  const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
  if (len >= sizeof at->sun_path)
    return ljp_fail(why, LJP_ERR_USE, ENAMETOOLONG,
                    "%s: the path has %zu bytes, but that of a socket can have "
                    "no more than %zu",
                    path, len, sizeof at->sun_path - 1);
  if (!*name || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
    return ljp_fail(why, LJP_ERR_USE, EISDIR,
                    "%s is the path of a folder, not of a socket", path);
  *at = (struct sockaddr_un){.sun_family = AF_UNIX};
  memcpy(at->sun_path, path, len);
  if (*path != '/' && getcwd(s->path, sizeof s->path - len - 1)) {
    folder = strlen(s->path);
    s->path[folder++] = '/';
  }
  memcpy(s->path + folder, path, len + 1);
  return LJP_OK;
}

/* The folder, locked if possible: closing it ends the lock. */
static enum ljp_status socket_lock_folder(int *folder, const char *path,
                                          struct ljp_failure *why)
{
  enum { TRIES = 100, PAUSE_US = 10000 };
  char name[LJP_DOOR_PATH_BYTES] = ".";
  const char *slash = strrchr(path, '/');
  if (slash)
    snprintf(name, sizeof name, "%.*s", slash > path ? (int)(slash - path) : 1,
             path);
  *folder = ljp_fd_not_standard(open(name, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (*folder < 0 && (errno == ENOENT || errno == ENOTDIR))
    return ljp_fail(why, LJP_ERR_IO, errno, "%s: there is no folder %s", path,
                    name);
  for (int i = 0; *folder >= 0 && flock(*folder, LOCK_EX | LOCK_NB) &&
                  errno == EWOULDBLOCK && i < TRIES;
       i++)
    usleep(PAUSE_US);
  return LJP_OK;
}

static enum ljp_status socket_bind(const struct ljp_door_socket *s,
                                   const struct sockaddr_un *at, bool own,
                                   struct ljp_failure *why)
{
  enum { TRIES = 3 };
  int error = EADDRINUSE;
  /* The file gets the mode that the socket has when it is bound: at no time can
  ** others connect. */
  if (fchmod(s->open.fd, S_IRUSR | S_IWUSR))
    return socket_refuse(why, at->sun_path, errno);
  for (int i = 0; i < TRIES && error == EADDRINUSE; i++) {
    if (!bind(s->open.fd, (const struct sockaddr *)at, sizeof *at))
      return LJP_OK;
    error = errno;
    enum ljp_status status =
        error == EADDRINUSE ? socket_make_way(at, own, why) : LJP_OK;
    if (status)
      return status;
  }
  return ljp_fail(why, LJP_ERR_IO, error, "%s: no socket can be made there: %s",
                  at->sun_path, strerror(error));
}

enum ljp_status ljp_door_socket_open(struct ljp_door_socket *s,
                                     const char *path, bool own,
                                     struct ljp_failure *why)
{
  enum { BACKLOG = 64 };
  struct sockaddr_un at;
  struct stat st = {0};
  int folder = -1;
  s->open.fd = -1;
  enum ljp_status status = socket_set_address(s, &at, path, why);
  if (!status)
    status = socket_lock_folder(&folder, path, why);
  if (status)
    return status;
  s->open.fd = socket_make(own);
  status = s->open.fd < 0 ? socket_refuse(why, path, errno)
                          : socket_bind(s, &at, own, why);
  if (!status && (listen(s->open.fd, BACKLOG) ||
                  !ljp_open_file_note(&s->open, false) || lstat(path, &st)))
    status = socket_refuse(why, path, errno);
  if (folder >= 0)
    close(folder);
  if (!status) {
    s->dev = st.st_dev;
    s->ino = st.st_ino;
  } else if (s->open.fd >= 0) {
    close(s->open.fd);
    s->open.fd = -1;
  }
  return status;
}

bool ljp_door_socket_stands(const struct ljp_door_socket *s)
{
  struct stat st;
  return !lstat(s->path, &st) && S_ISSOCK(st.st_mode) && st.st_dev == s->dev &&
         st.st_ino == s->ino;
}

void ljp_door_socket_remove(const struct ljp_door_socket *s)
{
  if (ljp_door_socket_stands(s))
    unlink(s->path);
}
