/*
** The loader's list of objects. dl_iterate_phdr() takes the loader's lock,
** which a copy of the process by a raw clone() never gets if one of our threads
** held it at that moment.
*/
#ifndef LJP_LOADER_H
#define LJP_LOADER_H

#include <link.h>
#include <stdbool.h>

/* The vDSO's name, as glibc gives it. */
#define LJP_LOADER_VDSO "linux-vdso.so.1"

/* dl_iterate_phdr(), and the vDSO with a name in any case: musl gives it none, and
** does not list it in static programs. Any thread may call it; no signal handler
** may. */
int ljp_loader_each(int (*each)(struct dl_phdr_info *info, size_t size,
                                void *ctx),
                    void *ctx);

/* This process is a copy, and the loader's lock is taken for ever. */
bool ljp_loader_lost(void);

/* This process is a copy by a raw clone(). */
void ljp_loader_copied(void);

#endif
