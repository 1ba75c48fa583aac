/*
** The bytes of Tarantool's formats. One thread an output.
*/
#include "tools/export/tarantool.h"

#include <string.h>

#include "src/base/varint.h"

void ljp_tarantool_put(struct ljp_print *out, uint64_t number)
{
  uint8_t bytes[LJP_VARINT_MAX_BYTES];
  uint8_t *end = ljp_put_varint(bytes, number);
  ljp_print_raw(out, (const char *)bytes, (size_t)(end - bytes));
}

void ljp_tarantool_put_byte(struct ljp_print *out, unsigned byte)
{
  char c = (char)byte;
  ljp_print_raw(out, &c, 1);
}

void ljp_tarantool_put_string(struct ljp_print *out, struct ljp_str s)
{
  ljp_tarantool_put(out, s.len);
  if (s.len)
    ljp_print_raw(out, s.data, s.len);
}

void ljp_tarantool_put_head(struct ljp_print *out, const char *magic,
                            unsigned version)
{
  const char rest[] = {(char)version, 0, 0, 0};
  ljp_print_str(out, magic);
  ljp_print_raw(out, rest, sizeof rest);
}

void ljp_tarantool_put_lfunc(struct ljp_print *out, uint64_t address,
                             struct ljp_str chunk, uint64_t line)
{
  ljp_tarantool_put_byte(out, LJP_LJS_LFUNC);
  ljp_tarantool_put(out, address);
  ljp_tarantool_put_string(out, chunk);
  ljp_tarantool_put(out, line);
}

void ljp_tarantool_put_cfunc(struct ljp_print *out, uint64_t address,
                             struct ljp_str name)
{
  ljp_tarantool_put_byte(out, LJP_LJS_CFUNC);
  ljp_tarantool_put(out, address);
  ljp_tarantool_put_string(out, name);
}

void ljp_tarantool_put_trace(struct ljp_print *out, uint64_t number,
                             uint64_t proto, uint64_t line)
{
  ljp_tarantool_put_byte(out, LJP_LJS_TRACE);
  ljp_tarantool_put(out, number);
  ljp_tarantool_put(out, proto);
  ljp_tarantool_put(out, line);
}
