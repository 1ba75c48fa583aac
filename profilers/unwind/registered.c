/*
** Frame information of a program without shared libraries (gcc -static). The
** linker gives such a program no .eh_frame_hdr. The program tells libgcc where
** its .eh_frame is when it starts, so libgcc can be asked for the FDE of a
** function of ours, which is in the program, too. The FDE leads to its CIE.
** Linkers merge equal CIEs into the first one, so the CIE of a plain C function
** is near the beginning of .eh_frame: only entries of the start files can come
** before it. Code whose entries are not found counts as unknown.
**
** libgcc takes a lock, which a child of fork() may find taken. Each thrown
** error takes it, too; here it is taken once for each session, by the thread
** that starts the session.
** Safety: writer's side.
*/
#include "profilers/unwind/cfi.h"
#include "profilers/unwind/writer.h"
#include "src/base/saferead.h"

struct registered_bases {
  void *text, *data, *function;
};

/* libgcc's interface for unwinders. */
const void *_Unwind_Find_FDE(void *pc, struct registered_bases *bases);

/* Do whole entries, the first of them a CIE, fill these bytes? */
static bool registered_is_chain(const uint8_t *bytes, size_t size, uint64_t at)
{
  struct ljp_cfi_span span = {bytes, size, at};
  struct ljp_cfi_machine scratch;
  struct ljp_cfi_cie cie;
  uint64_t length, cie_at;
  if (!ljp_cfi_head(&span, &length, &cie_at) || length > size ||
      !ljp_cfi_read_cie(&cie, span, &scratch))
    return false;
  for (size_t done = 0; done < size; done += (size_t)length) {
    span = (struct ljp_cfi_span){bytes + done, size - done, at + done};
    if (!ljp_cfi_head(&span, &length, &cie_at) || length > span.size ||
        (cie_at && (cie_at < at || cie_at >= at + done)))
      return false;
  }
  return true;
}

/* The first entry of the start files, whose last one ends at this address. */
static uint64_t registered_first(uint64_t end, uint64_t lo)
{
  enum { LONGEST = 512, WORD = 4 };
  uint8_t bytes[LONGEST];
  uint64_t first = end;
  size_t room = end - lo < LONGEST ? (size_t)(end - lo) : LONGEST;
  if (ljp_safe_copy(bytes, (const void *)(uintptr_t)(end - room), room) != room)
    return end;
  for (size_t size = WORD; size <= room; size += WORD)
    if (registered_is_chain(bytes + room - size, size, end - size))
      first = end - size;
  return first;
}

uint64_t ljp_unwind_registered_frames(const struct ljp_unwind_module *module)
{
  enum { HEAD_BYTES = 16 };
  struct registered_bases bases;
  uint8_t bytes[HEAD_BYTES];
  uint64_t length, cie, own = (uintptr_t)&ljp_unwind_registered_frames;
  uint64_t fde = (uintptr_t)_Unwind_Find_FDE((void *)(uintptr_t)own, &bases);
  if (!fde || ljp_safe_copy(bytes, (const void *)(uintptr_t)fde,
                            sizeof bytes) != sizeof bytes)
    return 0;
  struct ljp_cfi_span span = {bytes, sizeof bytes, fde};
  if (!ljp_cfi_head(&span, &length, &cie) || cie < module->lo || cie >= fde)
    return 0;
  return registered_first(cie, module->lo);
}
