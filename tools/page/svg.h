/*
** SVG: a view of a page as a static drawing.
*/
#ifndef LJP_TOOLS_PAGE_SVG_H
#define LJP_TOOLS_PAGE_SVG_H

#include "tools/page/page.h"

/* unit: "ns" or "bytes". LJP_ERR_MEM; errors of writing are in out. */
enum ljp_status ljp_page_svg(struct ljp_page *page, enum ljp_page_view view,
                             const char *unit, struct ljp_print *out);

#endif
