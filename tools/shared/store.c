/*
** See store.h.
*/
#include "tools/shared/store.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "parsers/stream/recording.h"
#include "src/base/store_lock.h"
#include "tools/shared/related.h"

static void store_free_segment(struct ljp_segment *s)
{
  free(s->name);
  free(s->error);
  free(s->executable);
  free(s->script);
}

static void store_free_list(struct ljp_segment *list, size_t count)
{
  for (size_t i = 0; i < count; i++)
    store_free_segment(&list[i]);
  free(list);
}

int ljp_store_open(struct ljp_store *store, const char *path)
{
  *store = (struct ljp_store){.path = path};
  store->dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  return store->dir < 0 ? errno : 0;
}

void ljp_store_close(struct ljp_store *store)
{
  store_free_list(store->segments, store->count);
  if (store->dir >= 0)
    close(store->dir);
  *store = (struct ljp_store){.dir = -1};
}

/* -- One segment ------------------------------------------------------------ */

static int store_open_name(const struct ljp_store *store, const char *name)
{
  return openat(store->dir, name,
                O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY);
}

int ljp_store_open_segment(const struct ljp_store *store,
                           const struct ljp_segment *segment)
{
  struct stat st;
  int fd = store_open_name(store, segment->name);
  if (fd < 0)
    return -1;
  if (!fstat(fd, &st) && st.st_dev == segment->dev && st.st_ino == segment->ino)
    return fd;
  close(fd);
  errno = ENOENT;
  return -1;
}

static ssize_t store_read_bytes(struct ljp_input *input, void *buf, size_t n)
{
  ssize_t got;
  while ((got = read(input->fd, buf, n)) < 0 && errno == EINTR)
    ;
  return got;
}

enum ljp_status ljp_store_read(const struct ljp_store *store,
                               const struct ljp_segment *segment,
                               struct ljp_reader *reader, bool *gone)
{
  struct ljp_input input = {.read = store_read_bytes};
  input.fd = ljp_store_open_segment(store, segment);
  if (gone)
    *gone = input.fd < 0 && errno == ENOENT;
  if (input.fd >= 0)
    return ljp_reader_input(reader, &input);
  memset(reader, 0, sizeof *reader);
  reader->input.fd = -1;
  snprintf(reader->error, sizeof reader->error, "%s", strerror(errno));
  return LJP_ERR_IO;
}

/* Takes over what the record PROCESS says. Strings that there is no memory for
** stay unknown. */
static void store_take_process(struct ljp_segment *s,
                               const struct ljp_rec_process *p)
{
  struct ljp_str script = ljp_related_script_of(p->command_line);
  s->pid = p->pid;
  s->parent_pid = p->parent_pid;
  s->anchor_mono_ns = p->anchor_mono_ns;
  s->start_wall_ns = s->start_mono_ns + p->anchor_wall_ns - p->anchor_mono_ns;
  s->executable = strndup(p->executable.data, p->executable.len);
  if (script.len)
    s->script = strndup(script.data, script.len);
}

static void store_name_service(struct ljp_segment *s)
{
  const char *path = s->executable ? s->executable : "unknown";
  const char *slash = strrchr(path, '/');
  ljp_store_service_make(s->made.service, slash ? slash + 1 : path);
}

/* Reads up to the first PROCESS, which each segment begins with unless it is
** damaged there. */
static void store_identify(const struct ljp_store *store, struct ljp_segment *s)
{
  static struct ljp_reader reader;
  const struct ljp_item *item;
  bool begun = false, found = false;
  enum ljp_status status = ljp_store_read(store, s, &reader, NULL);
  while (!status && !found && !(status = ljp_reader_next(&reader, &item)) &&
         item->what != LJP_ITEM_FINISH) {
    if (item->what == LJP_ITEM_BLOCK && !begun) {
      begun = true;
      s->stream = item->block->head.stream;
      s->first_seq = item->block->head.seq;
      s->start_mono_ns = item->block->head.time_ns;
    } else if (item->what == LJP_REC_EPOCH && !s->number) {
      s->number = (uint32_t)item->u.epoch.segment;
    } else if (item->what == LJP_REC_PROCESS) {
      found = true;
      store_take_process(s, &item->u.process);
    }
  }
  if (!status && !begun)
    s->error = strdup("it holds no whole block");
  else if (status && !begun)
    s->error = strdup(*reader.error ? reader.error : ljp_status_text(status));
  ljp_reader_fini(&reader);
}

