/*
** Entries of call frame information: the head of an entry, a CIE, an FDE.
** Nothing is assumed of the input (see cfi.h).
** Safety: LJP_SIGSAFE throughout.
*/
#include <string.h>

#include "profilers/unwind/cfi.h"
#include "profilers/unwind/dwarf.h"

static uint64_t cfi_cursor_address(const struct ljp_cfi_span *span,
                                   const struct ljp_bytes *in)
{
  return span->address + (uint64_t)(in->at - span->bytes);
}

bool ljp_cfi_head(const struct ljp_cfi_span *span, uint64_t *size,
                  uint64_t *cie)
{
  struct ljp_bytes in = {span->bytes, span->bytes + span->size, false};
  uint64_t length = ljp_bytes_fixed(&in, 4);
  if (length == UINT32_MAX)
    length = ljp_bytes_fixed(&in, 8);
  if (in.bad || length < 4 || length > UINT32_MAX)
    return false;
  *size = (uint64_t)(in.at - span->bytes) + length;
  uint64_t id_address = cfi_cursor_address(span, &in);
  uint32_t id = (uint32_t)ljp_bytes_fixed(&in, 4);
  *cie = id ? id_address - id : 0;
  return !in.bad;
}

/* Skips the head and cuts the span to the entry. An FDE may be longer than the
** span (ljp_cfi_head has told the caller); a CIE may not. */
static bool cfi_enter(struct ljp_cfi_span *span, struct ljp_bytes *in, bool fde)
{
  uint64_t size, cie;
  if (!ljp_cfi_head(span, &size, &cie) || (cie != 0) != fde)
    return false;
  if (!fde && size > span->size)
    return false;
  if (size < span->size)
    span->size = size;
  *in = (struct ljp_bytes){span->bytes, span->bytes + span->size, false};
  if (ljp_bytes_fixed(in, 4) == UINT32_MAX)
    ljp_bytes_fixed(in, 8);
  ljp_bytes_fixed(in, 4);
  return !in->bad;
}

/* Reads augmentation data by its letters ('z' is behind us). The meaning of an
** unknown letter's data is unknown, so reading ends there. */
static void cfi_read_augmentation(struct ljp_cfi_cie *cie, const char *letters,
                                  struct ljp_bytes *in)
{
  for (; *letters; letters++) {
    switch (*letters) {
    case 'R':
      cie->pointer_encoding = (uint8_t)ljp_bytes_fixed(in, 1);
      break;
    case 'L':
      ljp_bytes_fixed(in, 1);
      break;
    case 'P': {
      uint8_t encoding = (uint8_t)ljp_bytes_fixed(in, 1);
      if (encoding != DW_EH_PE_omit)
        ljp_bytes_pointer(in, encoding & DW_EH_PE_format_mask, 0, 0);
      break;
    }
    case 'S':
      cie->signal = true;
      break;
    default:
      return;
    }
  }
}

bool ljp_cfi_read_cie(struct ljp_cfi_cie *cie, struct ljp_cfi_span span,
                      struct ljp_cfi_machine *scratch)
{
  struct ljp_bytes in;
  memset(cie, 0, sizeof *cie);
  if (!cfi_enter(&span, &in, false))
    return false;
  cie->span = span;
  unsigned version = (unsigned)ljp_bytes_fixed(&in, 1);
  if (version != 1 && version != 3 && version != 4)
    return false;
  const char *letters = (const char *)in.at;
  while (ljp_bytes_fixed(&in, 1))
    ;
  if (in.bad)
    return false;
  if (version == 4 && ljp_bytes_fixed(&in, 2) != 8) /* address, segment size */
    return false;
  cie->code_align = ljp_bytes_uleb(&in);
  cie->data_align = ljp_bytes_sleb(&in);
  uint64_t column =
      version == 1 ? ljp_bytes_fixed(&in, 1) : ljp_bytes_uleb(&in);
  if (in.bad || column != LJP_RIP)
    return false;
  const uint8_t *ops = in.at;
  if (*letters == 'z') {
    uint64_t length = ljp_bytes_uleb(&in);
    if (in.bad || length > (uint64_t)(in.end - in.at))
      return false;
    ops = in.at + length;
    in.end = ops;
    cie->augmented = true;
    cfi_read_augmentation(cie, letters + 1, &in);
  } else if (*letters)
    return false;
  return !in.bad && ljp_cfi_run_cie(scratch, cie, ops);
}

bool ljp_cfi_read_fde(struct ljp_cfi_fde *fde, const struct ljp_cfi_cie *cie,
                      struct ljp_cfi_span span)
{
  struct ljp_bytes in;
  if (!cfi_enter(&span, &in, true))
    return false;
  fde->span = span;
  fde->start = ljp_bytes_pointer(&in, cie->pointer_encoding,
                                 cfi_cursor_address(&span, &in), 0);
  uint64_t length = ljp_bytes_pointer(
      &in, cie->pointer_encoding & DW_EH_PE_format_mask, 0, 0);
  fde->end = fde->start + length;
  if (cie->augmented) {
    uint64_t skip = ljp_bytes_uleb(&in);
    if (in.bad || skip > (uint64_t)(in.end - in.at))
      return false;
    in.at += skip;
  }
  fde->ops = (uint32_t)(in.at - span.bytes);
  return !in.bad && fde->end > fde->start;
}
