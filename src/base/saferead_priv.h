/* Between the two halves of saferead; nobody else includes this. */
#ifndef LJP_SAFEREAD_PRIV_H
#define LJP_SAFEREAD_PRIV_H

#include <stdatomic.h>
#include <stdbool.h>

/* Set while our fault handlers are in place; read by every handler. */
extern _Atomic bool ljp_saferead_ready;

/* The address of the load, and where to go on if it faulted. */
extern const char ljp_saferead_at[] __attribute__((visibility("hidden")));
extern const char ljp_saferead_failed[] __attribute__((visibility("hidden")));
/* The same of the loop that copies, */
extern const char ljp_saferead_words_at[] __attribute__((visibility("hidden")));
extern const char ljp_saferead_words_failed[]
    __attribute__((visibility("hidden")));
/* and of the one that compares. */
extern const char ljp_saferead_equal_at[] __attribute__((visibility("hidden")));
extern const char ljp_saferead_equal_failed[]
    __attribute__((visibility("hidden")));
/* Of four at a time: from the first load to behind the last. */
extern const char ljp_saferead_four_at[] __attribute__((visibility("hidden")));
extern const char ljp_saferead_four_end[] __attribute__((visibility("hidden")));
extern const char ljp_saferead_four_failed[]
    __attribute__((visibility("hidden")));

#endif
