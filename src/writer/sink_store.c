/*
** See sink_store.h.
*/
#include "src/writer/sink_store.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/clock.h"
#include "src/base/store_lock.h"
#include "src/base/store_room.h"

enum ljp_status ljp_sink_init_store(struct ljp_sink *sink, const char *folder,
                                    const char *service, bool sync)
{
  enum ljp_status status = ljp_sink_init_file(sink, folder, sync);
  if (status)
    return status;
  size_t len = strlen(sink->path), room = len + strlen(service) + 2;
  char *path = realloc(sink->path, room);
  if (!path)
    return LJP_ERR_MEM;
  while (len && path[len - 1] == '/')
    len--;
  snprintf(path + len, room - len, "/%s", service);
  sink->path = path;
  sink->service = path + len + 1;
  return LJP_OK;
}

char *ljp_sink_folder(const struct ljp_sink *sink)
{
  char *folder = strdup(sink->path), *slash = folder;
  if (folder)
    slash = strrchr(folder, '/');
  if (slash)
    slash[slash == folder] = '\0';
  return folder;
}

char *ljp_sink_store_path(struct ljp_sink *sink)
{
  struct ljp_store_room room;
  struct ljp_store_name name = {.time_s = ljp_clock_of(CLOCK_REALTIME) /
                                          UINT64_C(1000000000),
                                .pid = (uint64_t)getpid()};
  size_t folder = (size_t)(sink->service - sink->path);
  char *at = ljp_sink_folder(sink),
       *path = malloc(folder + LJP_STORE_NAME_BYTES);
  int error = at && path ? ljp_store_room_look(&room, at, sink->service,
                                               LJP_STORE_NAMES)
                         : ENOMEM;
  if (!error) {
    if (room.last > sink->sequence)
      sink->sequence = room.last;
    if (sink->sequence < LJP_STORE_MAX_SEQUENCE)
      sink->sequence++;
    name.sequence = sink->sequence;
    ljp_store_service_copy(name.service, sink->service);
    memcpy(path, sink->path, folder);
    ljp_store_name_put(path + folder, &name);
    ljp_store_room_free(&room);
  }
  free(at);
  if (error)
    free(path);
  errno = error;
  return error ? NULL : path;
}

int ljp_sink_store_show(struct ljp_sink *sink)
{
  enum { TRIES = 100 };
  struct ljp_newfile *new = &sink->file.new;
  struct stat st;
  int fd = sink->file.open.fd, error = EEXIST;
  for (int i = 0; i < TRIES && error == EEXIST; i++) {
    char *path = i ? ljp_sink_store_path(sink) : NULL;
    char *name = path ? strdup(strrchr(path, '/') + 1) : NULL;
    free(path);
    if (i && !name)
      return errno ? errno : ENOMEM;
    if (i) {
      free(new->name);
      new->name = name;
    }
    error = ljp_newfile_show(new, fd, false, NULL);
  }
  if (!error)
    error = ljp_store_lock(fd);
  if (!error && fstat(fd, &st))
    error = errno;
  return error ? error : st.st_nlink ? 0 : ESTALE;
}
