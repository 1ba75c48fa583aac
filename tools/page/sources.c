/*
** Reads the text of the measured source lines. File names come from the profile
** and are not trusted: only regular files below the folder that the user named
** are read.
*/
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/page/sources.h"

#define LJP_SOURCE_LINE_BYTES 240u /* Longer lines are cut. */

static int sources_by_place(const void *a, const void *b)
{
  const struct ljp_page_source *x = a, *y = b;
  uint32_t n = x->file.len < y->file.len ? x->file.len : y->file.len;
  int order = n ? memcmp(x->file.data, y->file.data, n) : 0;
  if (!order && x->file.len != y->file.len)
    order = x->file.len < y->file.len ? -1 : 1;
  return order ? order : (x->line > y->line) - (x->line < y->line);
}

static bool sources_same_file(const struct ljp_page_source *a,
                              const struct ljp_page_source *b)
{
  return a->file.len == b->file.len &&
         (!a->file.len || !memcmp(a->file.data, b->file.data, a->file.len));
}

/* Collects the measured places in Lua code, sorted, each once. */
static bool sources_collect(struct ljp_page *page)
{
  size_t kept = 0;
  page->sources = calloc(page->node_count + 1, sizeof *page->sources);
  if (!page->sources)
    return false;
  for (size_t i = 1; i < page->node_count; i++) {
    const struct ljp_page_frame *f = &page->frames[page->nodes[i].frame];
    if (f->kind >= LJP_PAGE_LUA && f->kind <= LJP_PAGE_INLINED && f->file.len &&
        page->nodes[i].line)
      page->sources[page->source_count++] = (struct ljp_page_source){
          .file = f->file, .line = page->nodes[i].line};
  }
  if (page->source_count)
    qsort(page->sources, page->source_count, sizeof *page->sources,
          sources_by_place);
  for (size_t i = 0; i < page->source_count; i++)
    if (!kept ||
        sources_by_place(&page->sources[kept - 1], &page->sources[i]) != 0)
      page->sources[kept++] = page->sources[i];
  page->source_count = kept;
  return true;
}

/* NULL: there is no such file below dir. */
static FILE *sources_open(const char *dir, struct ljp_str name, time_t since,
                          bool *newer)
{
  char path[PATH_MAX], real[PATH_MAX];
  struct stat st;
  size_t len = strlen(dir), at = 0;
  if (name.len >= sizeof path - len - 2 || memchr(name.data, 0, name.len))
    return NULL;
  if (name.data[0] != '/') {
    memcpy(path, dir, len);
    path[len] = '/';
    at = len + 1;
  }
  memcpy(path + at, name.data, name.len);
  path[at + name.len] = 0;
  if (!realpath(path, real) || strncmp(real, dir, len) != 0 ||
      (real[len] != '/' && strcmp(dir, "/") != 0))
    return NULL;
  int fd = open(real, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW);
  if (fd < 0)
    return NULL;
  FILE *file = NULL;
  if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
    file = fdopen(fd, "r");
  if (!file)
    close(fd);
  else
    *newer = since && st.st_mtime > since;
  return file;
}

/* Reads the lines of the places [from, to), which are in one file. */
static void sources_read(struct ljp_page *page, FILE *file,
                         struct ljp_page_source *from,
                         struct ljp_page_source *to)
{
  char *line = NULL;
  size_t room = 0;
  ssize_t n;
  for (uint32_t at = 1; from < to && (n = getline(&line, &room, file)) >= 0;
       at++) {
    if (at != from->line)
      continue;
    while (n && (line[n - 1] == '\n' || line[n - 1] == '\r'))
      n--;
    if (n > LJP_SOURCE_LINE_BYTES)
      n = LJP_SOURCE_LINE_BYTES;
    from->text = ljp_page_text(page, ljp_str(line, (size_t)n));
    from++;
  }
  free(line);
}

enum ljp_status ljp_page_sources(struct ljp_page *page, const char *dir,
                                 uint64_t since_wall_ns)
{
  char real[PATH_MAX];
  if (!realpath(dir, real))
    return LJP_ERR_IO;
  if (!sources_collect(page))
    return LJP_ERR_MEM;
  for (size_t i = 0, end; i < page->source_count; i = end) {
    struct ljp_page_source *from = &page->sources[i];
    for (end = i; end < page->source_count &&
                  sources_same_file(from, &page->sources[end]);
         end++)
      ;
    bool newer = false;
    FILE *file = sources_open(real, from->file,
                              (time_t)(since_wall_ns / 1000000000), &newer);
    if (!file)
      continue;
    sources_read(page, file, from, page->sources + end);
    fclose(file);
    if (newer)
      ljp_page_notice(
          page, false,
          ljp_page_format(page,
                          "%.*s changed after the session began: its lines "
                          "may not be those that ran",
                          (int)from->file.len, from->file.data));
  }
  return page->failed;
}
