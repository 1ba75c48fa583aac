/*
** The number of a call of the kernel that has been interrupted, by the code before
** it and the registers: the kernel has put the result into rax, but the code says
** where the number came from. For our signals' handlers, and for a client that has
** stopped a thread of another process.
*/
#ifndef LJP_CALL_NUMBER_H
#define LJP_CALL_NUMBER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "src/base/sigsafe.h"

/* The thread as it was interrupted. */
struct ljp_call_place {
  uint64_t reg[16]; /* in the order in which instructions number them: rax, rcx,
                    ** rdx, rbx, rsp, rbp, rsi, rdi, r8 ... */
  uint64_t rip;
  bool (*read)(const void *ctx, void *out, uint64_t at, size_t bytes);
  const void *ctx;
};

enum { LJP_CALL_CODE = 32 /* bytes that are looked at, before an address */ };

enum { LJP_CALL_RAX = 0, LJP_CALL_RSP = 4, LJP_CALL_RSI = 6 };

/* The 64-bit value at this distance above the interrupted rsp. */
LJP_SIGSAFE static inline bool ljp_call_on_stack(const struct ljp_call_place *p,
                                                 uint64_t distance,
                                                 uint64_t *value)
{
  return p->read(p->ctx, value, p->reg[LJP_CALL_RSP] + distance, sizeof *value);
}

/* A register that functions and calls of the kernel leave as it is. */
LJP_SIGSAFE static inline bool ljp_call_kept(const struct ljp_call_place *p,
                                             uint32_t reg, uint64_t *number)
{
  enum { KEPT = 1 << 3 | 1 << 5 | 1 << 12 | 1 << 13 | 1 << 14 | 1 << 15 };
  if (!(KEPT >> reg & 1))
    return false;
  *number = (uint32_t)p->reg[reg];
  return true;
}

/* The value that `wanted` has got by the code before `end`: moves between
** registers, loads from the stack, and pushes. above: the bytes from the
** interrupted rsp to what was rsp at `end`. */
LJP_SIGSAFE static inline bool ljp_call_moved(const struct ljp_call_place *p,
                                              const uint8_t *code, int end,
                                              uint32_t wanted, uint64_t above,
                                              uint64_t *number)
{
  enum { PUSH = 2, MOVE = 3, LOAD = 5 };
  for (int at = end; at >= LOAD;) {
    const uint8_t *load = code + at - LOAD, *move = code + at - MOVE;
    if ((load[0] & 0xfb) == 0x48 && load[1] == 0x8b &&
        (load[2] & 0xc7) == 0x44 && load[3] == 0x24) {
      if ((load[2] >> 3 & 7) + 2u * (load[0] & 4) == wanted)
        return ljp_call_on_stack(p, load[4] + above, number);
      at -= LOAD;
    } else if ((move[0] & 0xf8) == 0x48 && move[1] == 0x89 &&
               (move[2] & 0xc0) == 0xc0) {
      if ((move[2] & 7) + 8u * (move[0] & 1) == wanted)
        return ljp_call_kept(p, (move[2] >> 3 & 7) + 2u * (move[0] & 4),
                             number);
      at -= MOVE;
    } else if (code[at - 2] == 0x41 && (code[at - 1] & 0xf8) == 0x50) {
      above += sizeof(uint64_t);
      at -= PUSH;
    } else {
      return false;
    }
  }
  return false;
}

/* glibc from 2.41 on, and musl, make waiting calls in one function, which gets
** the number as its second argument and loses it. code: the end of that
** function, up to the call. The caller has loaded the argument shortly before it
** called: glibc from its own stack arguments, musl from a register. */
LJP_SIGSAFE static inline bool
ljp_call_number_41(const struct ljp_call_place *p, const uint8_t *code,
                   uint64_t *number)
{
  /* r11 = rdi, rax = rsi, rdi = rdx, rsi = rcx, rdx = r8, r10 = r9,
  ** r8 = rsp[1], r9 = rsp[2], rsp[1] = r11, syscall */
  static const uint8_t body[LJP_CALL_CODE + 3] = {
      0x49, 0x89, 0xfb, 0x48, 0x89, 0xf0, 0x48, 0x89, 0xd7, 0x48, 0x89, 0xce,
      0x4c, 0x89, 0xc2, 0x4d, 0x89, 0xca, 0x4c, 0x8b, 0x44, 0x24, 0x08, 0x4c,
      0x8b, 0x4c, 0x24, 0x10, 0x4c, 0x89, 0x5c, 0x24, 0x08, 0x0f, 0x05};
  enum { CALL = 5 };
  uint64_t back;
  uint8_t before[LJP_CALL_CODE] = {0};
  return memcmp(code, body + sizeof body - LJP_CALL_CODE, LJP_CALL_CODE) == 0 &&
         ljp_call_on_stack(p, 0, &back) &&
         p->read(p->ctx, before, back - LJP_CALL_CODE, LJP_CALL_CODE) &&
         before[LJP_CALL_CODE - CALL] == 0xe8 &&
         ljp_call_moved(p, before, LJP_CALL_CODE - CALL, LJP_CALL_RSI,
                        sizeof back, number);
}

/* Reads the code before rip. False: no call ends there. */
LJP_SIGSAFE static inline bool ljp_call_code(const struct ljp_call_place *p,
                                             uint8_t code[LJP_CALL_CODE])
{
  return p->read(p->ctx, code, p->rip - LJP_CALL_CODE, LJP_CALL_CODE) &&
         code[LJP_CALL_CODE - 2] == 0x0f && code[LJP_CALL_CODE - 1] == 0x05;
}

/* mov eax, number (or another register, which is unchanged), perhaps with a load
** of edi from the stack behind it; or mov rax, [rsp + distance]; or moves of the
** arguments stand behind it, too. False: the code is different. */
LJP_SIGSAFE static inline bool
ljp_call_number(const struct ljp_call_place *p,
                const uint8_t code[LJP_CALL_CODE], uint64_t *number)
{
  enum { CALL = LJP_CALL_CODE - 2, LOAD = CALL - 4 };
  uint32_t value, at = CALL;
  if (code[LOAD] == 0x8b && code[LOAD + 1] == 0x7c && code[LOAD + 2] == 0x24)
    at = LOAD;
  if (code[at - 5] == 0xb8) {
    memcpy(&value, code + at - 4, sizeof value);
    *number = value;
    return true;
  }
  if (code[CALL - 5] == 0x48 && code[CALL - 4] == 0x8b &&
      code[CALL - 3] == 0x44 && code[CALL - 2] == 0x24)
    return ljp_call_on_stack(p, code[CALL - 1], number);
  /* mov eax, register */
  uint32_t modrm = code[at - 1], reg = modrm >> 3 & 7;
  bool high = code[at - 3] == 0x44;
  if (code[at - 2] != 0x89 || (modrm & 0xc7) != 0xc0)
    return ljp_call_moved(p, code, CALL, LJP_CALL_RAX, 0, number) ||
           ljp_call_number_41(p, code, number);
  /* The kernel's call changes rcx and r11. */
  if (high ? reg == 3 : reg == 0 || reg == 1)
    return false;
  *number = (uint32_t)p->reg[high ? 8 + reg : reg];
  return true;
}

#endif
