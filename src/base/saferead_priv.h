/* Shared by the two halves of saferead; no other file includes it. */
#ifndef LJP_SAFEREAD_PRIV_H
#define LJP_SAFEREAD_PRIV_H

#include <stdatomic.h>
#include <stdbool.h>

/* Set while our fault handlers are in place; read by every handler. */
extern _Atomic bool ljp_saferead_ready;

/* Addresses of loads, and where execution continues if they fault: the load of
** one word, */
extern const char ljp_saferead_at[] __attribute__((visibility("hidden")));
extern const char ljp_saferead_failed[] __attribute__((visibility("hidden")));
/* the loop that copies, */
extern const char ljp_saferead_words_at[] __attribute__((visibility("hidden")));
extern const char ljp_saferead_words_failed[]
    __attribute__((visibility("hidden")));
/* the loop that compares one word at a time, */
extern const char ljp_saferead_equal_at[] __attribute__((visibility("hidden")));
extern const char ljp_saferead_equal_failed[]
    __attribute__((visibility("hidden")));
/* and the one that compares four: from the first load to behind the last. */
extern const char ljp_saferead_four_at[] __attribute__((visibility("hidden")));
extern const char ljp_saferead_four_end[] __attribute__((visibility("hidden")));
extern const char ljp_saferead_four_failed[]
    __attribute__((visibility("hidden")));

#endif
