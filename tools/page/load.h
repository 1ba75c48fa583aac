/*
** Load: fills a page from a profile. The page keeps no reference to the
** profile or its file.
*/
#ifndef LJP_TOOLS_PAGE_LOAD_H
#define LJP_TOOLS_PAGE_LOAD_H

#include "parsers/profile/profile.h"
#include "tools/page/page.h"

/* The page must be new, and the profile loaded with points. LJP_ERR_MEM. */
enum ljp_status ljp_page_load(struct ljp_page *page,
                              const struct ljp_profile *profile,
                              const char *file);

/* Gives a loaded page the Lua view beside the native one. Folds the profile from
** which the page was loaded. LJP_ERR_MEM. */
enum ljp_status ljp_page_load_lua(struct ljp_page *page,
                                  struct ljp_profile *profile);

#endif
