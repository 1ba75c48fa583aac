/*
** See proto_numbers.h.
*/
#include "src/writer/proto_numbers.h"

#include <stdlib.h>

#include "src/base/assert.h"

enum { PAGE = LJP_PROTO_NUMBERS_PAGE, PAGES = LJP_PROTO_NUMBERS_PAGES };

enum ljp_status ljp_proto_numbers_init(struct ljp_proto_numbers *numbers)
{
  *numbers =
      (struct ljp_proto_numbers){.pages = calloc(PAGES, sizeof(uint32_t *))};
  return numbers->pages ? LJP_OK : LJP_ERR_MEM;
}

static void numbers_free_pages(struct ljp_proto_numbers *numbers)
{
  for (int i = 0; numbers->pages && i < PAGES; i++) {
    free(numbers->pages[i]);
    numbers->pages[i] = NULL;
  }
}

void ljp_proto_numbers_fini(struct ljp_proto_numbers *numbers)
{
  numbers_free_pages(numbers);
  free(numbers->pages);
  numbers->pages = NULL;
}

/* Where a reference's number is stored; NULL: there is no page for it. */
static uint32_t *numbers_slot(const struct ljp_proto_numbers *numbers,
                              uint32_t ref)
{
  uint32_t page = ref / PAGE;
  if (page >= PAGES || !numbers->pages[page])
    return NULL;
  return &numbers->pages[page][ref % PAGE];
}

uint32_t ljp_proto_number_find(const struct ljp_proto_numbers *numbers,
                               uint32_t ref)
{
  const uint32_t *number = numbers_slot(numbers, ref);
  return number ? *number : 0;
}

uint32_t ljp_proto_number_give(struct ljp_proto_numbers *numbers, uint32_t ref)
{
  uint32_t page = ref / PAGE;
  if (page < PAGES && !numbers->pages[page])
    numbers->pages[page] = calloc(PAGE, sizeof(uint32_t));
  uint32_t *number = numbers_slot(numbers, ref);
  if (!number)
    return 0;
  ljp_assert(!*number);
  return *number = ++numbers->last;
}

void ljp_proto_number_forget(struct ljp_proto_numbers *numbers, uint32_t ref)
{
  uint32_t *number = numbers_slot(numbers, ref);
  if (!number || !*number)
    return;
  *number = 0;
  numbers->generation++;
}

void ljp_proto_numbers_clear(struct ljp_proto_numbers *numbers)
{
  numbers_free_pages(numbers);
  numbers->generation++;
}
