/*
** See shown.h.
*/
#include "src/base/shown.h"

struct ljp_shown ljp_shown = {.version = LJP_LIBRARY_VERSION};
