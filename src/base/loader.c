/*
** See loader.h. Global because there is one loader; atomics.
*/
#include "src/base/loader.h"

#include <stdatomic.h>
#include <sys/auxv.h>

static _Atomic unsigned loader_users; /* threads in dl_iterate_phdr() */
static _Atomic bool loader_lost;

struct loader_look {
  int (*each)(struct dl_phdr_info *info, size_t size, void *ctx);
  void *ctx;
  uint64_t vdso;           /* where it begins; 0: there is none */
  bool listed;             /* the vDSO, by the loader */
  struct dl_phdr_info all; /* the counters */
};

static bool loader_is_vdso(const struct loader_look *look,
                           const struct dl_phdr_info *info)
{
  enum { VDSO_HEADERS = 4096 };
  return look->vdso &&
         (uint64_t)(uintptr_t)info->dlpi_phdr - look->vdso < VDSO_HEADERS;
}

static int loader_take(struct dl_phdr_info *info, size_t size, void *ctx)
{
  struct loader_look *look = ctx;
  look->all.dlpi_adds = info->dlpi_adds;
  look->all.dlpi_subs = info->dlpi_subs;
  if (!loader_is_vdso(look, info))
    return look->each(info, size, look->ctx);
  look->listed = true;
  struct dl_phdr_info named = *info;
  named.dlpi_name = LJP_LOADER_VDSO;
  return look->each(&named, sizeof named, look->ctx);
}

/* Of the vDSO itself. */
static int loader_take_vdso(struct loader_look *look)
{
  const ElfW(Ehdr) *head = (const ElfW(Ehdr) *)(uintptr_t)look->vdso;
  struct dl_phdr_info info = look->all;
  info.dlpi_name = LJP_LOADER_VDSO;
  info.dlpi_phdr = (const ElfW(Phdr) *)(uintptr_t)(look->vdso + head->e_phoff);
  info.dlpi_phnum = head->e_phnum;
  info.dlpi_addr = look->vdso;
  for (int i = 0; i < info.dlpi_phnum; i++)
    if (info.dlpi_phdr[i].p_type == PT_LOAD) {
      info.dlpi_addr = look->vdso - info.dlpi_phdr[i].p_vaddr;
      break;
    }
  return look->each(&info, sizeof info, look->ctx);
}

int ljp_loader_each(int (*each)(struct dl_phdr_info *info, size_t size,
                                void *ctx),
                    void *ctx)
{
  struct loader_look look = {
      .each = each, .ctx = ctx, .vdso = getauxval(AT_SYSINFO_EHDR)};
  atomic_fetch_add(&loader_users, 1);
  int result = dl_iterate_phdr(loader_take, &look);
  atomic_fetch_sub(&loader_users, 1);
  return result || look.listed || !look.vdso ? result : loader_take_vdso(&look);
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
