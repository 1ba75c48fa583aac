/*
** Status codes of all parts: one list gives number, name and text. A function
** that can fail returns enum ljp_status; LJP_OK is zero.
*/
#ifndef LJP_STATUS_H
#define LJP_STATUS_H

#define LJP_STATUS_LIST(_)                                                     \
  _(OK, 0, "success")                                                          \
  _(ERR_USE, 1, "misuse of the interface")                                     \
  _(ERR_RUN, 2, "not in a state that allows this")                             \
  _(ERR_MEM, 3, "out of memory")                                               \
  _(ERR_IO, 4, "input/output error")                                           \
  _(ERR_FORMAT, 5, "malformed data")                                           \
  _(ERR_VERSION, 6, "version not supported")                                   \
  _(ERR_LIMIT, 7, "limit exceeded")                                            \
  _(ERR_NOTSUP, 8, "not supported in this build")

enum ljp_status {
#define LJP_STATUS_ENUM(name, number, text) LJP_##name = number,
  LJP_STATUS_LIST(LJP_STATUS_ENUM)
#undef LJP_STATUS_ENUM
};

const char *ljp_status_text(enum ljp_status status);

/* The words for an errno, never translated. NULL: there is no such error. */
const char *ljp_errno_text(int error);

/* What a user can do about an error of a file, to be put behind its text. "":
** nothing that is not said by the text. */
const char *ljp_errno_advice(int error);

#endif
