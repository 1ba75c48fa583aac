/*
** LJP_SIGSAFE marks a function that a signal handler may call. Such functions
** are in objects of their own (CMake target ljp_sigsafe and others), and
** test/e2e/sigsafe_symbols.sh checks the undefined symbols of these objects
** against an allow-list.
*/
#ifndef LJP_SIGSAFE_H
#define LJP_SIGSAFE_H

#define LJP_SIGSAFE

#define LJP_LIKELY(x) __builtin_expect(!!(x), 1)
#define LJP_UNLIKELY(x) __builtin_expect(!!(x), 0)

#endif
