/*
** Sets of labels, as a LABELS record has them: a key and its value in turn,
** sorted by key, each ended by NUL. Any thread.
*/
#ifndef LJP_PARSERS_LABELS_H
#define LJP_PARSERS_LABELS_H

#include <stdbool.h>

#include "parsers/base/str.h"

/* Whether this is a set: whole pairs, sorted by key, no key twice or empty. */
bool ljp_labels_are_valid(struct ljp_str set);

/* Takes the first pair off a valid set; false: there is none. */
bool ljp_labels_next(struct ljp_str *set, struct ljp_str *key,
                     struct ljp_str *value);

#endif
