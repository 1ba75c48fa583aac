/*
** ljp_assert(condition): checks an invariant of our own code. Debug builds
** (LJP_DEBUG) print file, line and condition, and trap; release builds check
** nothing and generate no code.
** Signal-safe: a failure makes one system call, without libc and without a
** symbol, so any object may use it, those marked LJP_SIGSAFE too.
** Never for input: what a file, a user or the host says meets a real check.
*/
#ifndef LJP_ASSERT_H
#define LJP_ASSERT_H

#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifdef LJP_DEBUG

static inline __attribute__((cold, noreturn)) void
ljp_assert_fail(const char *text, size_t len)
{
#if defined(__x86_64__)
  long ret = SYS_write;
  __asm__ volatile("syscall"
                   : "+a"(ret)
                   : "D"((long)STDERR_FILENO), "S"(text), "d"(len)
                   : "rcx", "r11", "memory");
#else
  if (write(STDERR_FILENO, text, len) < 0)
    __builtin_trap();
#endif
  __builtin_trap();
}

#define LJP_ASSERT_STRING2(x) #x
#define LJP_ASSERT_STRING(x) LJP_ASSERT_STRING2(x)
#define LJP_ASSERT_TEXT(text)                                                  \
  __FILE__ ":" LJP_ASSERT_STRING(__LINE__) ": assertion failed: " text "\n"
#define ljp_assert(condition)                                                  \
  (__builtin_expect(!!(condition), 1)                                          \
       ? (void)0                                                               \
       : ljp_assert_fail(LJP_ASSERT_TEXT(#condition),                          \
                         sizeof(LJP_ASSERT_TEXT(#condition)) - 1))

#else

/* Compiled, so that it stays correct, but never evaluated. */
#define ljp_assert(condition) ((void)(0 && (condition)))

#endif

#endif