/* What an earlier look has found out about the file. */
static void store_take_known(struct ljp_segment *s, struct ljp_segment *old)
{
  struct ljp_segment now = *s;
  *s = *old;
  old->error = old->executable = old->script = NULL;
  s->name = now.name;
  s->bytes = now.bytes;
}

/* A file of another name: its writer has no lock, so /proc is asked. */
static bool store_is_open(const struct ljp_segment *s, int fd)
{
  const struct ljp_rec_process process = {.pid = s->pid,
                                          .anchor_mono_ns = s->anchor_mono_ns};
  return s->pid && ljp_recording(&process, fd, s->bytes);
}

/* A regular file that cannot be opened is in the list, too. False: it is
** none. */
static bool store_note_closed(const struct ljp_store *store,
                              struct ljp_segment *s, int error)
{
  struct stat st;
  if (fstatat(store->dir, s->name, &st, AT_SYMLINK_NOFOLLOW) ||
      !S_ISREG(st.st_mode))
    return false;
  s->dev = st.st_dev;
  s->ino = st.st_ino;
  s->bytes = (uint64_t)st.st_size;
  s->open = s->denied = true; /* It may be open, for all that is known. */
  s->error = strdup(strerror(error));
  return true;
}

/* False: it is gone, or nothing for the list. s->name is set; old: of the last
** look, NULL: none. */
static bool store_examine(const struct ljp_store *store, struct ljp_segment *s,
                          struct ljp_segment *old)
{
  enum { PAGE = 4096 };
  struct stat st;
  bool is_made = ljp_store_name_parse(s->name, &s->made);
  int fd = store_open_name(store, s->name);
  if (!is_made)
    s->made = (struct ljp_store_name){0};
  s->merged = is_made && !s->made.pid;
  if (fd < 0)
    return store_note_closed(store, s, errno);
  /* First whether it is open, then its size: the bytes of a segment that is not
  ** open are all there. */
  s->open = is_made && ljp_store_is_locked(fd);
  if (fstat(fd, &st) || !S_ISREG(st.st_mode)) {
    close(fd);
    return false;
  }
  s->dev = st.st_dev;
  s->ino = st.st_ino;
  s->bytes = (uint64_t)st.st_size;
  bool same = old && old->ino == s->ino && old->dev == s->dev;
  bool open = s->open;
  if (same && (!old->error || (old->bytes == s->bytes && !old->open))) {
    store_take_known(s, old);
  } else {
    store_identify(store, s);
    if (!is_made)
      store_name_service(s);
  }
  s->open = is_made ? open : store_is_open(s, fd);
  s->room = (s->bytes + PAGE - 1) / PAGE * PAGE;
  close(fd);
  return true;
}

/* -- The list --------------------------------------------------------------- */

static int store_by_name(const void *a, const void *b)
{
  const struct ljp_segment *x = a, *y = b;
  return strcmp(x->name, y->name);
}

static int store_by_stream(const void *a, const void *b)
{
  const struct ljp_segment *x = a, *y = b;
  if (x->stream != y->stream)
    return x->stream < y->stream ? -1 : 1;
  return x->first_seq < y->first_seq ? -1 : x->first_seq > y->first_seq;
}

static int store_compare(uint64_t x, uint64_t y)
{
  return x < y ? -1 : x > y;
}

/* made.time_s of other names: the start of their session. */
static int store_by_age(const void *a, const void *b)
{
  const struct ljp_segment *x = a, *y = b;
  int order = strcmp(x->made.service, y->made.service);
  if (!order)
    order = ljp_store_name_compare(&x->made, &y->made);
  if (!order)
    order = store_compare(x->stream, y->stream);
  if (!order)
    order = store_compare(x->first_seq, y->first_seq);
  return order ? order : strcmp(x->name, y->name);
}

/* Says of all segments of a session whether it is alive, and orders them by its
** start, if their names do not. */
static void store_join_sessions(struct ljp_segment *list, size_t count)
{
  if (count)
    qsort(list, count, sizeof *list, store_by_stream);
  for (size_t i = 0, end; i < count; i = end) {
    bool alive = false;
    for (end = i; end < count && list[end].stream == list[i].stream; end++)
      alive |= list[end].open;
    for (size_t k = i; k < end; k++) {
      list[k].alive = list[k].stream ? alive : list[k].open;
      if (!list[k].made.sequence)
        list[k].made.time_s = list[i].start_wall_ns / 1000000000;
    }
  }
  if (count)
    qsort(list, count, sizeof *list, store_by_age);
}

