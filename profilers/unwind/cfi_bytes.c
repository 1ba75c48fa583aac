/*
** Encoded pointers of call frame information; see cfi_bytes.h.
** Safety: LJP_SIGSAFE throughout.
*/
#include "profilers/unwind/cfi_bytes.h"
#include "profilers/unwind/dwarf.h"

uint64_t ljp_bytes_pointer(struct ljp_bytes *in, uint8_t encoding,
                           uint64_t address, uint64_t data)
{
  uint64_t value = 0;
  switch (encoding & DW_EH_PE_format_mask) {
  case DW_EH_PE_absptr:
  case DW_EH_PE_udata8:
  case DW_EH_PE_sdata8:
    value = ljp_bytes_fixed(in, 8);
    break;
  case DW_EH_PE_uleb128:
    value = ljp_bytes_uleb(in);
    break;
  case DW_EH_PE_udata2:
    value = ljp_bytes_fixed(in, 2);
    break;
  case DW_EH_PE_udata4:
    value = ljp_bytes_fixed(in, 4);
    break;
  case DW_EH_PE_sleb128:
    value = (uint64_t)ljp_bytes_sleb(in);
    break;
  case DW_EH_PE_sdata2:
    value = (uint64_t)(int64_t)(int16_t)ljp_bytes_fixed(in, 2);
    break;
  case DW_EH_PE_sdata4:
    value = (uint64_t)(int64_t)(int32_t)ljp_bytes_fixed(in, 4);
    break;
  default:
    in->bad = true;
  }
  switch (encoding & DW_EH_PE_base_mask) {
  case 0: /* absolute */
    return value;
  case DW_EH_PE_pcrel:
    return value + address;
  case DW_EH_PE_datarel:
    return value + data;
  }
  in->bad = true;
  return 0;
}
