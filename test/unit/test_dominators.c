/* Dominators and retained sizes equal what a naive computation finds: a node
** dominates those that cannot be reached without it. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "parsers/heap/dominators.h"

enum { MAX = 60, EDGES = 400, WEAK = 0x40, NONE = MAX };

static uint32_t state;
static uint32_t next(uint32_t below)
{
  state = state * 1664525u + 1013904223u;
  return (state >> 8) % below;
}

static struct {
  uint32_t count, first[MAX + 1], target[EDGES];
  uint8_t how[EDGES];
} graph;

static void random_graph(uint32_t seed)
{
  state = seed;
  graph.count = 1 + next(MAX - 1);
  uint32_t per_node = 1 + next(4), edge = 0;
  for (uint32_t i = 0; i < graph.count; i++) {
    graph.first[i] = edge;
    for (uint32_t n = next(per_node + 2); n && edge < EDGES; n--) {
      graph.how[edge] = (uint8_t)(next(16) | (next(6) ? 0 : WEAK));
      graph.target[edge++] =
          next(3) ? next(graph.count) : (i + 1 + next(3)) % graph.count;
    }
  }
  graph.first[graph.count] = edge;
}

/* Marks what can be reached without the node `without`. */
static void reach(bool *reached, uint32_t without)
{
  uint32_t stack[MAX], depth = 0;
  memset(reached, 0, MAX);
  if (without == 0)
    return;
  reached[0] = true;
  stack[depth++] = 0;
  while (depth) {
    uint32_t i = stack[--depth];
    for (uint32_t e = graph.first[i]; e < graph.first[i + 1]; e++) {
      uint32_t to = graph.target[e];
      if (graph.how[e] & WEAK || to == without || reached[to])
        continue;
      reached[to] = true;
      stack[depth++] = to;
    }
  }
}

static void check_graph(void)
{
  const struct ljp_dominators_graph g = {graph.count, graph.first, graph.target,
                                         graph.how, WEAK};
  static bool all[MAX], without[MAX][MAX];
  uint32_t dominator[MAX];
  uint64_t own[MAX], retained[MAX];
  reach(all, NONE);
  for (uint32_t i = 0; i < graph.count; i++) {
    own[i] = retained[i] = 1 + next(1000);
    reach(without[i], i);
  }
  assert_int_equal(ljp_dominators(&g, dominator, retained), LJP_OK);
  for (uint32_t i = 0; i < graph.count; i++) {
    uint64_t sum = 0;
    for (uint32_t j = 0; j < graph.count; j++)
      if (all[j] && !without[i][j])
        sum += own[j];
    if (!all[i]) {
      assert_int_equal(dominator[i], LJP_DOMINATED_BY_NONE);
      assert_true(retained[i] == own[i]);
      continue;
    }
    assert_true(retained[i] == sum);
    if (i == 0)
      continue;
    /* Another node that dominates i dominates its immediate dominator. */
    uint32_t up = dominator[i];
    assert_true(up < graph.count && up != i && !without[up][i]);
    for (uint32_t j = 0; j < graph.count; j++)
      if (j != i && all[j] && !without[j][i])
        assert_true(!without[j][up] || j == up);
  }
}

static void random_graphs_have_the_naive_dominators(void **unused)
{
  (void)unused;
  for (uint32_t seed = 0; seed < 10000; seed++) {
    random_graph(seed);
    check_graph();
  }
}

static void a_long_list_needs_no_recursion(void **unused)
{
  (void)unused;
  const uint32_t count = 3000000;
  uint32_t *first = malloc((count + 1) * sizeof *first);
  uint32_t *target = malloc(2 * count * sizeof *target);
  uint8_t *how = calloc(2, count);
  uint32_t *dominator = malloc(count * sizeof *dominator);
  uint64_t *retained = malloc(count * sizeof *retained);
  /* Each node refers to the next one and to the first. */
  for (uint32_t i = 0; i < count; i++) {
    first[i] = 2 * i;
    target[2 * i] = i + 1 < count ? i + 1 : 0;
    target[2 * i + 1] = 0;
    retained[i] = 1;
  }
  first[count] = 2 * count;
  const struct ljp_dominators_graph g = {count, first, target, how, WEAK};
  assert_int_equal(ljp_dominators(&g, dominator, retained), LJP_OK);
  for (uint32_t i = 1; i < count; i++)
    assert_true(dominator[i] == i - 1 && retained[i] == count - i);
  assert_int_equal(retained[0], count);
  free(first);
  free(target);
  free(how);
  free(dominator);
  free(retained);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(random_graphs_have_the_naive_dominators),
      cmocka_unit_test(a_long_list_needs_no_recursion),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