/* As newfile.h calls files that are not yet to be seen: NAME.ljp-PID-n. */
static bool store_is_temporary(const char *name)
{
  static const char digits[] = "0123456789", mark[] = ".ljp-";
  for (const char *at = name; (at = strstr(at, mark)) != NULL; at++) {
    const char *pid = at + sizeof mark - 1;
    size_t n = strspn(pid, digits);
    if (n && pid[n] == '-' && pid[n + 1] &&
        !pid[n + 1 + strspn(pid + n + 1, digits)])
      return true;
  }
  return false;
}

static bool store_passes_over(const char *name)
{
  return name[0] == '.' || store_is_temporary(name);
}

/* All names in the folder. Returns an errno. */
static int store_list(const struct ljp_store *store, struct ljp_segment **list,
                      size_t *count)
{
  int fd = openat(store->dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR *dir = fd < 0 ? NULL : fdopendir(fd);
  const struct dirent *entry;
  size_t room = 0;
  int error = dir ? 0 : errno;
  if (!dir && fd >= 0)
    close(fd);
  *list = NULL;
  *count = 0;
  while (dir && !error && (errno = 0, entry = readdir(dir)) != NULL) {
    if (store_passes_over(entry->d_name))
      continue;
    if (*count == room) {
      room = room ? 2 * room : 64;
      struct ljp_segment *more = realloc(*list, room * sizeof *more);
      if (!more) {
        error = ENOMEM;
        break;
      }
      *list = more;
    }
    struct ljp_segment *s = &(*list)[*count];
    *s = (struct ljp_segment){.name = strdup(entry->d_name)};
    error = s->name ? 0 : ENOMEM;
    *count += !error;
  }
  if (dir && !error)
    error = errno;
  if (dir)
    closedir(dir);
  return error;
}

static struct ljp_segment *store_find(const struct ljp_segment *list,
                                      size_t count,
                                      const struct ljp_segment *named)
{
  return count ? bsearch(named, list, count, sizeof *list, store_by_name)
               : NULL;
}

/* What is in the folder and not yet in the list, which is sorted by name, and
** sorted again. Sets *fresh to the number. Returns an errno. */
static int store_add_fresh(const struct ljp_store *store,
                           struct ljp_segment **list, size_t *count,
                           size_t *fresh)
{
  struct ljp_segment *names;
  size_t found, known = *count;
  int error = store_list(store, &names, &found);
  struct ljp_segment *all =
      error ? NULL : realloc(*list, (known + found + 1) * sizeof *all);
  if (!error && !all)
    error = ENOMEM;
  if (error) {
    store_free_list(names, found);
    *fresh = 0;
    return error;
  }
  *list = all;
  for (size_t i = 0; i < found; i++) {
    struct ljp_segment *s = &names[i];
    if (!store_find(all, known, s) &&
        store_examine(store, s, store_find(store->segments, store->count, s))) {
      all[(*count)++] = *s;
      *s = (struct ljp_segment){0};
    }
  }
  store_free_list(names, found);
  *fresh = *count - known;
  if (*fresh)
    qsort(all, *count, sizeof *all, store_by_name);
  return 0;
}

/* A process that begins a new segment shows it before it ends the one before. So
** if nothing is new after the last segment was looked at, one that is not open is
** the last of a process that has ended. */
int ljp_store_look(struct ljp_store *store)
{
  enum { PASSES = 16 };
  struct ljp_segment *list = NULL;
  size_t count = 0, fresh = 1;
  int error = 0;
  if (store->count)
    qsort(store->segments, store->count, sizeof *store->segments,
          store_by_name);
  for (int i = 0; i < PASSES && fresh && !error; i++)
    error = store_add_fresh(store, &list, &count, &fresh);
  if (error && !count) {
    free(list);
    store_join_sessions(store->segments, store->count);
    return error;
  }
  store_free_list(store->segments, store->count);
  store->segments = list;
  store->count = count;
  store_join_sessions(list, count);
  return error;
}
