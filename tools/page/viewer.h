/*
** Viewer: the page of `ljprof flame` without data, embedded at build time from
** tools/viewer/ (cmake/embed-viewer.cmake). A page is the bytes before the
** data, the data as JSON without "<", and the bytes after it.
*/
#ifndef LJP_TOOLS_VIEWER_H
#define LJP_TOOLS_VIEWER_H

#include <stddef.h>

extern const unsigned char ljp_viewer_before[], ljp_viewer_behind[];
extern const size_t ljp_viewer_before_bytes, ljp_viewer_behind_bytes;

#endif
