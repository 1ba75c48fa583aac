/*
** Names of the stream's numbers, generated from the lists of format.h, item.h
** and status.h. Any thread.
*/
#include "parsers/stream/names.h"

#include <stdio.h>
#include <string.h>

#include "src/base/status.h"

#define NAME(name, number, text)                                               \
  case number:                                                                 \
    return text;
#define NAMES(linkage, function, list)                                         \
  linkage const char *function(uint64_t number)                                \
  {                                                                            \
    switch (number) {                                                          \
      list(NAME)                                                               \
    }                                                                          \
    return NULL;                                                               \
  }

NAMES(, ljp_name_cut, LJP_CUT_LIST)
NAMES(, ljp_name_vmstate, LJP_VMSTATE_LIST)
NAMES(, ljp_name_mem_op, LJP_MEM_OP_LIST)
NAMES(, ljp_name_mem_type, LJP_MEM_TYPE_LIST)
NAMES(, ljp_name_mem_flag, LJP_MEM_FLAG_LIST)
NAMES(, ljp_name_gap, LJP_GAP_LIST)
NAMES(, ljp_name_bad, LJP_BAD_LIST)
NAMES(, ljp_name_loss, LJP_LOSS_LIST)
NAMES(, ljp_name_unsampled, LJP_UNSAMPLED_LIST)
NAMES(, ljp_name_exact, LJP_EXACT_LIST)
NAMES(, ljp_name_heap_flag, LJP_HEAP_FLAG_LIST)
NAMES(, ljp_name_heap_root, LJP_HEAP_ROOT_LIST)
NAMES(static, names_heap_taken, LJP_HEAP_TAKEN_LIST)
NAMES(static, names_heap_ctype, LJP_HEAP_CTYPE_LIST)
NAMES(static, names_timer, LJP_TIMER_LIST)
NAMES(static, names_producer, LJP_PRODUCER_LIST)
NAMES(static, names_gc_phase, LJP_GC_PHASE_LIST)
NAMES(static, names_trace_what, LJP_TRACE_WHAT_LIST)
NAMES(static, names_interval_why, LJP_INTERVAL_WHY_LIST)
NAMES(static, names_epoch_why, LJP_EPOCH_WHY_LIST)
NAMES(static, names_note, LJP_NOTE_LIST)
NAMES(static, names_status, LJP_STATUS_LIST)

const char *ljp_name_record(uint64_t tag)
{
  switch (tag) {
#define LJP_X(name, number, text, event) NAME(name, number, text)
    LJP_RECORD_LIST(LJP_X)
#undef LJP_X
  }
  return NULL;
}

const char *ljp_name_frame_kind(uint64_t kind)
{
  switch (kind) {
#define LJP_X(name, number, shape, text) NAME(name, number, text)
    LJP_FRAME_KIND_LIST(LJP_X)
#undef LJP_X
  }
  return NULL;
}

const char *ljp_name_heap_how(uint64_t how)
{
  switch (how) {
#define LJP_X(name, number, shape, text) NAME(name, number, text)
    LJP_HEAP_HOW_LIST(LJP_X)
#undef LJP_X
  }
  return NULL;
}

const char *ljp_name_heap_number(uint64_t type, unsigned index)
{
#define LJP_X(name, count, a, b, c)                                            \
  if (type == LJP_MEM_TYPE_##name && index < count)                            \
    return index == 0 ? a : index == 1 ? b : c;
  LJP_HEAP_NUMBERS_LIST(LJP_X)
#undef LJP_X
  return NULL;
}

const char *ljp_name_shown(enum ljp_show show, uint64_t number)
{
  switch (show) {
  case LJP_SHOW_RECORD:
    return ljp_name_record(number);
  case LJP_SHOW_HEAP_TAKEN:
    return names_heap_taken(number);
  case LJP_SHOW_HEAP_CTYPE:
    return names_heap_ctype(number);
  case LJP_SHOW_PRODUCER:
    return names_producer(number);
  case LJP_SHOW_VMSTATE:
    return ljp_name_vmstate(number);
  case LJP_SHOW_GC_PHASE:
    return names_gc_phase(number);
  case LJP_SHOW_TRACE_WHAT:
    return names_trace_what(number);
  case LJP_SHOW_INTERVAL_WHY:
    return names_interval_why(number);
  case LJP_SHOW_EPOCH_WHY:
    return names_epoch_why(number);
  case LJP_SHOW_NOTE:
    return names_note(number);
  case LJP_SHOW_LOSS:
    return ljp_name_loss(number);
  case LJP_SHOW_UNSAMPLED:
    return ljp_name_unsampled(number);
  case LJP_SHOW_TIMER:
    return names_timer(number);
  case LJP_SHOW_STATUS:
    return names_status(number);
  case LJP_SHOW_DEC:
  case LJP_SHOW_HEX:
  case LJP_SHOW_TEXT:
  case LJP_SHOW_BYTES:
    break;
  }
  return NULL;
}

struct ljp_str ljp_chunk_name(struct ljp_str chunk,
                              char room[LJP_CHUNK_NAME_BYTES])
{
  enum { SOURCE_BYTES = 40 };
  static const char empty[] = "[string \"\"]";
  _Static_assert(sizeof "[string \"...\"]" + SOURCE_BYTES <=
                     LJP_CHUNK_NAME_BYTES,
                 "the longest name fits");
  if (!chunk.len)
    return (struct ljp_str){empty, sizeof empty - 1};
  if (*chunk.data == '@' || *chunk.data == '=')
    /* The mark alone is a name, too. */
    return chunk.len == 1 ? chunk
                          : (struct ljp_str){chunk.data + 1, chunk.len - 1};
  const char *end = memchr(chunk.data, '\n', chunk.len);
  uint32_t n = end ? (uint32_t)(end - chunk.data) : chunk.len;
  bool cut = end || n > SOURCE_BYTES;
  if (n > SOURCE_BYTES)
    n = SOURCE_BYTES;
  uint32_t len = (uint32_t)snprintf(room, LJP_CHUNK_NAME_BYTES, "[string \"");
  memcpy(room + len, chunk.data, n);
  len += n;
  len += (uint32_t)snprintf(room + len, LJP_CHUNK_NAME_BYTES - len, "%s",
                            cut ? "...\"]" : "\"]");
  return (struct ljp_str){room, len};
}
