/*
** Threads, VMs, modules and functions: from their ids in the stream to their
** places in the profile. LJP_ERR_MEM is the only failure.
*/
#ifndef LJP_PARSERS_PROFILE_DEFINITIONS_H
#define LJP_PARSERS_PROFILE_DEFINITIONS_H

#include "parsers/profile/profile.h"

/* What the id of a prototype means; a cache, by the low bits of the id. */
struct ljp_profile_proto {
  uint64_t id;
  uint32_t name, file, first_line;
  uint32_t epoch; /* Of the pass, in which it was looked up. */
  bool known;     /* The function could be described. */
  bool builtin;   /* It belongs to LuaJIT; there is no file or line. */
};
#define LJP_PROFILE_PROTOS 4096u

/* Makes place 0 of each array: "none". */
enum ljp_status ljp_profile_init_definitions(struct ljp_profile *p);

/* 0: none, or there are too many. */
enum ljp_status ljp_profile_find_thread(struct ljp_profile *p, uint64_t id,
                                        uint32_t *thread);
enum ljp_status ljp_profile_find_vm(struct ljp_profile *p, uint64_t id,
                                    uint32_t *vm);
enum ljp_status ljp_profile_find_module(struct ljp_profile *p, uint64_t id,
                                        uint32_t *module);

enum ljp_status ljp_profile_find_proto(struct ljp_profile *p, uint64_t id,
                                       struct ljp_profile_proto *proto);

#endif
