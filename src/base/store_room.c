/*
** See store_room.h.
*/
#include "src/base/store_room.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/open_file.h"
#include "src/base/store_lock.h"

static void room_name(const struct ljp_store_room *room,
                      const struct ljp_store_file *file,
                      char out[LJP_STORE_NAME_BYTES])
{
  struct ljp_store_name name = {
      .time_s = file->time_s, .sequence = file->sequence, .pid = file->pid};
  ljp_store_service_copy(name.service, room->service);
  ljp_store_name_put(out, &name);
}

static int room_by_age(const void *a, const void *b)
{
  const struct ljp_store_file *x = a, *y = b;
  if (x->sequence != y->sequence)
    return x->sequence < y->sequence ? -1 : 1;
  if (x->time_s != y->time_s)
    return x->time_s < y->time_s ? -1 : 1;
  return x->pid < y->pid ? -1 : x->pid > y->pid;
}

static int room_by_process(const void *a, const void *b)
{
  const struct ljp_store_file *x = a, *y = b;
  if (x->pid != y->pid)
    return x->pid < y->pid ? -1 : 1;
  return room_by_age(a, b);
}

/* A process writes at most one file at a time, its newest. Processes of several
** containers may have one number. So the newest files of each number are looked
** at, until some in a row are not written. */
static void room_count_writers(struct ljp_store_room *room)
{
  enum { IN_A_ROW = 4 };
  char name[LJP_STORE_NAME_BYTES];
  struct stat st;
  int error, idle = 0;
  if (room->count)
    qsort(room->files, room->count, sizeof *room->files, room_by_process);
  for (size_t i = room->count; i--;) {
    const struct ljp_store_file *f = &room->files[i];
    if (i + 1 == room->count || f[1].pid != f->pid)
      idle = 0;
    if (!f->pid || idle == IN_A_ROW)
      continue;
    room_name(room, f, name);
    bool written = ljp_store_is_written(room->dir, name, &st, &error);
    room->writers += written;
    idle = written ? 0 : idle + 1;
  }
}

/* False: no memory. */
static bool room_add(struct ljp_store_room *room, size_t *space,
                     const struct ljp_store_file *file)
{
  if (room->count == *space) {
    *space = *space ? 2 * *space : 64;
    void *more = realloc(room->files, *space * sizeof *room->files);
    if (!more)
      return false;
    room->files = more;
  }
  room->files[room->count++] = *file;
  room->bytes += file->room;
  return true;
}

static int room_read(struct ljp_store_room *room, DIR *dir,
                     enum ljp_store_look what)
{
  enum { PAGE = 4096 };
  const struct dirent *entry;
  struct ljp_store_name name;
  struct stat st;
  size_t space = 0;
  while (errno = 0, (entry = readdir(dir)) != NULL) {
    if (!ljp_store_name_parse(entry->d_name, &name) ||
        strcmp(name.service, room->service) != 0)
      continue;
    if (name.sequence > room->last)
      room->last = name.sequence;
    if (what == LJP_STORE_NAMES ||
        fstatat(room->dir, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) ||
        !S_ISREG(st.st_mode))
      continue;
    const struct ljp_store_file file = {
        .time_s = name.time_s,
        .sequence = name.sequence,
        .pid = name.pid,
        .room = ((uint64_t)st.st_size + PAGE - 1) / PAGE * PAGE};
    if (!room_add(room, &space, &file))
      return ENOMEM;
  }
  return errno;
}

int ljp_store_room_look(struct ljp_store_room *room, const char *folder,
                        const char *service, enum ljp_store_look what)
{
  *room = (struct ljp_store_room){.dir = -1};
  if (!ljp_store_service_valid(service))
    return EINVAL;
  ljp_store_service_copy(room->service, service);
  room->dir = ljp_fd_not_standard(
      open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NONBLOCK));
  if (room->dir < 0)
    return errno;
  int copy = fcntl(room->dir, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  DIR *dir = copy < 0 ? NULL : fdopendir(copy);
  int error = dir ? room_read(room, dir, what) : errno;
  if (dir)
    closedir(dir);
  else if (copy >= 0)
    close(copy);
  if (error) {
    ljp_store_room_free(room);
    return error;
  }
  room_count_writers(room);
  if (room->count)
    qsort(room->files, room->count, sizeof *room->files, room_by_age);
  return 0;
}

int ljp_store_room_prune(struct ljp_store_room *room, uint64_t limit,
                         ljp_store_removed *told, void *ctx)
{
  char name[LJP_STORE_NAME_BYTES];
  struct stat st;
  int failed = 0, error;
  size_t kept = 0;
  for (size_t i = 0; i < room->count; i++) {
    struct ljp_store_file *f = &room->files[i];
    room_name(room, f, name);
    error = 0;
    if (room->bytes > limit &&
        !ljp_store_is_written(room->dir, name, &st, &error)) {
      error = unlinkat(room->dir, name, 0) ? errno : 0;
      if (told && !error)
        told(ctx, name, f->room, 0);
      if (!error || error == ENOENT) {
        room->bytes -= f->room;
        continue;
      }
    }
    if (told && error)
      told(ctx, name, f->room, error);
    failed = failed ? failed : error;
    room->files[kept++] = *f;
  }
  room->count = kept;
  return failed;
}

void ljp_store_room_free(struct ljp_store_room *room)
{
  if (room->dir >= 0)
    close(room->dir);
  free(room->files);
  *room = (struct ljp_store_room){.dir = -1};
}
