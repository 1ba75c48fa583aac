/*
** The build-time map of the assembler VM, as vmmap.lua derived it: where BASE
** is and in which mode the frame at BASE is, for every instruction. The
** generated vmmap.inc defines the LJP_VM_* modes and explains them. It also
** defines the table, but only for interpreter.c, which defines LJP_VMMAP_TABLE.
*/
#ifndef LJP_VMMAP_H
#define LJP_VMMAP_H

#include <stdint.h>

#include "vmmap.inc"

/* A word of the map. Bits 0-4: the mode. Bits 5-7: the places of BASE. Bits
** 8-14: how many words rsp lies below the C frame (or, in mode HOST, how many
** words the routine has pushed). Bit 15: is this a builtin's own code? */
#define LJP_VMMAP_MODE(word) ((word)&31u)
#define LJP_VMMAP_RDX(word) ((word) >> 5 & 1u)
#define LJP_VMMAP_RBP(word) ((word) >> 6 & 1u)
#define LJP_VMMAP_LBASE(word) ((word) >> 7 & 1u)
#define LJP_VMMAP_BYTES(word) (((word) >> 8 & 127u) * 8u)
#define LJP_VMMAP_BUILTIN(word) ((word) >> 15 & 1u)

#endif
