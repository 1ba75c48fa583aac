/*
** The reading side of fault-safe reads: the loads, the copies built on them,
** and the check of the interrupted signal mask.
** Safety: everything here is LJP_SIGSAFE; the object has no undefined symbol
** but memcpy. It makes system calls only if the host blocks SIGSEGV or SIGBUS.
*/
#include "src/base/saferead.h"
#include "src/base/memo.h"
#include "src/base/saferead_priv.h"

#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/syscall.h>

_Atomic bool ljp_saferead_ready;

#if defined(__x86_64__)

/* struct ljp_safe_word is returned in rax:rdx, so the failure path to which the
** fault handler jumps only sets two registers. */
__asm__(".pushsection .text\n"
        ".balign 16\n"
        ".globl ljp_saferead_word\n"
        ".hidden ljp_saferead_word\n"
        ".type ljp_saferead_word, @function\n"
        "ljp_saferead_word:\n"
        ".cfi_startproc\n"
        ".globl ljp_saferead_at\n"
        ".hidden ljp_saferead_at\n"
        "ljp_saferead_at:\n"
        "  movq (%rdi), %rax\n"
        "  movl $1, %edx\n"
        "  ret\n"
        ".globl ljp_saferead_failed\n"
        ".hidden ljp_saferead_failed\n"
        "ljp_saferead_failed:\n"
        "  xorl %eax, %eax\n"
        "  xorl %edx, %edx\n"
        "  ret\n"
        ".cfi_endproc\n"
        ".size ljp_saferead_word, . - ljp_saferead_word\n"
        ".popsection\n");

/* In: rdi, pairs of address and value; esi, the number of pairs. Out: eax, the
** number of equal words; of ljp_saferead_same() (edx = 1), the number of words
** in groups of four that are all equal. The loop of four is within one cache
** line. */
_Static_assert(sizeof(struct ljp_memo_read) == 16 &&
                   offsetof(struct ljp_memo_read, value) == 8,
               "the offsets below");
__asm__(".pushsection .text\n"
        ".balign 64\n"
        ".globl ljp_saferead_same\n"
        ".hidden ljp_saferead_same\n"
        ".type ljp_saferead_same, @function\n"
        "ljp_saferead_same:\n"
        ".cfi_startproc\n"
        "  movl $1, %edx\n"
        "  jmp 8f\n"
        ".cfi_endproc\n"
        ".size ljp_saferead_same, . - ljp_saferead_same\n"
        ".globl ljp_saferead_equal\n"
        ".hidden ljp_saferead_equal\n"
        ".type ljp_saferead_equal, @function\n"
        "ljp_saferead_equal:\n"
        ".cfi_startproc\n"
        "  xorl %edx, %edx\n"
        "8:\n"
        /* Four at a time, while all are equal. rdi: the end of the groups of
        ** four. rcx: the offset from there, negative. */
        "  movl %esi, %eax\n"
        "  andl $-4, %eax\n"
        "  jz 1f\n"
        "  movl %eax, %ecx\n"
        "  shlq $4, %rcx\n"
        "  addq %rcx, %rdi\n"
        "  negq %rcx\n"
        "5:\n"
        "  movq (%rdi,%rcx), %r8\n"
        "  movq 16(%rdi,%rcx), %r9\n"
        "  movq 32(%rdi,%rcx), %r10\n"
        "  movq 48(%rdi,%rcx), %r11\n"
        ".globl ljp_saferead_four_at\n"
        ".hidden ljp_saferead_four_at\n"
        "ljp_saferead_four_at:\n"
        "  movq (%r8), %r8\n"
        "  movq (%r9), %r9\n"
        "  movq (%r10), %r10\n"
        "  movq (%r11), %r11\n"
        ".globl ljp_saferead_four_end\n"
        ".hidden ljp_saferead_four_end\n"
        "ljp_saferead_four_end:\n"
        "  xorq 8(%rdi,%rcx), %r8\n"
        "  xorq 24(%rdi,%rcx), %r9\n"
        "  xorq 40(%rdi,%rcx), %r10\n"
        "  xorq 56(%rdi,%rcx), %r11\n"
        "  orq %r9, %r8\n"
        "  orq %r11, %r10\n"
        "  orq %r10, %r8\n"
        "  jnz 6f\n"
        "  addq $64, %rcx\n"
        "  jnz 5b\n"
        "  jmp 1f\n"
        /* One at a time, to the end: few are left. */
        ".globl ljp_saferead_four_failed\n"
        ".hidden ljp_saferead_four_failed\n"
        "ljp_saferead_four_failed:\n"
        "6:\n"
        "  addq %rcx, %rdi\n"
        "  sarq $4, %rcx\n"
        "  addl %ecx, %eax\n"
        "  testl %edx, %edx\n"
        "  jnz 2f\n"
        "1:\n"
        "  cmpl %esi, %eax\n"
        "  je 2f\n"
        "7:\n"
        "  movq (%rdi), %r8\n"
        ".globl ljp_saferead_equal_at\n"
        ".hidden ljp_saferead_equal_at\n"
        "ljp_saferead_equal_at:\n"
        "  movq (%r8), %rdx\n"
        "  cmpq 8(%rdi), %rdx\n"
        "  jne 2f\n"
        "  addq $16, %rdi\n"
        "  incl %eax\n"
        "  cmpl %esi, %eax\n"
        "  jne 7b\n"
        "2:\n"
        ".globl ljp_saferead_equal_failed\n"
        ".hidden ljp_saferead_equal_failed\n"
        "ljp_saferead_equal_failed:\n"
        "  ret\n"
        ".cfi_endproc\n"
        ".size ljp_saferead_equal, . - ljp_saferead_equal\n"
        ".popsection\n");

