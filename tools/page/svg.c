/*
** Draws a flame graph for documents: no script, details of a box as its
** tooltip. Boxes too narrow to draw are left out and counted.
*/
#include "tools/page/svg.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tools/page/tree.h"
#include "tools/shared/units.h"

enum { WIDTH = 1200, MARGIN = 12, ROW = 18, TOP = 52, FONT = 11 };
#define NARROW 0.35 /* Narrower boxes are not drawn; in pixels. */

/* Widths of the ASCII characters of Helvetica and its substitutes, in
** thousandths of the font size. */
static const uint16_t svg_widths[95] = {
    278, 278, 355, 556, 556,  889, 667, 191, 333, 333, 389, 584, 278, 333,
    278, 278, 556, 556, 556,  556, 556, 556, 556, 556, 556, 556, 278, 278,
    584, 584, 584, 556, 1015, 667, 667, 722, 722, 667, 611, 778, 722, 278,
    500, 667, 556, 833, 722,  778, 667, 778, 722, 667, 611, 722, 667, 944,
    667, 667, 611, 278, 278,  278, 469, 556, 333, 556, 556, 500, 556, 556,
    278, 556, 556, 222, 222,  500, 222, 833, 556, 556, 556, 556, 333, 500,
    278, 556, 500, 722, 500,  500, 500, 334, 260, 334, 584};

static double svg_char_width(uint8_t c)
{
  if (c >= 0x80 && c < 0xc0)
    return 0; /* Inside a UTF-8 character. */
  return (c >= 32 && c < 127 ? svg_widths[c - 32] : 900) * 1.05e-3 * FONT;
}

/* The length of the part of s that fits. *whole: all of it fits. */
static uint32_t svg_fit(struct ljp_str s, double room, bool *whole)
{
  double w = 0, dots = 1.05 * FONT;
  uint32_t kept = 0, chars = 0;
  *whole = false;
  for (uint32_t i = 0; i < s.len; i++) {
    uint8_t c = (uint8_t)s.data[i];
    if (w + dots <= room && (c < 0x80 || c >= 0xc0)) {
      kept = i; /* The text before this character fits, with dots. */
      chars++;
    }
    w += svg_char_width(c);
    if (w > room)
      return chars > 3 ? kept : 0;
  }
  *whole = true;
  return s.len;
}

static void svg_percent(struct ljp_print *out, uint64_t part, uint64_t whole)
{
  double p = whole ? 100.0 * (double)part / (double)whole : 0;
  ljp_print_format(out, p < 1 && part ? "%.2f %%" : "%.1f %%", p);
}

static void svg_frame_text(struct ljp_print *out,
                           const struct ljp_page_frame *f)
{
  ljp_print_xml(out, f->name);
  if (f->file.len) {
    ljp_print_str(out, " ");
    ljp_print_xml(out, f->file);
    if (f->line)
      ljp_print_format(out, ":%" PRIu32, f->line);
  } else if (f->module.len) {
    ljp_print_str(out, " in ");
    ljp_print_xml(out, f->module);
  }
}

struct drawing {
  const struct ljp_page *page;
  const struct ljp_page_tree *tree;
  struct ljp_print *out;
  const char *unit;
  unsigned depth; /* Of the deepest box drawn. */
  uint64_t left_out;
  bool measuring;
};

static void svg_box(struct drawing *d, uint32_t node, double x, double w,
                    unsigned depth)
{
  const struct ljp_page_branch *b = &d->tree->nodes[node];
  const struct ljp_page_frame *f = &d->page->frames[b->frame];
  struct ljp_print *out = d->out;
  bool whole;
  double y = TOP + (double)(d->depth - depth) * ROW;
  ljp_print_format(out, "<g class=\"k%d\"><title>", (int)f->kind);
  svg_frame_text(out, f);
  ljp_print_str(out, "&#10;");
  ljp_units_amount(out, b->total, d->unit);
  ljp_print_str(out, ", ");
  svg_percent(out, b->total, d->tree->nodes[0].total);
  if (b->self && node) {
    ljp_print_str(out, "&#10;self ");
    ljp_units_amount(out, b->self, d->unit);
  }
  ljp_print_format(out,
                   "</title><rect x=\"%.1f\" y=\"%.0f\" width=\"%.1f\" "
                   "height=\"%d\"/>",
                   x, y, w > 3 ? w - 0.7 : w, ROW - 1);
  uint32_t fits = w > 20 ? svg_fit(f->name, w - 7, &whole) : 0;
  if (fits) {
    ljp_print_format(out, "<text x=\"%.1f\" y=\"%.1f\">", x + 4, y + 12.5);
    ljp_print_xml(out, ljp_str(f->name.data, fits));
    ljp_print_str(out, whole ? "</text>" : "\xe2\x80\xa6</text>");
  }
  ljp_print_str(out, "</g>\n");
}

