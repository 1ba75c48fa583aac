/*
** Fault-safe reads of memory that may not be there: a stack that is being
** unwound, a value that an interrupted VM may have left half written.
**
** A few labelled load instructions do all the reading. A SIGSEGV or SIGBUS
** whose program counter is one of the labels is ours and becomes "unknown"; any
** other goes on to whoever handled the signal before us, as if we were not here.
** The loads are assembly, so sanitizers do not see them, and need not.
**
** Safety: what is marked LJP_SIGSAFE may run in a signal handler whose
** sa_mask leaves SIGSEGV and SIGBUS alone, after ljp_saferead_enter() agreed.
** Elsewhere the calling thread must not block those two signals.
*/
#ifndef LJP_SAFEREAD_H
#define LJP_SAFEREAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/sigsafe.h"
#include "src/base/status.h"

/* The zero page and what the kernel never hands out below it; the end of the
** lower canonical half. Addresses outside are refused without a load. */
#define LJP_SAFEREAD_LOWEST 4096u
#define LJP_SAFEREAD_HIGHEST (UINT64_C(1) << 47)

struct ljp_safe_word {
  uint64_t value; /* 0 if not ok */
  uint64_t ok;
};

/* The labelled load. Use ljp_safe_load(). */
LJP_SIGSAFE struct ljp_safe_word ljp_saferead_word(const void *address);

/* May a word at this address be tried? Aligned, canonical, not page zero. */
static inline bool ljp_safe_address(uint64_t address)
{
  return !(address & 7) && address - LJP_SAFEREAD_LOWEST <
                               LJP_SAFEREAD_HIGHEST - LJP_SAFEREAD_LOWEST;
}

/* Reads one aligned word. False, and *out untouched, if it cannot be read. */
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

/* Copies size bytes from anywhere, aligned or not; returns how many came
** before the first that cannot be read. */
LJP_SIGSAFE size_t ljp_safe_copy(void *to, const void *from, size_t size);

/* Are these words of memory still what they were? One tight loop. Returns how
** many are equal before the first that is not, or cannot be read. Addresses
** must have been read before, by ljp_safe_load(). */
struct ljp_memo_read;
LJP_SIGSAFE uint32_t ljp_saferead_equal(const struct ljp_memo_read *reads,
                                        uint32_t count);

/* The same of eight bytes at any address, the low bits included; count must be a
** multiple of four. Returns count, or less if one is not equal. */
LJP_SIGSAFE uint32_t ljp_saferead_same(const struct ljp_memo_read *reads,
                                       uint32_t count);

/* To be asked once at the start of a signal handler that is going to read.
** interrupted_mask is &ucontext->uc_sigmask. A synchronous fault is fatal
** while its signal is blocked; if the interrupted code blocks one of the two,
** it is unblocked until the handler returns (the kernel then puts the host's
** mask back). False: do not read (not installed, or such a signal is pending
** and would hit the host at a moment it did not choose). */
LJP_SIGSAFE bool ljp_saferead_enter(const void *interrupted_mask);

/* Install the fault handler; calls nest and are serialised. */
enum ljp_status ljp_saferead_install(void);

/* Undo one install. The last one puts the previous handlers back where ours
** is still the current one; where the host has put its own on top, ours stays
** in that chain and passes everything on, so the code must stay loaded. */
void ljp_saferead_remove(void);

/* True if the fault handlers are current. If the host replaced one since,
** goes on top of it. For the writer thread, at each round. */
bool ljp_saferead_check(void);

#endif
