/*
** without_perf PROGRAM ARGUMENT...: runs a program in a container that refuses
** perf events, as most do.
*/
#include <stdio.h>
#include <unistd.h>

#include "test/support/refuse_perf.h"

int main(int argc, char **argv)
{
  if (argc < 2 || !refuse_perf()) {
    perror("without_perf");
    return 125;
  }
  execvp(argv[1], argv + 1);
  perror(argv[1]);
  return 127;
}
