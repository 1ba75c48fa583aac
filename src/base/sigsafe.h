/*
** LJP_SIGSAFE marks what a signal handler may call. Such functions live in
** objects of their own (CMake target ljp_sigsafe and its like), whose
** undefined symbols test/e2e/sigsafe_symbols.sh checks against an allow-list.
*/
#ifndef LJP_SIGSAFE_H
#define LJP_SIGSAFE_H

#define LJP_SIGSAFE

#define LJP_LIKELY(x) __builtin_expect(!!(x), 1)
#define LJP_UNLIKELY(x) __builtin_expect(!!(x), 0)

#endif
