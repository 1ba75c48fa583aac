/*
** Runs two commands alternately and compares their CPU times.
**
**   bench_pair ROUNDS COMMAND-A COMMAND-B ARGUMENT...
**
** Both commands get the same arguments. Rounds run A B and B A alternately, so
** that a machine that slows down affects both. The program prints the median
** of the rounds' ratios A/B, the least seconds of A and of B, and half the
** distance between the quartiles of the ratios.
*/
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/child.h"

static int ascending(const void *a, const void *b)
{
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
  int rounds = argc > 1 ? atoi(argv[1]) : 0;
  if (argc < 4 || rounds < 1 || rounds > 10000) {
    fprintf(stderr, "usage: bench_pair ROUNDS COMMAND-A COMMAND-B ARGS...\n");
    return 2;
  }
  double *ratios = calloc((size_t)rounds, sizeof *ratios);
  char **args = calloc((size_t)argc, sizeof *args);
  if (!ratios || !args)
    return 1;
  memcpy(args + 1, argv + 4, (size_t)(argc - 4) * sizeof *args);
  double least[2] = {1e9, 1e9};
  for (int i = 0; i < rounds; i++) {
    double time[2];
    for (int k = 0; k < 2; k++) {
      int side = (i + k) & 1;
      args[0] = argv[2 + side];
      struct rusage used;
      child_run(args, &used);
      time[side] = child_seconds(&used);
      if (time[side] < least[side])
        least[side] = time[side];
    }
    ratios[i] = time[0] / time[1];
  }
  qsort(ratios, (size_t)rounds, sizeof *ratios, ascending);
  double median = (ratios[(rounds - 1) / 2] + ratios[rounds / 2]) / 2;
  double spread = (ratios[(rounds - 1) * 3 / 4] - ratios[rounds / 4]) / 2;
  printf("%.4f %.3f %.3f %.4f\n", median, least[0], least[1], spread);
  free(ratios);
  free(args);
  return 0;
}