/* In: rdi, to; rsi, from; rdx, the number of words. Out: rax, the number of
** words read. */
__asm__(".pushsection .text\n"
        ".balign 16\n"
        ".globl ljp_saferead_words\n"
        ".hidden ljp_saferead_words\n"
        ".type ljp_saferead_words, @function\n"
        "ljp_saferead_words:\n"
        ".cfi_startproc\n"
        "  xorl %eax, %eax\n"
        "  testq %rdx, %rdx\n"
        "  jz 2f\n"
        "1:\n"
        ".globl ljp_saferead_words_at\n"
        ".hidden ljp_saferead_words_at\n"
        "ljp_saferead_words_at:\n"
        "  movq (%rsi,%rax,8), %rcx\n"
        "  movq %rcx, (%rdi,%rax,8)\n"
        "  incq %rax\n"
        "  cmpq %rdx, %rax\n"
        "  jne 1b\n"
        "2:\n"
        ".globl ljp_saferead_words_failed\n"
        ".hidden ljp_saferead_words_failed\n"
        "ljp_saferead_words_failed:\n"
        "  ret\n"
        ".cfi_endproc\n"
        ".size ljp_saferead_words, . - ljp_saferead_words\n"
        ".popsection\n");
LJP_SIGSAFE size_t ljp_saferead_words(char *to, uint64_t from, size_t count)
    __attribute__((visibility("hidden")));

static long kernel_call(long number, long a, const void *b, void *c, long d)
{
  long result;
  register long r10 __asm__("r10") = d;
  __asm__ volatile("syscall"
                   : "=a"(result)
                   : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10)
                   : "rcx", "r11", "memory");
  return result;
}

bool ljp_saferead_enter(const void *interrupted_mask)
{
  const uint64_t faults =
      (UINT64_C(1) << (SIGSEGV - 1)) | (UINT64_C(1) << (SIGBUS - 1));
  uint64_t blocked, pending = 0;
  /* Acquire: pairs with the store after the installation. */
  if (!atomic_load_explicit(&ljp_saferead_ready, memory_order_acquire))
    return false;
  memcpy(&blocked, interrupted_mask, sizeof blocked);
  if (LJP_LIKELY(!(blocked & faults)))
    return true;
  if (kernel_call(SYS_rt_sigpending, (long)&pending, (void *)sizeof pending,
                  NULL, 0) ||
      (pending & faults))
    return false;
  return !kernel_call(SYS_rt_sigprocmask, SIG_UNBLOCK, &faults, NULL,
                      sizeof faults);
}

#else /* Elsewhere there is no labelled load: nothing is readable. */

struct ljp_safe_word ljp_saferead_word(const void *address)
{
  (void)address;
  return (struct ljp_safe_word){0, 0};
}

uint32_t ljp_saferead_equal(const struct ljp_memo_read *reads, uint32_t count)
{
  (void)reads;
  (void)count;
  return 0;
}

uint32_t ljp_saferead_same(const struct ljp_memo_read *reads, uint32_t count)
{
  return ljp_saferead_equal(reads, count);
}

static size_t ljp_saferead_words(char *to, uint64_t from, size_t count)
{
  (void)to;
  (void)from;
  (void)count;
  return 0;
}

bool ljp_saferead_enter(const void *interrupted_mask)
{
  (void)interrupted_mask;
  return false;
}

#endif

/* Stores less than a word, beginning with its low byte. */
LJP_SIGSAFE static void saferead_put_bytes(char *out, uint64_t word,
                                           size_t size)
{
  if (size & 4) {
    memcpy(out, &word, 4);
    out += 4;
    word >>= 32;
  }
  if (size & 2) {
    memcpy(out, &word, 2);
    out += 2;
    word >>= 16;
  }
  if (size & 1)
    *out = (char)word;
}

size_t ljp_safe_copy(void *to, const void *from, size_t size)
{
  char *out = to;
  uint64_t at = (uint64_t)(uintptr_t)from, word;
  size_t done = 0;
  /* Reads whole aligned words only. Such a word never crosses a page, so its
  ** other bytes are readable exactly if the requested ones are. */
  unsigned skip = at & 7;
  if (skip) {
    done = 8 - skip < size ? 8 - skip : size;
    if (!ljp_safe_load((const void *)(uintptr_t)(at - skip), &word))
      return 0;
    saferead_put_bytes(out, word >> 8 * skip, done);
  }
  size_t words = (size - done) / 8;
  if (words) {
    at += done;
    if (!ljp_safe_address(at))
      return done;
    /* Stay below the highest address that may be read. */
    size_t most = (LJP_SAFEREAD_HIGHEST - at) / 8;
    size_t count =
        ljp_saferead_words(out + done, at, words < most ? words : most);
    done += 8 * count;
    if (count < words)
      return done;
  }
  if (done < size) {
    at = (uint64_t)(uintptr_t)from + done;
    if (!ljp_safe_load((const void *)(uintptr_t)at, &word))
      return done;
    saferead_put_bytes(out + done, word, size - done);
  }
  return size;
}
