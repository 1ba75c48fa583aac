/*
** Runs a fuzz target on the kept inputs, without libFuzzer: replay_NAME FOLDER.
** Prints the number of inputs; it is an error if there are none.
*/
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size)
{
  (void)data;
  return size < max_size ? size : max_size; /* Never called; needed to link. */
}

int main(int argc, char **argv)
{
  struct dirent *entry;
  DIR *dir = argc == 2 ? opendir(argv[1]) : NULL;
  int count = 0;
  if (!dir) {
    fprintf(stderr, "usage: replay_NAME FOLDER\n");
    return 2;
  }
  while ((entry = readdir(dir))) {
    char path[4096];
    struct stat st;
    snprintf(path, sizeof path, "%s/%s", argv[1], entry->d_name);
    if (stat(path, &st) != 0 || !S_ISREG(st.st_mode))
      continue;
    FILE *file = fopen(path, "rb");
    uint8_t *data = malloc((size_t)st.st_size + 1);
    size_t size = file && data ? fread(data, 1, (size_t)st.st_size, file) : 0;
    if (size != (size_t)st.st_size) {
      fprintf(stderr, "cannot read %s\n", path);
      return 1;
    }
    /* Shows the input that crashed. */
    fprintf(stderr, "%s\n", path);
    LLVMFuzzerTestOneInput(data, size);
    free(data);
    fclose(file);
    count++;
  }
  closedir(dir);
  fprintf(stderr, "%d inputs\n", count);
  return count ? 0 : 1;
}
