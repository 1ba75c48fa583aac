/*
** Numbers that the writer gives to prototypes. A frame word carries a
** reference, which may come to stand for another prototype once no entry of a
** ring refers to the first one any more (describe.h). The stack tree and the
** kept definitions remember for longer, so they use numbers: 1, 2 ... in the
** order of asking. No two prototypes ever have the same number. Writer thread
** only. Memory: 4 bytes for each reference, in pages of 16 KiB.
*/
#ifndef LJP_PROTO_NUMBERS_H
#define LJP_PROTO_NUMBERS_H

#include <stdbool.h>
#include <stdint.h>

#include "src/base/status.h"

enum { LJP_PROTO_NUMBERS_PAGE = 4096, LJP_PROTO_NUMBERS_PAGES = 4096 };

struct ljp_proto_numbers {
  uint32_t **pages;    /* LJP_PROTO_NUMBERS_PAGES of them; NULL: empty. */
  uint32_t last;       /* The number given last. */
  uint32_t generation; /* Grows when a reference loses its number. */
};

enum ljp_status ljp_proto_numbers_init(struct ljp_proto_numbers *numbers);
void ljp_proto_numbers_fini(struct ljp_proto_numbers *numbers);

/* The number of a reference; 0: none. */
uint32_t ljp_proto_number_find(const struct ljp_proto_numbers *numbers,
                               uint32_t ref);

/* Gives the next number to a reference that has none. 0: the reference is too
** large, or there is no memory. */
uint32_t ljp_proto_number_give(struct ljp_proto_numbers *numbers, uint32_t ref);

/* The reference's prototype has gone. */
void ljp_proto_number_forget(struct ljp_proto_numbers *numbers, uint32_t ref);

/* Forgets all references: whoever asks again gets a new number. */
void ljp_proto_numbers_clear(struct ljp_proto_numbers *numbers);

#endif
