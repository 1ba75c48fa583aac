/*
** Writes a page's data: the page itself, or a drawing.
*/
#ifndef LJP_TOOLS_PAGE_WRITE_H
#define LJP_TOOLS_PAGE_WRITE_H

#include "tools/page/page.h"
#include "tools/shared/print.h"

/* The whole HTML page. Errors of writing are the print's. */
void ljp_page_html(struct ljp_page *page, struct ljp_print *out);

/* The page with views of another kind between, each a member of the data's
** object that begins with a comma. */
void ljp_page_html_begin(struct ljp_page *page, struct ljp_print *out,
                         uint64_t tick_ns);
void ljp_page_html_end(struct ljp_print *out);

/* A static drawing of one view. LJP_ERR_MEM. unit: "ns" or "bytes". */
enum ljp_status ljp_page_svg(struct ljp_page *page, enum ljp_page_view view,
                             const char *unit, struct ljp_print *out);

#endif
