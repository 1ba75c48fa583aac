/*
** Names of the numbers in a stream, for people. An unknown number has no name
** (NULL); a view then shows the number. Any thread.
*/
#ifndef LJP_PARSERS_NAMES_H
#define LJP_PARSERS_NAMES_H

#include "parsers/stream/record.h"

const char *ljp_name_record(uint64_t tag);
const char *ljp_name_frame_kind(uint64_t kind);
const char *ljp_name_unsampled(uint64_t reason);
const char *ljp_name_exact(uint64_t flags);
const char *ljp_name_cut(uint64_t cut);
const char *ljp_name_vmstate(uint64_t state);
const char *ljp_name_mem_op(uint64_t op);
const char *ljp_name_mem_type(uint64_t type);
const char *ljp_name_mem_flag(uint64_t one_bit);
const char *ljp_name_heap_how(uint64_t how);
const char *ljp_name_heap_flag(uint64_t one_bit);
const char *ljp_name_heap_root(uint64_t root);
/* The index-th number of an object of a type; NULL: it has no such number. */
const char *ljp_name_heap_number(uint64_t type, unsigned index);
const char *ljp_name_gap(uint64_t reason);
const char *ljp_name_bad(uint64_t reason);
const char *ljp_name_loss(uint64_t reason);

/* The name of a field's value; NULL also if the field is not shown by a list
** of names. */
const char *ljp_name_shown(enum ljp_show show, uint64_t number);

/* A chunk's name as LuaJIT shows it: the file or the given name ("@file",
** "=name" without the first character), otherwise the beginning of the source,
** such as "[string "return 1"]", which is written to room. */
#define LJP_CHUNK_NAME_BYTES 64u
struct ljp_str ljp_chunk_name(struct ljp_str chunk,
                              char room[LJP_CHUNK_NAME_BYTES]);

#endif
