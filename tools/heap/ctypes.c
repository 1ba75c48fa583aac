/*
** Names of C types, as C writes them: "struct point *", "int32_t[100]". The snapshot
** has what each type is, and the names of those that have one.
*/
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tools/heap/heap.h"

enum { CTYPES_DEEP = 32, CTYPES_TEXT = 200 };

/* A type that is not made of others. */
static void ctypes_base(const struct ljp_graph *g, uint32_t number,
                        struct ljp_heap_text *t)
{
  static const char *const words[] = {[LJP_HEAP_CTYPE_STRUCT] = "struct",
                                      [LJP_HEAP_CTYPE_UNION] = "union",
                                      [LJP_HEAP_CTYPE_ENUM] = "enum"};
  const struct ljp_graph_ctype *c = &g->ctypes[number];
  struct ljp_str name = ljp_graph_string(g, c->name);
  switch (c->kind) {
  case LJP_HEAP_CTYPE_BOOL:
    ljp_heap_format(t, "bool");
    return;
  case LJP_HEAP_CTYPE_INT:
  case LJP_HEAP_CTYPE_UINT:
    if (c->kind == LJP_HEAP_CTYPE_INT && c->bytes == 1)
      ljp_heap_format(t, "char");
    else
      ljp_heap_format(t, "%sint%" PRIu64 "_t",
                      c->kind == LJP_HEAP_CTYPE_INT ? "" : "u", c->bytes * 8);
    return;
  case LJP_HEAP_CTYPE_FLOAT:
    ljp_heap_format(t, c->bytes == sizeof(float)    ? "float"
                       : c->bytes == sizeof(double) ? "double"
                                                    : "long double");
    return;
  case LJP_HEAP_CTYPE_COMPLEX:
    ljp_heap_format(t, "complex");
    return;
  case LJP_HEAP_CTYPE_VOID:
    ljp_heap_format(t, "void");
    return;
  case LJP_HEAP_CTYPE_CTYPE:
    ljp_heap_format(t, "ctype");
    return;
  case LJP_HEAP_CTYPE_STRUCT:
  case LJP_HEAP_CTYPE_UNION:
  case LJP_HEAP_CTYPE_ENUM:
    if (!name.len || !c->defined)
      ljp_heap_format(t, "%s ", words[c->kind]);
    if (name.len)
      ljp_heap_bytes(t, name, CTYPES_TEXT / 2);
    else
      ljp_heap_format(t, "#%" PRIu32, number);
    return;
  }
  if (name.len)
    ljp_heap_bytes(t, name, CTYPES_TEXT / 2);
  else
    ljp_heap_format(t, "C type %" PRIu32, number);
}

/* Puts pieces around what there is, if there is room. */
static void ctypes_put(char *text, const char *before, const char *after)
{
  size_t len = strlen(text), first = strlen(before), last = strlen(after);
  if (first + len + last >= CTYPES_TEXT)
    return;
  memmove(text + first, text, len);
  for (size_t i = 0; i < first; i++)
    text[i] = before[i];
  memcpy(text + first + len, after, last + 1);
}

/* An array or a function: in C, what points to it stands in parentheses. */
static void ctypes_postfix(char *text, bool *pointer, const char *piece)
{
  if (*pointer)
    ctypes_put(text, "(", ")");
  *pointer = false;
  ctypes_put(text, "", piece);
}

static void ctypes_array(const struct ljp_graph *g,
                         const struct ljp_graph_ctype *c, char *text,
                         bool *pointer)
{
  char length[32] = "[?]";
  uint64_t item = c->of < g->ctype_count ? g->ctypes[c->of].bytes : 0;
  if (c->kind == LJP_HEAP_CTYPE_ARRAY && item)
    snprintf(length, sizeof length, "[%" PRIu64 "]", c->bytes / item);
  ctypes_postfix(text, pointer, length);
}

/* The declarator of a type, into text. Returns the type in front of it. */
static uint32_t ctypes_declarator(const struct ljp_graph *g, uint32_t number,
                                  char *text)
{
  bool pointer = false;
  for (unsigned deep = 0; deep < CTYPES_DEEP && number < g->ctype_count;
       deep++) {
    const struct ljp_graph_ctype *c = &g->ctypes[number];
    switch (c->kind) {
    case LJP_HEAP_CTYPE_POINTER:
    case LJP_HEAP_CTYPE_REFERENCE:
      ctypes_put(text, c->kind == LJP_HEAP_CTYPE_POINTER ? "*" : "&", "");
      pointer = true;
      break;
    case LJP_HEAP_CTYPE_ARRAY:
    case LJP_HEAP_CTYPE_ANY_ARRAY:
    case LJP_HEAP_CTYPE_VECTOR:
      ctypes_array(g, c, text, &pointer);
      break;
    case LJP_HEAP_CTYPE_FUNCTION:
      ctypes_postfix(text, &pointer, "()");
      break;
    case LJP_HEAP_CTYPE_TYPEDEF:
    case LJP_HEAP_CTYPE_SAME:
      break;
    default:
      return number;
    }
    number = c->of;
  }
  return number;
}

void ljp_heap_describe_ctype(const struct ljp_graph *g, uint32_t number,
                             struct ljp_heap_text *t)
{
  char text[CTYPES_TEXT] = "";
  uint32_t base = ctypes_declarator(g, number, text);
  if (base < g->ctype_count)
    ctypes_base(g, base, t);
  else
    ljp_heap_format(t, "C type %" PRIu32, base);
  if (*text)
    ljp_heap_format(t, "%s%s", *text == '[' ? "" : " ", text);
}
