/*
** Fault-safe reads of memory that may not be mapped: a stack that is being
** unwound, or a value that an interrupted VM may have written only in part.
**
** All reading is done by a few labelled load instructions. If the program
** counter of a SIGSEGV or SIGBUS is one of the labels, the fault is ours and
** the word is "unknown". Any other fault goes to the handler that was there
** before, as if ours did not exist. The loads are assembly, so sanitizers do
** not check them.
**
** Safety: functions marked LJP_SIGSAFE may run in a signal handler whose
** sa_mask does not have SIGSEGV and SIGBUS, after ljp_saferead_enter() has
** returned true. Outside of handlers, the calling thread must not block those
** two signals.
*/
#ifndef LJP_SAFEREAD_H
#define LJP_SAFEREAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/sigsafe.h"
#include "src/base/status.h"

/* The end of the zero page and of the lower canonical half. Addresses outside
** are refused without a load. */
#define LJP_SAFEREAD_LOWEST 4096u
#define LJP_SAFEREAD_HIGHEST (UINT64_C(1) << 47)

struct ljp_safe_word {
  uint64_t value; /* 0 if not ok. */
  uint64_t ok;
};

/* The labelled load. Use ljp_safe_load(). */
LJP_SIGSAFE struct ljp_safe_word ljp_saferead_word(const void *address);

/* May a word be read at this address? It must be aligned, canonical, and not in
** the zero page. */
static inline bool ljp_safe_address(uint64_t address)
{
  return !(address & 7) && address - LJP_SAFEREAD_LOWEST <
                               LJP_SAFEREAD_HIGHEST - LJP_SAFEREAD_LOWEST;
}

/* Reads one aligned word. False: it cannot be read, and *out is unchanged. */
LJP_SIGSAFE static inline bool ljp_safe_load(const void *address, uint64_t *out)
{
  if (LJP_UNLIKELY(!ljp_safe_address((uint64_t)(uintptr_t)address)))
    return false;
  struct ljp_safe_word word = ljp_saferead_word(address);
  if (LJP_UNLIKELY(!word.ok))
    return false;
  *out = word.value;
  return true;
}

/* Copies size bytes from any address, aligned or not. Returns the number of
** bytes before the first that cannot be read. */
LJP_SIGSAFE size_t ljp_safe_copy(void *to, const void *from, size_t size);

/* Compares words of memory, aligned or not, with what they were, in one tight
** loop. Returns the number of words before the first that differs or cannot be
** read. Each address must have been read before by ljp_safe_load(). */
struct ljp_memo_read;
LJP_SIGSAFE uint32_t ljp_saferead_equal(const struct ljp_memo_read *reads,
                                        uint32_t count);

/* The same, if count is a multiple of four. Returns count, or less if a word
** differs. */
LJP_SIGSAFE uint32_t ljp_saferead_same(const struct ljp_memo_read *reads,
                                       uint32_t count);

/* A signal handler that is going to read calls this once at its start.
** interrupted_mask is &ucontext->uc_sigmask. A synchronous fault is fatal while
** its signal is blocked, so if the interrupted code blocks one of the two, it
** is unblocked until the handler returns and the kernel restores the host's
** mask. False: do not read. Either nothing is installed, or such a signal is
** pending and would reach the host at a moment that the host has excluded. */
LJP_SIGSAFE bool ljp_saferead_enter(const void *interrupted_mask);

/* Installs the fault handler. Calls nest; any thread may call. */
enum ljp_status ljp_saferead_install(void);

/* Undoes one install. The last call restores the previous handlers where ours
** is still the current one. Where the host has installed its own handler since,
** ours stays in the host's chain and passes everything on, so the code must
** stay loaded. */
void ljp_saferead_remove(void);

/* True if the fault handlers are current. If the host has replaced one,
** installs ours on top of it. The writer thread calls this in each round. */
bool ljp_saferead_check(void);

/* Whether ljp_saferead_check() would find a handler replaced. */
bool ljp_saferead_covered(void);

/* fork() holds the lock of the functions above: otherwise a child might inherit
** the lock from a thread that it does not have. */
void ljp_saferead_hold(void);
void ljp_saferead_unhold(void);
/* Frees the lock in a copy by a raw clone(), where no fork handler ran. */
void ljp_saferead_renew(void);

#endif
