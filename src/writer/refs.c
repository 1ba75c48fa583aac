/*
** See refs.h.
*/
#include "src/writer/refs.h"

#include <stdlib.h>

enum ljp_status ljp_refs_init(struct ljp_refs *refs)
{
  *refs =
      (struct ljp_refs){.pages = calloc(LJP_REFS_PAGES, sizeof(uint32_t *))};
  return refs->pages ? LJP_OK : LJP_ERR_MEM;
}

static void free_pages(struct ljp_refs *refs)
{
  for (int i = 0; refs->pages && i < LJP_REFS_PAGES; i++) {
    free(refs->pages[i]);
    refs->pages[i] = NULL;
  }
}

void ljp_refs_fini(struct ljp_refs *refs)
{
  free_pages(refs);
  free(refs->pages);
  refs->pages = NULL;
}

/* Where its number stands, NULL: there is no room for one. */
static uint32_t *slot(const struct ljp_refs *refs, uint32_t ref)
{
  uint32_t page = ref / LJP_REFS_PAGE;
  if (page >= LJP_REFS_PAGES || !refs->pages[page])
    return NULL;
  return &refs->pages[page][ref % LJP_REFS_PAGE];
}

uint32_t ljp_refs_number(const struct ljp_refs *refs, uint32_t ref)
{
  const uint32_t *number = slot(refs, ref);
  return number ? *number : 0;
}

uint32_t ljp_refs_give(struct ljp_refs *refs, uint32_t ref)
{
  uint32_t page = ref / LJP_REFS_PAGE;
  if (page < LJP_REFS_PAGES && !refs->pages[page])
    refs->pages[page] = calloc(LJP_REFS_PAGE, sizeof(uint32_t));
  uint32_t *number = slot(refs, ref);
  if (!number)
    return 0;
  return *number = ++refs->last;
}

void ljp_refs_forget(struct ljp_refs *refs, uint32_t ref)
{
  uint32_t *number = slot(refs, ref);
  if (!number || !*number)
    return;
  *number = 0;
  refs->generation++;
}

void ljp_refs_clear(struct ljp_refs *refs)
{
  free_pages(refs);
  refs->last = 0;
  refs->generation++;
}
