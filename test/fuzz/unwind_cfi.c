/* Fuzz target: the input is an object that begins with its .eh_frame_hdr. Its
** CFI is indexed, searched, interpreted, applied and compiled. The compiled
** rows must be in order. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "profilers/unwind/step.h"
#include "profilers/unwind/table.h"
#include "src/base/saferead.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The parsers alone, on a buffer of exactly the input's size. */
static void parse(const uint8_t *data, size_t size)
{
  static struct ljp_cfi_cie cie;
  static struct ljp_cfi_fde fde;
  static struct ljp_cfi_machine machine;
  uint8_t *bytes = malloc(size + 1);
  size_t half = size ? data[0] % size : 0;
  memcpy(bytes, data, size);
  struct ljp_cfi_span head = {bytes, half, 0x10000};
  struct ljp_cfi_span body = {bytes + half, size - half, 0x10000 + half};
  if (ljp_cfi_read_cie(&cie, head, &machine) &&
      ljp_cfi_read_fde(&fde, &cie, body)) {
    ljp_cfi_start(&machine, &cie, &fde);
    for (int i = 0;
         i < 1000 && ljp_cfi_next(&machine, &fde) && machine.next < fde.end;
         i++)
      ;
  }
  uint64_t out;
  struct ljp_regs regs = {.known = 0xffff};
  ljp_cfi_evaluate(&body, 0, &regs, size & 1, size, &out);
  free(bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  enum { ROOM = 1 << 14 };
  static uint8_t memory[ROOM] __attribute__((aligned(4096)));
  static struct ljp_cfi_found found;
  static bool installed;
  if (!installed) /* CFI may point anywhere */
    installed = ljp_saferead_install() == LJP_OK && ljp_saferead_check();
  if (size > ROOM / 2)
    return 0;
  parse(data, size);
  memset(memory, 0, ROOM);
  memcpy(memory, data, size);
  uint64_t lo = (uintptr_t)memory;
  struct ljp_unwind_object *object =
      ljp_unwind_object_new(lo, lo + ROOM, lo, 0);
  if (object)
    ljp_unwind_object_read(object);
  if (!object)
    return 0;
  for (uint64_t pc = lo; pc < lo + ROOM; pc += 251)
    if (!ljp_unwind_find_cfi(object, pc, &found)) {
      struct ljp_regs regs = {.known = LJP_REGS_ALL, .exact = true};
      for (int i = 0; i < LJP_REGS; i++)
        regs.r[i] = lo + ROOM / 2 + 8 * (uint64_t)i;
      ljp_unwind_apply_cfi(&found.machine.row, &found.cie, &found.fde.span,
                           &regs);
    }
  struct ljp_unwind_table *table = NULL;
  struct ljp_unwind_job *job = ljp_unwind_job_new(object);
  if (job && !ljp_unwind_job_run(job, UINT64_MAX, NULL, &table))
    abort();
  for (uint32_t i = 1; table && i < table->rows; i++)
    if (table->pc[i - 1] >= table->pc[i] || table->rule[i] >= table->rules_used)
      abort();
  ljp_unwind_table_free(table);
  ljp_unwind_object_free(object);
  return 0;
}
