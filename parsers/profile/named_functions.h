/*
** Finds a function of a finished profile by its file, name and first line: that
** is how trace events and traces know functions. One thread.
*/
#ifndef LJP_NAMED_FUNCTIONS_H
#define LJP_NAMED_FUNCTIONS_H

#include "parsers/base/index.h"
#include "parsers/profile/profile.h"

/* False: out of memory. Call _fini in both cases. */
bool ljp_named_functions_init(const struct ljp_profile *p,
                              struct ljp_index *index);
/* In functions[]; 0: no stack has it. */
uint32_t ljp_named_function(const struct ljp_profile *p,
                            const struct ljp_index *index, uint32_t file,
                            uint32_t name, uint32_t first_line);
void ljp_named_functions_fini(struct ljp_index *index);

#endif
