/*
** Makes one file of the segments that dead processes of a service have left.
**
** Nothing is lost or twice there, whenever this process ends: first a list of
** the parts (.NAME.parts) is written, then the merged file gets its name, then the
** parts go, then the list. If the list of a merged file is found later, its parts
** are removed; if there is a list without its merged file, only the list is.
**
** A second list, .NAME.made-of (tools/shared/identity.h), stays beside the merged
** file for `ljprof push`. When that file has gone, the next call removes the list.
*/
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/base/store_lock.h"
#include "tools/gather/gather.h"
#include "tools/shared/identity.h"

/* `ljprof merge` has all files open at once. */
enum { MERGE_BYTES = 64 << 20, MERGE_FILES = 500, LIST_BYTES = 1 << 20 };
static const char merge_list_end[] = ".parts";

/* -- Lists of parts --------------------------------------------------------- */

static void merge_list_name(char out[LJP_STORE_NAME_BYTES + 16],
                            const char *merged)
{
  snprintf(out, LJP_STORE_NAME_BYTES + 16, ".%s%s", merged, merge_list_end);
}

/* Writes the list, on the disk. Returns an errno. */
static int merge_put_list(const struct ljp_gather *g, const char *merged,
                          struct ljp_segment *const *parts, size_t count)
{
  char name[LJP_STORE_NAME_BYTES + 16];
  merge_list_name(name, merged);
  unlinkat(g->store.dir, name, 0);
  int fd =
      openat(g->store.dir, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  FILE *f = fd < 0 ? NULL : fdopen(fd, "w");
  if (!f) {
    int error = errno;
    if (fd >= 0)
      close(fd);
    return error;
  }
  for (size_t i = 0; i < count; i++)
    fprintf(f, "%s\n", parts[i]->name);
  bool failed = fflush(f) || fsync(fd);
  int error = failed ? errno : 0;
  fclose(f);
  if (failed)
    unlinkat(g->store.dir, name, 0);
  return error;
}

static void merge_drop_list(const struct ljp_gather *g, const char *merged)
{
  char name[LJP_STORE_NAME_BYTES + 16];
  merge_list_name(name, merged);
  unlinkat(g->store.dir, name, 0);
}

/* What is not the name of a finished file of the same service stays. */
static void merge_remove_part(struct ljp_gather *g, const char *name,
                              const char *merged)
{
  struct ljp_store_name part, whole;
  struct stat st;
  int error;
  if (!ljp_store_name_parse(name, &part) || !part.pid ||
      !ljp_store_name_parse(merged, &whole) ||
      strcmp(part.service, whole.service) != 0 ||
      ljp_store_is_written(g->store.dir, name, &st, &error))
    return;
  if (!unlinkat(g->store.dir, name, 0) || errno == ENOENT)
    return;
  ljp_command_error("gather",
                    "%s, which is in %s now, could not be removed: %s", name,
                    merged, strerror(errno));
  g->failed = true;
}

/* The list's text; the caller frees it. NULL: it cannot be read. */
static char *merge_read_list(const struct ljp_gather *g, const char *name)
{
  int fd = openat(g->store.dir, name,
                  O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
  char *text = fd < 0 ? NULL : malloc(LIST_BYTES + 1);
  size_t len = 0;
  ssize_t n = 1;
  while (text && n > 0 && len < LIST_BYTES) {
    n = read(fd, text + len, LIST_BYTES - len);
    len += n > 0 ? (size_t)n : 0;
  }
  if (text)
    text[n < 0 ? 0 : len] = '\0';
  if (fd >= 0)
    close(fd);
  return text;
}

/* merged: the name in the list's own. */
static void merge_finish(struct ljp_gather *g, const char *list,
                         const char *merged)
{
  struct stat st;
  char *save = NULL;
  if (!fstatat(g->store.dir, merged, &st, AT_SYMLINK_NOFOLLOW) &&
      S_ISREG(st.st_mode)) {
    char *text = merge_read_list(g, list);
    for (char *name = text ? strtok_r(text, "\n", &save) : NULL; name;
         name = strtok_r(NULL, "\n", &save))
      merge_remove_part(g, name, merged);
    free(text);
  }
  unlinkat(g->store.dir, list, 0);
}

void ljp_gather_recover(struct ljp_gather *g)
{
  enum { END = sizeof merge_list_end - 1 };
  int fd = openat(g->store.dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR *dir = fd < 0 ? NULL : fdopendir(fd);
  struct ljp_store_name name;
  const struct dirent *entry;
  char merged[256];
  if (!dir && fd >= 0)
    close(fd);
  while (dir && (entry = readdir(dir)) != NULL) {
    size_t len = strlen(entry->d_name);
    if (ljp_made_of_parse(entry->d_name, merged, sizeof merged) &&
        faccessat(g->store.dir, merged, F_OK, AT_SYMLINK_NOFOLLOW) &&
        errno == ENOENT)
      ljp_made_of_drop(g->store.dir, merged);
    if (entry->d_name[0] != '.' || len <= END + 1 ||
        strcmp(entry->d_name + len - END, merge_list_end) != 0)
      continue;
    snprintf(merged, sizeof merged, "%.*s", (int)(len - END - 1),
             entry->d_name + 1);
    if (ljp_store_name_parse(merged, &name) && !name.pid)
      merge_finish(g, entry->d_name, merged);
  }
  if (dir)
    closedir(dir);
}

/* Notes which files the merged one is made of, as `ljprof push` knows them. */
static int merge_note_parts(const struct ljp_gather *g, const char *merged,
                            struct ljp_segment *const *parts, size_t count)
{
  uint8_t(*ids)[LJP_IDENTITY_BYTES] = calloc(count + 1, sizeof *ids);
  int error = ids ? 0 : ENOMEM;
  for (size_t i = 0; i < count && !error; i++) {
    char *path = NULL;
    if (asprintf(&path, "%s/%s", g->store.path, parts[i]->name) < 0)
      path = NULL;
    error = path ? ljp_identify(path, ids[i]) : ENOMEM;
    free(path);
  }
  if (!error)
    error = ljp_made_of_put(g->store.dir, merged,
                            (const uint8_t(*)[LJP_IDENTITY_BYTES])ids, count);
  free(ids);
  return error;
}

/* -- What can be merged ----------------------------------------------------- */

/* Reads the file to its end. An end without an END is that of a process that was
** killed, and nothing is wrong with it. */
static bool merge_is_whole(struct ljp_gather *g, const struct ljp_segment *s)
{
  static struct ljp_reader reader;
  const struct ljp_item *item;
  bool gone;
  uint64_t damaged = 0;
  enum ljp_status status = ljp_store_read(&g->store, s, &reader, &gone);
  while (!status && !(status = ljp_reader_next(&reader, &item)) &&
         item->what != LJP_ITEM_FINISH)
    damaged +=
        item->what == LJP_ITEM_BAD ||
        (item->what == LJP_ITEM_GAP && item->u.gap.reason != LJP_GAP_CUT);
  if (gone) {
    ljp_reader_fini(&reader);
    return false;
  }
  if (status)
    ljp_command_error("gather", "%s: %s: it stays as it is", s->name,
                      *reader.error ? reader.error : ljp_status_text(status));
  else if (damaged)
    ljp_command_error("gather",
                      "%s is damaged in %llu place%s ('ljprof check' tells "
                      "more): it stays as it is",
                      s->name, (unsigned long long)damaged,
                      damaged == 1 ? "" : "s");
  g->failed |= status || damaged;
  ljp_reader_fini(&reader);
  return !status && !damaged;
}

static bool merge_wants(struct ljp_gather *g, const struct ljp_segment *s)
{
  if (!s->made.sequence || s->merged || s->open || s->alive ||
      !ljp_gather_takes(g, s))
    return false;
  if (!s->error)
    return merge_is_whole(g, s);
  ljp_command_error("gather", "%s: %s: it stays as it is", s->name, s->error);
  g->failed = true;
  return false;
}

/* -- One merged file -------------------------------------------------------- */

/* Runs `ljprof merge`. */
static bool merge_run(const struct ljp_gather *g, const char *to,
                      struct ljp_segment *const *parts, size_t count)
{
  enum { FIXED = 4 };
  char **argv = calloc(count + FIXED + 1, sizeof *argv);
  char unrelated[] = "--unrelated", merge[] = "merge", o[] = "-o";
  size_t n = 0;
  bool ready = argv != NULL;
  if (ready) {
    argv[n++] = merge;
    argv[n++] = unrelated;
    argv[n++] = o;
  }
  ready = ready && asprintf(&argv[n], "%s/%s", g->store.path, to) >= 0;
  n += ready;
  for (size_t i = 0; ready && i < count; i++) {
    ready = asprintf(&argv[n], "%s/%s", g->store.path, parts[i]->name) >= 0;
    n += ready;
  }
  if (!ready)
    ljp_command_error("gather", "%s", ljp_status_text(LJP_ERR_MEM));
  bool done = ready && ljp_command_merge((int)n, argv) == LJP_EXIT_OK;
  for (size_t i = FIXED - 1; argv && i < n; i++)
    free(argv[i]);
  free(argv);
  return done;
}

static void merge_parts(struct ljp_gather *g, struct ljp_segment **parts,
                        size_t count)
{
  struct ljp_store_name name = parts[0]->made;
  char merged[LJP_STORE_NAME_BYTES];
  for (size_t i = 0; i < count; i++) {
    if (parts[i]->made.sequence > name.sequence)
      name.sequence = parts[i]->made.sequence;
    if (parts[i]->made.time_s < name.time_s)
      name.time_s = parts[i]->made.time_s;
  }
  name.pid = 0;
  ljp_store_name_put(merged, &name);
  int error = merge_note_parts(g, merged, parts, count);
  if (!error)
    error = merge_put_list(g, merged, parts, count);
  if (error)
    ljp_command_error("gather", "%s: cannot write: %s", g->store.path,
                      strerror(error));
  if (error || !merge_run(g, merged, parts, count)) {
    if (!error)
      merge_drop_list(g, merged);
    ljp_made_of_drop(g->store.dir, merged);
    g->failed = true;
    return;
  }
  fsync(g->store.dir);
  for (size_t i = 0; i < count; i++)
    merge_remove_part(g, parts[i]->name, merged);
  merge_drop_list(g, merged);
  ljp_command_note("gather", "%zu files are in %s now", count, merged);
}

static int merge_by_session(const void *a, const void *b)
{
  const struct ljp_segment *x = *(struct ljp_segment *const *)a;
  const struct ljp_segment *y = *(struct ljp_segment *const *)b;
  int order = strcmp(x->made.service, y->made.service);
  if (order)
    return order;
  if (x->stream != y->stream)
    return x->stream < y->stream ? -1 : 1;
  return x->first_seq < y->first_seq ? -1 : x->first_seq > y->first_seq;
}

void ljp_gather_merge(struct ljp_gather *g)
{
  struct ljp_segment **parts = calloc(g->store.count + 1, sizeof *parts);
  size_t count = 0, end;
  for (size_t i = 0; parts && i < g->store.count; i++)
    if (merge_wants(g, &g->store.segments[i]))
      parts[count++] = &g->store.segments[i];
  if (count)
    qsort(parts, count, sizeof *parts, merge_by_session);
  for (size_t i = 0; i < count; i = end) {
    uint64_t bytes = 0;
    for (end = i; end < count && end - i < MERGE_FILES && bytes < MERGE_BYTES &&
                  strcmp(parts[end]->made.service, parts[i]->made.service) == 0;
         end++)
      bytes += parts[end]->bytes;
    if (end - i > 1)
      merge_parts(g, parts + i, end - i);
  }
  if (!parts)
    ljp_command_error("gather", "%s", ljp_status_text(LJP_ERR_MEM));
  g->failed |= !parts;
  free(parts);
}
