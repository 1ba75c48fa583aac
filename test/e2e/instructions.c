/*
** Compares ljp_insn_read() with the lines of objdump -d -w on standard input.
*/
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profilers/unwind/instruction.h"

enum { SHOWN = 10 };

static unsigned long compared, unknown, wrong;

/* The bytes of a line, which stand between two tabs. */
static unsigned line_bytes(const char *from, uint8_t code[LJP_INSN_BYTES])
{
  unsigned count = 0, byte;
  const char *end = strchr(from, '\t');
  while (end && count < LJP_INSN_BYTES && from < end && *from != ' ' &&
         sscanf(from, "%2x", &byte) == 1) {
    code[count++] = (uint8_t)byte;
    from += 3;
  }
  return count;
}

/* "call 1234 <name>" */
static uint64_t line_target(const char *line)
{
  const char *name = strrchr(line, '<');
  if (!name || name - line < 2)
    return 0;
  const char *at = name - 1;
  while (at > line && at[-1] != ' ')
    at--;
  return strtoul(at, NULL, 16);
}

static void check_line(const char *line)
{
  uint8_t code[LJP_INSN_BYTES] = {0};
  struct ljp_insn insn;
  const char *colon = strchr(line, ':');
  if (!colon || colon[1] != '\t')
    return;
  unsigned size = line_bytes(colon + 2, code);
  /* 9b is an instruction, which objdump shows as a part of the next one. */
  if (!size || code[0] == 0x9b)
    return;
  ljp_insn_read(&insn, code, strtoul(line, NULL, 16));
  bool leads = insn.target &&
               (insn.kind == LJP_INSN_CALL || insn.kind == LJP_INSN_JUMP ||
                insn.kind == LJP_INSN_BRANCH);
  compared++;
  if (!insn.size)
    unknown++;
  else if ((insn.size != size || (leads && insn.target != line_target(line))) &&
           wrong++ < SHOWN)
    printf("%u bytes, to %lx: %s", insn.size, (unsigned long)insn.target, line);
}

int main(void)
{
  static char line[4096];
  while (fgets(line, sizeof line, stdin))
    check_line(line);
  printf("%lu instructions, %lu wrong, %lu not known\n", compared, wrong,
         unknown);
  return compared < 1000 || wrong || unknown * 1000 > compared;
}