/* With measuring set finds the depth, else draws the boxes. */
static void svg_boxes(struct drawing *d)
{
  double scale = (WIDTH - 2.0 * MARGIN) / (double)d->tree->nodes[0].total;
  for (uint32_t i = 0; i < d->tree->count; i++) {
    const struct ljp_page_branch *b = &d->tree->nodes[i];
    double w = (double)b->total * scale;
    if (w < NARROW)
      d->left_out += d->measuring && b->total;
    else if (d->measuring)
      d->depth = b->depth > d->depth ? b->depth : d->depth;
    else
      svg_box(d, i, MARGIN + (double)b->start * scale, w, b->depth);
  }
}

static void svg_legend(const struct drawing *d, double y)
{
  static const char *const names[] = {
#define LJP_X(key, colour, name) name,
      LJP_PAGE_KIND_LIST(LJP_X)
#undef LJP_X
  };
  bool there[LJP_PAGE_KINDS] = {false};
  double x = MARGIN;
  for (uint32_t i = 1; i < d->tree->count; i++)
    if (d->tree->nodes[i].total)
      there[d->page->frames[d->tree->nodes[i].frame].kind] = true;
  for (int k = 1; k < LJP_PAGE_KINDS; k++) {
    if (!there[k])
      continue;
    ljp_print_format(d->out,
                     "<g class=\"k%d\"><rect x=\"%.1f\" y=\"%.1f\" "
                     "width=\"10\" height=\"10\" rx=\"2\"/></g>"
                     "<text class=\"soft\" x=\"%.1f\" y=\"%.1f\">%s</text>\n",
                     k, x, y, x + 15, y + 9, names[k]);
    x += 15 + 22;
    for (const char *c = names[k]; *c; c++)
      x += svg_char_width((uint8_t)*c);
  }
}

static void svg_head(const struct drawing *d, double height)
{
  static const char *const colours[] = {
#define LJP_X(key, colour, name) colour,
      LJP_PAGE_KIND_LIST(LJP_X)
#undef LJP_X
  };
  struct ljp_print *out = d->out;
  ljp_print_format(
      out,
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %.0f\" "
      "width=\"%d\" height=\"%.0f\" role=\"img\">\n<style>\n"
      "text{font:%dpx \"Helvetica Neue\",Helvetica,\"Liberation Sans\",Arial,"
      "sans-serif;fill:#1c2128;pointer-events:none}\n"
      ".head{font-size:15px;font-weight:600}.soft{fill:#5b6470}"
      ".warn{fill:#8a5a00}\n"
      "g:hover>rect{stroke:#1c2128;stroke-width:.8}\n",
      WIDTH, height, WIDTH, height, FONT);
  for (int k = 0; k < LJP_PAGE_KINDS; k++)
    ljp_print_format(out, ".k%d>rect{fill:%s}\n", k, colours[k]);
  ljp_print_str(out, "</style>\n<rect width=\"100%\" height=\"100%\" "
                     "fill=\"#fff\"/>\n");
  ljp_print_format(out, "<text class=\"head\" x=\"%d\" y=\"23\">", MARGIN);
  ljp_print_xml(out, d->page->title);
  ljp_print_format(out, "</text>\n<text class=\"soft\" x=\"%d\" y=\"41\">",
                   MARGIN);
  ljp_units_amount(out, d->tree->nodes[0].total, d->unit);
  if (d->page->subtitle.len) {
    ljp_print_str(out, " \xc2\xb7 ");
    ljp_print_xml(out, d->page->subtitle);
  }
  if (d->left_out)
    ljp_print_format(out, " \xc2\xb7 %" PRIu64 " boxes too narrow to draw",
                     d->left_out);
  ljp_print_str(out, "</text>\n");
}

enum ljp_status ljp_page_svg(struct ljp_page *page, enum ljp_page_view view,
                             const char *unit, struct ljp_print *out)
{
  struct ljp_page_tree tree;
  ljp_page_finish(page);
  enum ljp_status status = ljp_page_tree_init(&tree, page, view);
  if (status)
    return status;
  struct drawing d = {
      .page = page, .tree = &tree, .out = out, .unit = unit, .measuring = true};
  if (tree.nodes[0].total)
    svg_boxes(&d);
  d.measuring = false;
  double below = TOP + (d.depth + 1.0) * ROW + 10;
  svg_head(&d, below + 24 + 15.0 * (double)page->notice_count);
  if (tree.nodes[0].total)
    svg_boxes(&d);
  else
    ljp_print_format(out, "<text x=\"%d\" y=\"%d\">No samples.</text>\n",
                     MARGIN, TOP + 12);
  svg_legend(&d, below);
  for (size_t i = 0; i < page->notice_count; i++) {
    ljp_print_format(out, "<text class=\"warn\" x=\"%d\" y=\"%.1f\">", MARGIN,
                     below + 27 + 15.0 * (double)i);
    ljp_print_xml(out, page->notices[i].text);
    ljp_print_str(out, "</text>\n");
  }
  ljp_print_str(out, "</svg>\n");
  ljp_page_tree_fini(&tree);
  return LJP_OK;
}
