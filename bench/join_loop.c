/*
** Joins a program many times, one after the other, and leaves it each time.
** Usage: join_loop PID COUNT. Prints how long a thread of the program was
** stopped, and how long it took until the program answered. Ends with 1 if the
** program could not be joined, which is reported.
*/
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "tools/join/talk.h"

static uint64_t loop_now(void)
{
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static int loop_compare(const void *a, const void *b)
{
  const uint64_t *x = a, *y = b;
  return *x < *y ? -1 : *x > *y;
}

static void loop_print(const char *what, uint64_t *ns, size_t count)
{
  qsort(ns, count, sizeof *ns, loop_compare);
  printf("%s: median %.0f us, 99 %% %.2f ms, longest %.2f ms\n", what,
         (double)ns[count / 2] / 1e3, (double)ns[count * 99 / 100] / 1e6,
         (double)ns[count - 1] / 1e6);
}

int main(int argc, char **argv)
{
  static struct ljp_talk talk;
  struct ljp_goal goal;
  size_t count = argc == 3 ? strtoul(argv[2], NULL, 10) : 0;
  if (!count || ljp_talk_goal("join_loop", argv[1], &goal) >= 0)
    return 2;
  uint64_t *pause = calloc(count, sizeof *pause);
  uint64_t *answer = calloc(count, sizeof *answer);
  uint64_t stops = 0, held_ns = 0;
  for (size_t i = 0; pause && answer && i < count; i++) {
    uint64_t begin = loop_now();
    if (ljp_talk_join(&talk, "join_loop", &goal) >= 0)
      return 1;
    answer[i] = loop_now() - begin;
    pause[i] = talk.visit.pause_ns;
    stops += talk.visit.stops;
    held_ns += talk.visit.held_ns;
    ljp_talk_leave(&talk);
  }
  if (!pause || !answer)
    return 1;
  loop_print("pause", pause, count);
  loop_print("answer", answer, count);
  printf(
      "threads stopped: %.1f per visit; each that could not be used: %.0f us\n",
      (double)stops / (double)count,
      stops > count ? (double)held_ns / (double)(stops - count) / 1e3 : 0);
  free(pause);
  free(answer);
  return 0;
}
