/*
** HTML: a page of data inside the viewer, as one HTML file. Errors of writing
** are in out.
*/
#ifndef LJP_TOOLS_PAGE_HTML_H
#define LJP_TOOLS_PAGE_HTML_H

#include "tools/page/page.h"

/* The whole page. Out of memory: page->failed. */
void ljp_page_html(struct ljp_page *page, struct ljp_print *out);

/* For a page with views of another kind: the caller writes them between _begin
** and _end, as members of the data's object, each after a comma. */
void ljp_page_html_begin(struct ljp_page *page, struct ljp_print *out,
                         uint64_t tick_ns);
void ljp_page_html_end(struct ljp_print *out);

#endif
