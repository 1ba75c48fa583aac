/*
** See addresses.h. At most half of the slots are used.
*/
#include "parsers/heap/addresses.h"

#include <stdlib.h>
#include <sys/random.h>

#include "parsers/base/array.h" /* LJP_CACHE_LINE_BYTES */

_Static_assert(sizeof(struct ljp_heap_page) == LJP_CACHE_LINE_BYTES,
               "a page is a cache line");
_Static_assert(64 * (LJP_HEAP_PAGE_WORDS - 1) <= UINT8_MAX,
               "before[] is large enough");

static bool addresses_grow(struct ljp_heap_addresses *a)
{
  uint32_t count = a->slots ? 2 * (a->mask + 1) : 1024;
  uint32_t *slots = count ? ljp_pages_items(count, sizeof *slots) : NULL;
  if (!slots)
    return false;
  free(a->slots);
  a->slots = slots;
  a->mask = count - 1;
  for (uint32_t i = 0; i < a->page_count; i++) {
    uint64_t address = a->pages[i].number << LJP_HEAP_PAGE_SHIFT;
    uint32_t slot = ljp_heap_addresses_slot(a, address);
    while (slots[slot])
      slot = (slot + 1) & a->mask;
    slots[slot] = i + 1;
  }
  return true;
}

/* Takes memory for as many pages as there can be: what is not used costs nothing. */
static bool addresses_take_pages(struct ljp_heap_addresses *a,
                                 const uint64_t *address, uint32_t count)
{
  uint64_t least = UINT64_MAX, most = 0;
  for (uint32_t i = 1; i < count; i++) {
    least = address[i] < least ? address[i] : least;
    most = address[i] > most ? address[i] : most;
  }
  uint64_t between = most < least ? 0 : (most - least) >> LJP_HEAP_PAGE_SHIFT;
  size_t bytes = (between + 2 < count ? between + 2 : count) * sizeof *a->pages;
  if (bytes > LJP_PAGES_LARGE)
    bytes += -bytes % LJP_PAGES_LARGE;
  a->page_bytes = bytes;
  a->pages = ljp_pages_take(bytes);
  return a->pages != NULL;
}

/* The page of an address; NULL: no memory. */
static struct ljp_heap_page *addresses_page(struct ljp_heap_addresses *a,
                                            uint64_t address)
{
  uint64_t number = address >> LJP_HEAP_PAGE_SHIFT;
  if (a->page_count >= (a->mask + 1) / 2 && !addresses_grow(a))
    return NULL;
  uint32_t slot = ljp_heap_addresses_slot(a, address);
  for (; a->slots[slot]; slot = (slot + 1) & a->mask)
    if (a->pages[a->slots[slot] - 1].number == number)
      return &a->pages[a->slots[slot] - 1];
  struct ljp_heap_page *page = &a->pages[a->page_count++];
  page->number = number;
  a->slots[slot] = a->page_count;
  return page;
}

/* Sets the bits. */
static bool addresses_mark(struct ljp_heap_addresses *a,
                           const uint64_t *address, uint32_t count)
{
  enum { AHEAD = 16 };
  struct ljp_heap_page *page = NULL;
  for (uint32_t i = 1; i < count; i++) {
    if (i + AHEAD < count)
      ljp_heap_addresses_fetch(a, address[i + AHEAD]);
    if (!page || page->number != address[i] >> LJP_HEAP_PAGE_SHIFT)
      page = addresses_page(a, address[i]);
    if (!page)
      return false;
    unsigned bit = ljp_heap_page_bit(address[i]);
    page->bits[bit / 64] |= UINT64_C(1) << bit % 64;
  }
  return true;
}

/* Makes room for the objects; counts the bits. */
static bool addresses_place(struct ljp_heap_addresses *a)
{
  uint32_t all = 0;
  for (uint32_t i = 0; i < a->page_count; i++) {
    struct ljp_heap_page *page = &a->pages[i];
    uint32_t before = 0;
    page->first = all;
    for (unsigned word = 0; word < LJP_HEAP_PAGE_WORDS; word++) {
      page->before[word] = (uint8_t)before;
      before += ljp_heap_bits_set(page->bits[word]);
    }
    all += before;
  }
  a->objects = ljp_pages_items((size_t)all + 1, sizeof *a->objects);
  return a->objects != NULL;
}

enum ljp_status ljp_heap_addresses_init(struct ljp_heap_addresses *a,
                                        const uint64_t *address, uint32_t count)
{
  enum { SLOT = 32, PAGE = 16 };
  *a = (struct ljp_heap_addresses){.slots = NULL};
  if (getrandom(&a->seed, sizeof a->seed, GRND_NONBLOCK) < 0)
    a->seed = (uintptr_t)address;
  if (!addresses_take_pages(a, address, count) || !addresses_grow(a) ||
      !addresses_mark(a, address, count) || !addresses_place(a)) {
    ljp_heap_addresses_fini(a);
    return LJP_ERR_MEM;
  }
  for (uint32_t i = 1; i < count; i++) {
    if (i + SLOT < count)
      ljp_heap_addresses_fetch(a, address[i + SLOT]);
    if (i + PAGE < count)
      ljp_heap_addresses_fetch_page(a, address[i + PAGE]);
    uint32_t place = ljp_heap_address_place(a, address[i]);
    if (!a->objects[place])
      a->objects[place] = i;
  }
  return LJP_OK;
}

void ljp_heap_addresses_fini(struct ljp_heap_addresses *a)
{
  free(a->slots);
  ljp_pages_give_back(a->pages, a->page_bytes);
  free(a->objects);
  *a = (struct ljp_heap_addresses){.slots = NULL};
}
