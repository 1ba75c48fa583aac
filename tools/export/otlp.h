/*
** What the files of the OTLP export share. One thread.
*/
#ifndef LJP_TOOLS_OTLP_H
#define LJP_TOOLS_OTLP_H

#include <tools/export/otlp.pb-c.h> /* Generated. */

#include "tools/export/export.h"

/* The tables of the dictionary: name, field. */
#define LJP_OTLP_TABLES(_)                                                     \
  _(MAPPING, mapping_table)                                                    \
  _(LOCATION, location_table)                                                  \
  _(FUNCTION, function_table)                                                  \
  _(LINK, link_table)                                                          \
  _(STRING, string_table)                                                      \
  _(ATTRIBUTE, attribute_table)                                                \
  _(STACK, stack_table)

enum ljp_otlp_table {
#define LJP_X(name, field) LJP_OTLP_##name,
  LJP_OTLP_TABLES(LJP_X)
#undef LJP_X
      LJP_OTLP_TABLE_COUNT
};

/*
** The dictionary. An entry of a table is a packed message, and equal entries are
** stored once: entry 0 of each, the empty string, is the empty message that the
** format wants there.
*/
struct ljp_otlp {
  struct ljp_export *e;
  enum ljp_status status;
  struct ljp_strings tables[LJP_OTLP_TABLE_COUNT];
  int32_t *strings;   /* By string of the profile; 0: not added yet. */
  int32_t *functions; /* By function; so for the others. */
  int32_t *mappings;
  int32_t *locations; /* By the innermost frame of the location. */
  int32_t *stacks;    /* By node. */
  int32_t *threads, *thread_ids, *vms; /* Attributes. */
  uint64_t *limits;                    /* Highest offset used; by module. */
};

/* status is LJP_ERR_MEM if there is no memory. */
void ljp_otlp_init(struct ljp_otlp *w, struct ljp_export *e);
void ljp_otlp_fini(struct ljp_otlp *w);

/* Packs a message into memory of its own, which is {NULL, 0} after a failure. */
ProtobufCBinaryData ljp_otlp_pack(struct ljp_otlp *w,
                                  const ProtobufCMessage *message);

/* Each returns the index of its entry; after a failure 0. */
int32_t ljp_otlp_string(struct ljp_otlp *w, struct ljp_str text);
int32_t ljp_otlp_name(struct ljp_otlp *w, const char *text);
int32_t ljp_otlp_text_attribute(struct ljp_otlp *w, int32_t key,
                                struct ljp_str value);
int32_t ljp_otlp_attribute(struct ljp_otlp *w, const char *key,
                           struct ljp_str value);
int32_t ljp_otlp_stack(struct ljp_otlp *w, uint32_t node);

/* Fills list with the attributes of a context; there is room for
** ljp_otlp_attributes_most(). Returns their number. */
size_t ljp_otlp_context(struct ljp_otlp *w, uint32_t context, int32_t *list);
size_t ljp_otlp_attributes_most(const struct ljp_profile *p);

#endif
