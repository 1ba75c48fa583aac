/*
** See loader.h. Global because there is one loader; atomics.
*/
#include "src/base/loader.h"

#include <stdatomic.h>

static _Atomic unsigned loader_users; /* threads in dl_iterate_phdr() */
static _Atomic bool loader_lost;

int ljp_loader_each(int (*each)(struct dl_phdr_info *info, size_t size,
                                void *ctx),
                    void *ctx)
{
  atomic_fetch_add(&loader_users, 1);
  int result = dl_iterate_phdr(each, ctx);
  atomic_fetch_sub(&loader_users, 1);
  return result;
}

bool ljp_loader_lost(void)
{
  return atomic_load(&loader_lost);
}

void ljp_loader_copied(void)
{
  if (atomic_exchange(&loader_users, 0))
    atomic_store(&loader_lost, true);
}
