/* Every status has a number, a name and a text of its own. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <string.h>
#include <cmocka.h>

#include "src/base/status.h"

static const enum ljp_status all[] = {
#define ENTRY(name, number, text) LJP_##name,
    LJP_STATUS_LIST(ENTRY)
#undef ENTRY
};
enum { COUNT = sizeof all / sizeof all[0] };

static void each_status_has_a_text_of_its_own(void **state)
{
  (void)state;
  for (int i = 0; i < COUNT; i++)
    for (int j = 0; j < i; j++)
      assert_string_not_equal(ljp_status_text(all[i]), ljp_status_text(all[j]));
}

static void a_number_outside_the_list_is_called_unknown(void **state)
{
  (void)state;
  assert_string_equal(ljp_status_text((enum ljp_status)COUNT),
                      "unknown status");
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(each_status_has_a_text_of_its_own),
      cmocka_unit_test(a_number_outside_the_list_is_called_unknown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
