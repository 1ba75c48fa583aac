/*
** Sources: the text of the measured source lines, for the page.
*/
#ifndef LJP_TOOLS_PAGE_SOURCES_H
#define LJP_TOOLS_PAGE_SOURCES_H

#include "tools/page/page.h"

/* Adds the measured lines of files below dir. Adds a notice for each file that
** changed after since_wall_ns. LJP_ERR_IO: dir cannot be read; LJP_ERR_MEM. */
enum ljp_status ljp_page_sources(struct ljp_page *page, const char *dir,
                                 uint64_t since_wall_ns);

#endif
