/*
** Identity: a file by a hash of its bytes, whatever its name. And of a file that
** `ljprof gather --merge` has made: of which files. Their identities are in a list
** beside it, .NAME.made-of, a line with 32 hexadecimal digits each, so that `ljprof
** push` can tell whether it has sent them. A list is there before its file is. One
** thread.
*/
#ifndef LJP_TOOLS_IDENTITY_H
#define LJP_TOOLS_IDENTITY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { LJP_IDENTITY_BYTES = 16 };

/* Returns 0 or an errno. */
int ljp_identify(const char *file, uint8_t id[LJP_IDENTITY_BYTES]);

/* Writes the list of a file in the folder `dir`, on the disk. Returns 0 or an
** errno. */
int ljp_made_of_put(int dir, const char *made,
                    const uint8_t (*ids)[LJP_IDENTITY_BYTES], size_t count);
void ljp_made_of_drop(int dir, const char *made);

/* If this is the name of a list: the name of its file. */
bool ljp_made_of_parse(const char *list, char *made, size_t room);

/* Returns the number of files, of which ids, which the caller frees, has so many
** identities. 0: there is no list, or it cannot be read; ids is NULL. */
size_t ljp_made_of_read(int dir, const char *made,
                        uint8_t (**ids)[LJP_IDENTITY_BYTES]);

#endif
