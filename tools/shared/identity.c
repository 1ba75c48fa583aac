/*
** See identity.h.
*/
#include "tools/shared/identity.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "parsers/base/index.h"

enum { NAME_BYTES = 512, LINE = 2 * LJP_IDENTITY_BYTES + 1, LIST_LINES = 4096 };
static const char made_of_end[] = ".made-of";

int ljp_identify(const char *file, uint8_t id[LJP_IDENTITY_BYTES])
{
  uint64_t sum[2] = {UINT64_C(0x6c6a70726f66), UINT64_C(0x70757368)};
  uint8_t buffer[1 << 14];
  uint64_t bytes = 0;
  int fd = open(file, O_RDONLY | O_CLOEXEC);
  int error = fd < 0 ? errno : 0;
  while (!error) {
    size_t n = 0;
    ssize_t got = 1;
    while (n < sizeof buffer && got > 0) {
      got = read(fd, buffer + n, sizeof buffer - n);
      n += got > 0 ? (size_t)got : 0;
    }
    if (got < 0)
      error = errno;
    bytes += n;
    memset(buffer + n, 0, (sizeof buffer - n) & 7);
    for (size_t i = 0; i < n; i += 8) {
      uint64_t word;
      memcpy(&word, buffer + i, sizeof word);
      sum[0] = ljp_hash_mix(sum[0], word);
      sum[1] = ljp_hash_mix(sum[1] ^ UINT64_C(0x5851f42d4c957f2d), word);
    }
    if (got <= 0)
      break;
  }
  if (fd >= 0)
    close(fd);
  for (int i = 0; i < 2; i++) {
    sum[i] = ljp_hash_mix(sum[i], bytes);
    memcpy(id + 8 * i, &sum[i], 8);
  }
  return error;
}

static bool made_of_name(char out[NAME_BYTES], const char *made)
{
  int n = snprintf(out, NAME_BYTES, ".%s%s", made, made_of_end);
  return n > 0 && n < NAME_BYTES;
}

int ljp_made_of_put(int dir, const char *made,
                    const uint8_t (*ids)[LJP_IDENTITY_BYTES], size_t count)
{
  char name[NAME_BYTES];
  if (!made_of_name(name, made))
    return ENAMETOOLONG;
  unlinkat(dir, name, 0);
  int fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  FILE *f = fd < 0 ? NULL : fdopen(fd, "w");
  if (!f) {
    int error = errno;
    if (fd >= 0)
      close(fd);
    return error;
  }
  for (size_t i = 0; i < count; i++) {
    for (int k = 0; k < LJP_IDENTITY_BYTES; k++)
      fprintf(f, "%02x", ids[i][k]);
    putc('\n', f);
  }
  int error = fflush(f) || fsync(fd) ? errno : 0;
  fclose(f);
  if (error)
    unlinkat(dir, name, 0);
  return error;
}

void ljp_made_of_drop(int dir, const char *made)
{
  char name[NAME_BYTES];
  if (made_of_name(name, made))
    unlinkat(dir, name, 0);
}

bool ljp_made_of_parse(const char *list, char *made, size_t room)
{
  const size_t len = strlen(list), end = sizeof made_of_end - 1;
  if (list[0] != '.' || len < end + 2 || len - end > room ||
      strcmp(list + len - end, made_of_end) != 0)
    return false;
  memcpy(made, list + 1, len - end - 1);
  made[len - end - 1] = '\0';
  return true;
}

static bool made_of_line(const char *line, uint8_t id[LJP_IDENTITY_BYTES])
{
  static const char digits[] = "0123456789abcdef";
  for (int i = 0; i < 2 * LJP_IDENTITY_BYTES; i++) {
    const char *digit = line[i] ? strchr(digits, line[i]) : NULL;
    if (!digit)
      return false;
    id[i / 2] = (uint8_t)(id[i / 2] << 4 | (digit - digits));
  }
  return line[LINE - 1] == '\n';
}

size_t ljp_made_of_read(int dir, const char *made,
                        uint8_t (**ids)[LJP_IDENTITY_BYTES])
{
  enum { FLAGS = O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY };
  char name[NAME_BYTES];
  int fd = made_of_name(name, made) ? openat(dir, name, FLAGS) : -1;
  char *text = fd < 0 ? NULL : malloc((size_t)LINE * LIST_LINES + 1);
  size_t len = 0, count = 0;
  ssize_t n = 1;
  while (text && n > 0 && len <= (size_t)LINE * LIST_LINES) {
    n = read(fd, text + len, (size_t)LINE * LIST_LINES + 1 - len);
    len += n > 0 ? (size_t)n : 0;
  }
  bool whole = text && n == 0 && len && len % LINE == 0;
  *ids = whole ? calloc(len / LINE, sizeof **ids) : NULL;
  while (*ids && count < len / LINE &&
         made_of_line(text + count * LINE, (*ids)[count]))
    count++;
  if (*ids && count < len / LINE) {
    free(*ids);
    *ids = NULL;
    count = 0;
  }
  free(text);
  if (fd >= 0)
    close(fd);
  return count;
}
