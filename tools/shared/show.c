/*
** Prints the fields of a record as text or JSON.
*/
#include "tools/shared/show.h"

#include "tools/shared/text.h"

#include <inttypes.h>
#include <string.h>

static void show_name(struct ljp_shower *show, const char *name)
{
  if (show->json) {
    ljp_print_str(show->out, show->first ? "\"" : ",\"");
    ljp_print_str(show->out, name);
    ljp_print_str(show->out, "\":");
  } else {
    ljp_print_str(show->out, " ");
    ljp_print_str(show->out, name);
    ljp_print_str(show->out, "=");
  }
  show->first = false;
}

static void show_quoted(struct ljp_shower *show, const char *text)
{
  struct ljp_str s = ljp_str(text, strlen(text));
  if (show->json)
    ljp_print_json(show->out, s);
  else
    ljp_print_quoted(show->out, s);
}

void ljp_show_begin(struct ljp_shower *show, const char *type)
{
  show->first = true;
  if (show->json) {
    ljp_print_str(show->out, "{");
    show_name(show, "type");
    show_quoted(show, type);
  } else {
    ljp_print_str(show->out, type);
  }
}

void ljp_show_end(struct ljp_shower *show)
{
  ljp_print_str(show->out, show->json ? "}\n" : "\n");
}

void ljp_show_number(struct ljp_shower *show, const char *name, uint64_t value)
{
  show_name(show, name);
  ljp_print_dec(show->out, value);
}

void ljp_show_signed(struct ljp_shower *show, const char *name, int64_t value)
{
  show_name(show, name);
  ljp_print_format(show->out, "%" PRId64, value);
}

void ljp_show_bool(struct ljp_shower *show, const char *name, bool value)
{
  show_name(show, name);
  ljp_print_str(show->out, value ? "true" : "false");
}

void ljp_show_address(struct ljp_shower *show, const char *name, uint64_t value)
{
  show_name(show, name);
  ljp_print_format(show->out, show->json ? "\"0x%" PRIx64 "\"" : "0x%" PRIx64,
                   value);
}

void ljp_show_listed(struct ljp_shower *show, const char *name,
                     const char *text, uint64_t number)
{
  show_name(show, name);
  if (text)
    show_quoted(show, text);
  else
    ljp_print_dec(show->out, number);
}

void ljp_show_string(struct ljp_shower *show, const char *name,
                     struct ljp_str value)
{
  show_name(show, name);
  if (!show->json) {
    ljp_print_quoted(show->out, value);
    return;
  }
  ljp_print_json(show->out, value);
  if (!ljp_text_is_utf8(value)) {
    ljp_print_str(show->out, ",\"");
    ljp_print_str(show->out, name);
    ljp_print_str(show->out, "_hex\":\"");
    ljp_print_hex(show->out, value);
    ljp_print_str(show->out, "\"");
  }
}

void ljp_show_bytes(struct ljp_shower *show, const char *name,
                    struct ljp_str value)
{
  show_name(show, name);
  ljp_print_str(show->out, show->json ? "\"" : "");
  ljp_print_hex(show->out, value);
  ljp_print_str(show->out, show->json ? "\"" : "");
}

void ljp_show_list(struct ljp_shower *show, const char *name)
{
  show_name(show, name);
  ljp_print_str(show->out, "[");
  show->first = true;
}

void ljp_show_list_end(struct ljp_shower *show)
{
  ljp_print_str(show->out, "]");
  show->first = false;
}

void ljp_show_item(struct ljp_shower *show)
{
  ljp_print_str(show->out, show->first ? "{" : ",{");
  show->first = true;
}

void ljp_show_item_end(struct ljp_shower *show)
{
  ljp_print_str(show->out, "}");
  show->first = false;
}
