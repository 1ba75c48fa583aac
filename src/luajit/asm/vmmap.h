/*
** The build-time map of the assembler VM, as vmmap.lua derived it: where BASE
** is and in which mode the frame at BASE is, for every instruction. The generated
** vmmap.inc has the LJP_VM_* modes with their meaning and, for interpreter.c only,
** which defines LJP_VMMAP_TABLE, the table.
*/
#ifndef LJP_VMMAP_H
#define LJP_VMMAP_H

#include <stdint.h>

#include "vmmap.inc"

/* A word of the map: mode in bits 0-4, places of BASE in bits 5-7, and in
** bits 8-15 how many words rsp lies below the C frame (or, in mode HOST, how
** many words the routine has pushed). */
#define LJP_VMMAP_MODE(word) ((word)&31u)
#define LJP_VMMAP_RDX(word) ((word) >> 5 & 1u)
#define LJP_VMMAP_RBP(word) ((word) >> 6 & 1u)
#define LJP_VMMAP_LBASE(word) ((word) >> 7 & 1u)
#define LJP_VMMAP_BYTES(word) (((word) >> 8 & 255u) * 8u)

#endif
