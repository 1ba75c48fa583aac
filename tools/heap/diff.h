/*
** What has grown between two snapshots. Only heap.c includes it.
*/
#ifndef LJP_TOOLS_HEAP_DIFF_H
#define LJP_TOOLS_HEAP_DIFF_H

#include "tools/heap/view.h"

enum ljp_status ljp_heap_diff(struct ljp_heap_view *before,
                              struct ljp_heap_view *after,
                              struct ljp_heap_show *s);

#endif
