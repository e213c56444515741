/*
 * Inflating an answer that came compressed by gzip (RFC 1952), piece by piece: a small answer may
 * stand for a very large one, so never more than GUNZIP_PIECE_BYTES are inflated ahead.
 *
 * The caller owns the reader. One thread uses it at a time.
 */
#ifndef FROND_HTTP_GUNZIP_H
#define FROND_HTTP_GUNZIP_H

#include "base/status.h"
#include "base/str.h"

enum {
	GUNZIP_PIECE_BYTES = 64 * 1024, /* that one call gives at most */
};

struct gunzip;

/* NULL when out of memory: some 110 KB. */
struct gunzip *gunzip_new(void);
void gunzip_free(struct gunzip *g); /* NULL is fine */

/*
 * Takes from `*in` and gives the next inflated piece, valid until the next call. STATUS_NOT_FOUND:
 * all of `*in` has been taken and gives nothing more. STATUS_CORRUPT for what is not gzip, and for
 * bytes behind its end. STATUS_NOMEM.
 */
MUST_USE enum status gunzip_next(struct gunzip *g, struct str *in, struct str *ret);

/* True if the end of the compressed text has been read. */
bool gunzip_is_complete(const struct gunzip *g);

#endif
