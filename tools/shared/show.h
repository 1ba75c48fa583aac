/*
** Show: prints a record as named fields, either as one line of name=value for
** people, or as one JSON object. The same calls produce both.
*/
#ifndef LJP_TOOLS_SHOW_H
#define LJP_TOOLS_SHOW_H

#include "tools/shared/print.h"

struct ljp_shower {
  struct ljp_print *out;
  bool json;
  bool first; /* The object or list is still empty. */
};

/* A record. Its first field is its type. */
void ljp_show_begin(struct ljp_shower *show, const char *type);
void ljp_show_end(struct ljp_shower *show);

void ljp_show_number(struct ljp_shower *show, const char *name, uint64_t value);
void ljp_show_signed(struct ljp_shower *show, const char *name, int64_t value);
void ljp_show_bool(struct ljp_shower *show, const char *name, bool value);
void ljp_show_address(struct ljp_shower *show, const char *name,
                      uint64_t value);
/* A number that has a name: prints text, or the number if text is NULL. */
void ljp_show_listed(struct ljp_shower *show, const char *name,
                     const char *text, uint64_t number);
void ljp_show_string(struct ljp_shower *show, const char *name,
                     struct ljp_str value);
void ljp_show_bytes(struct ljp_shower *show, const char *name,
                    struct ljp_str value);

/* A list (of records or pairs) inside a record, and an item in it. Only for
** JSON; text lines have their own form. */
void ljp_show_list(struct ljp_shower *show, const char *name);
void ljp_show_list_end(struct ljp_shower *show);
void ljp_show_item(struct ljp_shower *show);
void ljp_show_item_end(struct ljp_shower *show);

#endif
