/*
** Labels of nginx's requests: variables of the request, which each handler has from
** its beginning (misc.profile.label_requests). For the whole process.
*/
#ifndef LJP_REQUEST_LABELS_H
#define LJP_REQUEST_LABELS_H

#include "profilers/session/labels.h"

enum { LJP_REQUEST_VARIABLES = 8 };

/* From now on. Each value is the name of a variable; without any, requests have no
** labels. Returns 0, ENOTSUP (the process has no requests), ENOSPC (no set of labels
** is left) or ENOMEM. */
int ljp_request_labels_set(const struct ljp_labels *variables);

#endif
