/* parsers/profile: the nodes that paths of frames lead to. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <stdio.h>
#include <cmocka.h>

#include "parsers/profile/intern.h"
#include "test/support/random.h"

enum { FRAMES = 7, DEPTH = 13, PATHS = 601 };

/* The node below parent, by a search through all; 0: there is none. */
static uint32_t find_child(const struct ljp_profile *p, uint32_t parent,
                           uint32_t frame)
{
  for (uint32_t i = 1; i < p->node_count; i++)
    if (p->nodes[i].parent == parent && p->nodes[i].frame == frame)
      return i;
  return 0;
}

/* Adds a path and checks each of its nodes; known ones keep their numbers, and
** new ones get the next. */
static void check_path(struct ljp_profile *p, const uint32_t *frames,
                       uint32_t depth)
{
  uint32_t known = 0, at = 0, next, node = 0;
  while (known < depth && (next = find_child(p, at, frames[known]))) {
    at = next;
    known++;
  }
  uint32_t before = p->node_count;
  assert_int_equal(ljp_profile_intern_path(p, frames, depth, &node), LJP_OK);
  assert_int_equal(p->node_count, before + depth - known);
  assert_int_equal(node, known == depth ? at : p->node_count - 1);
  for (uint32_t i = depth; i-- > 0; node = p->nodes[node].parent)
    assert_int_equal(p->nodes[node].frame, frames[i]);
  assert_int_equal(node, 0);
}

static void paths_share_the_nodes_they_have_in_common(void **state)
{
  uint32_t ids[FRAMES], frames[DEPTH];
  struct ljp_profile *p = ljp_profile_new(NULL);
  (void)state;
  assert_non_null(p);
  for (uint32_t i = 0; i < FRAMES; i++) {
    struct ljp_profile_frame f = {.kind = LJP_FRAME_LUA, .line = i + 1};
    assert_int_equal(ljp_profile_intern_frame(p, &f, &ids[i]), LJP_OK);
  }
  for (uint32_t i = 0; i < PATHS; i++) {
    uint32_t depth = 1 + (uint32_t)(random_number() % DEPTH);
    for (uint32_t k = 0; k < depth; k++) /* Often the same. */
      frames[k] = ids[random_number() % FRAMES * (random_number() % 3 == 0)];
    check_path(p, frames, depth);
    check_path(p, frames, depth);
  }
  ljp_profile_free(p);
}

static void path_beyond_the_limit_leads_to_one_node(void **state)
{
  uint32_t frames[3] = {LJP_NODE_NO_STACK, LJP_NODE_TOO_MANY, LJP_NODE_LOST};
  struct ljp_profile *p = ljp_profile_new(NULL);
  uint32_t node = 0;
  (void)state;
  assert_non_null(p);
  assert_int_equal(ljp_profile_intern_path(p, frames, 3, &node), LJP_OK);
  assert_int_equal(node, LJP_NODE_TOO_MANY);
  ljp_profile_free(p);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(paths_share_the_nodes_they_have_in_common),
      cmocka_unit_test(path_beyond_the_limit_leads_to_one_node),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
