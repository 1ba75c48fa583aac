/*
** Objects by address. The addresses of a heap are dense, so each page of 2 KiB has a
** bitmap of the places where objects begin. An object's number is that of the page's
** first one plus the bits before its own. Pages are found by a hash table with a
** random seed, so that no file can make them collide.
**
** A search costs the reads that miss the caches; it has few, since it compares no
** addresses of objects. Of two objects at one address, the first is found. Object 0
** has no address. 6 to 10 bytes an object in real heaps, 85 at most. One thread a
** table.
*/
#ifndef LJP_PARSERS_HEAP_ADDRESSES_H
#define LJP_PARSERS_HEAP_ADDRESSES_H

#include "parsers/base/index.h"
#include "src/base/heap_format.h"
#include "src/base/status.h"

enum {
  LJP_HEAP_PAGE_SHIFT = 11,
  LJP_HEAP_PAGE_WORDS = 1 << (LJP_HEAP_PAGE_SHIFT - LJP_HEAP_ALIGN_SHIFT - 6)
};

/* A cache line. */
struct ljp_heap_page {
  uint64_t number; /* Its addresses without their low bits. */
  uint64_t bits[LJP_HEAP_PAGE_WORDS];
  uint32_t first;                      /* Its first object, in objects[]. */
  uint8_t before[LJP_HEAP_PAGE_WORDS]; /* Bits that are set before the word. */
  uint64_t unused[2];
};

struct ljp_heap_addresses {
  uint32_t *slots; /* By page: index + 1; 0: free. */
  struct ljp_heap_page *pages;
  uint32_t *objects; /* Page by page, by address. */
  uint32_t mask, page_count;
  size_t page_bytes;
  uint64_t seed;
};

/* address: by object; not needed afterwards. */
enum ljp_status ljp_heap_addresses_init(struct ljp_heap_addresses *a,
                                        const uint64_t *address,
                                        uint32_t count);
void ljp_heap_addresses_fini(struct ljp_heap_addresses *a);

static inline uint32_t
ljp_heap_addresses_slot(const struct ljp_heap_addresses *a, uint64_t address)
{
  uint64_t number = address >> LJP_HEAP_PAGE_SHIFT;
  return ljp_hash_finish(ljp_hash_mix(a->seed, number)) & a->mask;
}

static inline unsigned ljp_heap_page_bit(uint64_t address)
{
  return address >> LJP_HEAP_ALIGN_SHIFT & (LJP_HEAP_PAGE_WORDS * 64 - 1);
}

/* Without the processor's instruction, which not all of them have. */
static inline uint32_t ljp_heap_bits_set(uint64_t word)
{
  word -= word >> 1 & UINT64_C(0x5555555555555555);
  word = (word & UINT64_C(0x3333333333333333)) +
         (word >> 2 & UINT64_C(0x3333333333333333));
  word = (word + (word >> 4)) & UINT64_C(0x0f0f0f0f0f0f0f0f);
  return (uint32_t)(word * UINT64_C(0x0101010101010101) >> 56);
}

/* The place of an address in objects[]; UINT32_MAX: none. */
static inline uint32_t
ljp_heap_address_place(const struct ljp_heap_addresses *a, uint64_t address)
{
  const uint64_t number = address >> LJP_HEAP_PAGE_SHIFT;
  const unsigned bit = ljp_heap_page_bit(address), word = bit / 64;
  uint32_t slot = ljp_heap_addresses_slot(a, address);
  const struct ljp_heap_page *page = NULL;
  for (; a->slots[slot]; slot = (slot + 1) & a->mask) {
    page = &a->pages[a->slots[slot] - 1];
    if (page->number == number)
      break;
  }
  if (!a->slots[slot] || !(page->bits[word] >> bit % 64 & 1))
    return UINT32_MAX;
  uint64_t same = page->bits[word] & ((UINT64_C(1) << bit % 64) - 1);
  return page->first + page->before[word] + ljp_heap_bits_set(same);
}

/* 0: there is no such object. */
static inline uint32_t ljp_heap_address(const struct ljp_heap_addresses *a,
                                        uint64_t address)
{
  uint32_t place = ljp_heap_address_place(a, address);
  return place == UINT32_MAX ? 0 : a->objects[place];
}

/* In large heaps the reads of a search miss the caches. To look for many
** addresses, fetch the slots of all of them, then the pages, then the objects. */
static inline void ljp_heap_addresses_fetch(const struct ljp_heap_addresses *a,
                                            uint64_t address)
{
  __builtin_prefetch(&a->slots[ljp_heap_addresses_slot(a, address)]);
}

static inline void
ljp_heap_addresses_fetch_page(const struct ljp_heap_addresses *a,
                              uint64_t address)
{
  uint32_t page = a->slots[ljp_heap_addresses_slot(a, address)];
  if (page)
    __builtin_prefetch(&a->pages[page - 1]);
}

#endif
