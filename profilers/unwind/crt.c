/*
** Functions of the C runtime's start files (crti.o, crtbegin.o): each object
** has a few, they run when the object is loaded and unloaded, and the compiler
** gives them no CFI. In programs without shared libraries, the entries of the
** linkage table have no CFI either: jumps to functions that are chosen when the
** program starts. All of these are recognised by all their bytes, from the
** first to the last, so that nothing has to be guessed.
** Safety: LJP_SIGSAFE throughout.
*/
#include <string.h>

#include "profilers/unwind/step.h"
#include "src/base/memo.h"
#include "src/base/saferead.h"

enum { CRT_LONGEST = 96 };

/* Bytes in hexadecimal; ?? is any byte. A | and a letter say what lies between
** rsp and the return address from there on: 0 nothing, 1 a word, b the caller's
** rbp. */
static const char *const crt_functions[] = {
    /* _init, _fini */
    "|04883ec08|1488b05????????4885c07402ffd04883c408|0c3",
    "|0f30f1efa4883ec08|1488b05????????4885c07402ffd04883c408|0c3",
    "|04883ec08|148c7c0????????4885c07402ffd04883c408|0c3",
    "|04883ec08|14883c408|0c3",
    "|0f30f1efa4883ec08|14883c408|0c3",
    /* deregister_tm_clones, register_tm_clones, frame_dummy */
    "|0488d3d????????488d05????????4839f87415488b05????????4885c07409ffe0"
    "0f1f8000000000c3",
    "|0488d3d????????488d35????????4829fe4889f048c1ee3f48c1f8034801c648d1fe"
    "7414488b05????????4885c07408ffe0660f1f440000c3",
    "|0f30f1efae9????????",
    /* __do_global_dtors_aux */
    "|0f30f1efa803d????????00752b55|b48833d????????004889e5740c488b3d????????"
    "e8????????e8????????c605????????015d|0c30f1f00c3",
    /* The same in programs that may not be moved, */
    "|0b8????????483d????????7413b8????????4885c07409bf????????ffe06690c3",
    "|0be????????4881ee????????4889f048c1ee3f48c1f8034801c648d1fe7411"
    "b8????????4885c07407bf????????ffe0c3",
    "|0f30f1efa803d????????00751355|b4889e5e8????????c605????????015d|0c390c3",
    /* in those without shared libraries, whose tables for unwinding they register
    ** as well, */
    "|0f30f1efa803d????????00752b55|b4889e5e8????????b8????????4885c0740a"
    "bf????????e8????????c605????????015d|0c30f1f440000c3",
    "|0f30f1efab8????????4885c0742255|bbe????????bf????????4889e5e8????????5d"
    "|0e9????????660f1f840000000000e9????????",
    /* and in these if they may be moved. */
    "|0488d3d????????488d05????????4839f8741548c7c0????????4885c07409ffe0"
    "0f1f8000000000c3",
    "|0488d3d????????488d35????????4829fe4889f048c1ee3f48c1f8034801c648d1fe"
    "741448c7c0????????4885c07408ffe0660f1f440000c3",
    /* An entry of the linkage table, in programs without shared libraries. */
    "|0ff25????????6690",
    "|0f30f1efaff25????????660f1f440000",
};

static unsigned crt_digit(char c)
{
  return c <= '9' ? (unsigned)(c - '0') : (unsigned)(c - 'a' + 10);
}

/* Do the bytes begin with this function? *state is the letter in effect at its
** byte number `offset`. False if the function is shorter than that. */
static bool crt_matches(const char *function, const uint8_t *bytes, size_t size,
                        size_t offset, char *state)
{
  char now = '0';
  size_t at = 0;
  *state = 0;
  for (const char *p = function; *p; p += 2) {
    if (*p == '|') {
      now = p[1];
      continue;
    }
    if (at >= size ||
        (*p != '?' && bytes[at] != (crt_digit(p[0]) << 4 | crt_digit(p[1]))))
      return false;
    if (at == offset)
      *state = now;
    at++;
  }
  return *state != 0;
}

/* The letter in effect at pc; 0 if pc is in none of the functions. */
static char crt_find(uint64_t pc)
{
  uint8_t bytes[2 * CRT_LONGEST];
  size_t before = CRT_LONGEST, size;
  char state;
  /* If the bytes before pc are not mapped, begin with pc's page. */
  if (ljp_safe_copy(bytes, (const void *)(uintptr_t)(pc - before), 1) != 1)
    before = pc & 4095;
  if (before > CRT_LONGEST)
    before = CRT_LONGEST;
  size = ljp_safe_copy(bytes, (const void *)(uintptr_t)(pc - before),
                       before + CRT_LONGEST);
  for (size_t offset = 0; offset <= before; offset++)
    for (size_t i = 0; i < sizeof crt_functions / sizeof *crt_functions; i++)
      if (size > before - offset &&
          crt_matches(crt_functions[i], bytes + (before - offset),
                      size - (before - offset), offset, &state))
        return state;
  return 0;
}

static bool crt_leave(char state, struct ljp_regs *regs)
{
  uint64_t cfa = regs->r[LJP_RSP] + (state == '0' ? 8 : 16), rip, rbp = 0;
  if (!ljp_unwind_cfa_ok(cfa, regs->r[LJP_RSP]) ||
      !ljp_safe_load((const void *)(uintptr_t)(cfa - 8), &rip) || !rip ||
      (state == 'b' &&
       !ljp_safe_load((const void *)(uintptr_t)(cfa - 16), &rbp)))
    return false;
  ljp_memo_note(regs->notes, cfa - 8, rip);
  if (state == 'b') {
    ljp_memo_restore(regs->notes, LJP_RBP, cfa - 16, rbp);
    regs->r[LJP_RBP] = rbp;
  }
  regs->r[LJP_RIP] = rip;
  regs->r[LJP_RSP] = cfa;
  regs->known = (regs->known & LJP_REGS_CALLEE_SAVED) | 1u << LJP_RIP |
                1u << LJP_RSP | (uint32_t)(state == 'b') << LJP_RBP;
  regs->exact = false;
  return true;
}

bool ljp_unwind_step_crt(uint64_t pc, struct ljp_regs *regs)
{
  char state = crt_find(pc);
  return state && crt_leave(state, regs);
}

uint64_t ljp_unwind_called(uint64_t pc, const struct ljp_regs *regs)
{
  enum { CALL = 0xe8, CALL_BYTES = 5, LONGEST = 1024 };
  uint8_t code[CALL_BYTES];
  uint64_t back;
  int32_t away;
  if (!regs->exact ||
      !ljp_safe_load((const void *)(uintptr_t)regs->r[LJP_RSP], &back) ||
      ljp_safe_copy(code, (const void *)(uintptr_t)(back - CALL_BYTES),
                    CALL_BYTES) != CALL_BYTES ||
      code[0] != CALL)
    return 0;
  memcpy(&away, code + 1, sizeof away);
  uint64_t start = back + (uint64_t)(int64_t)away;
  return start <= pc && pc - start < LONGEST ? start : 0;
}

bool ljp_unwind_step_called(struct ljp_regs *regs)
{
  return crt_leave('0', regs);
}
