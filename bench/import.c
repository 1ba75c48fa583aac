/*
** How fast `ljprof report`, run as users run it, reads files of Tarantool's
** profilers, of 100 MB each, which import_files.c makes. It prints CPU
** time, elapsed time and memory; the best of several runs counts.
**
** bench_import [FILE]...           measures these files instead
** bench_import --make KIND FILE    only makes one of the files
*/
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "bench/child.h"
#include "bench/import_files.h"

enum { RUNS = 5 };

static double seconds(void)
{
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void measure(char *ljprof, const char *name, char *path,
                    struct import_made made)
{
  char *argv[] = {ljprof, (char *)"report", path, NULL};
  double best = 1e9, elapsed = 1e9, mb = 0;
  struct stat st;
  if (stat(path, &st) != 0) {
    perror(path);
    exit(1);
  }
  for (int i = 0; i < RUNS; i++) {
    struct rusage used;
    double begin_at = seconds();
    child_run(argv, &used);
    double took = seconds() - begin_at, cpu = child_seconds(&used);
    best = cpu < best ? cpu : best;
    elapsed = took < elapsed ? took : elapsed;
    mb = (double)used.ru_maxrss / 1024;
  }
  printf("import %-12s %5.1f MB: %6.3f s of CPU time, %6.3f s; %5.0f MB/s",
         name, (double)st.st_size / 1e6, best, elapsed,
         (double)st.st_size / best / 1e6);
  if (made.events)
    printf(", %5.1f M events/s", (double)made.events / best / 1e6);
  printf(", %4.0f MiB of memory", mb);
  if (made.live >= 1000000)
    printf(", %4.1f bytes a live block", mb * 1048576 / (double)made.live);
  printf("\n");
  fflush(stdout);
}

static const struct import_kind *find_kind(const char *name)
{
  const struct import_kind *kind = import_kinds;
  while (kind->name && strcmp(kind->name, name) != 0)
    kind++;
  if (!kind->name) {
    fprintf(stderr, "bench: error: unknown kind '%s'; there are:", name);
    for (kind = import_kinds; kind->name; kind++)
      fprintf(stderr, " '%s'", kind->name);
    fprintf(stderr, "\n");
    exit(2);
  }
  return kind;
}

int main(int argc, char **argv)
{
  char ljprof[4200];
  child_ljprof(ljprof);
  if (argc == 4 && strcmp(argv[1], "--make") == 0) {
    import_make(find_kind(argv[2]), argv[3]);
    return 0;
  }
  for (int i = 1; i < argc; i++)
    measure(ljprof, "file", argv[i], (struct import_made){0});
  for (const struct import_kind *kind = import_kinds; argc == 1 && kind->name;
       kind++) {
    char path[] = "/tmp/ljprof-bench-XXXXXX";
    int fd = mkstemp(path);
    if (fd < 0)
      abort();
    close(fd);
    struct import_made made = import_make(kind, path);
    measure(ljprof, kind->name, path, made);
    unlink(path);
  }
  return 0;
}
