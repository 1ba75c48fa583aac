/* What `ljprof record` reads of a program before it runs it: any bytes. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "src/base/assert.h"
#include "tools/record/image.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  struct ljp_image image;
  int fd = memfd_create("image", 0);
  if (fd < 0 || write(fd, data, size) != (ssize_t)size)
    return -1;
  ljp_image_read(&image, fd);
  close(fd);
  ljp_assert(memchr(image.loader, '\0', sizeof image.loader));
  ljp_assert(image.elf || !image.native);
  ljp_assert(image.native || !(image.ours || image.luajit || *image.loader));
  ljp_assert(image.luajit || !image.ours);
  return 0;
}
