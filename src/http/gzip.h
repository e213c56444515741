/* Compressing an answer as it is written (RFC 1952). One exchange's. */
#ifndef FROND_HTTP_GZIP_H
#define FROND_HTTP_GZIP_H

#include "base/status.h"
#include "base/str.h"

struct gzip;

enum {
	GZIP_MEMORY_BYTES = 270 * 1024, /* what one takes, zlib's included */
};

/* NULL when out of memory. `level` is zlib's, 1 to 9. */
struct gzip *gzip_new(int level);
void gzip_free(struct gzip *g); /* NULL is fine */

enum gzip_step {
	GZIP_MORE,  /* as much is kept back as helps */
	GZIP_FLUSH, /* everything so far can be read from what comes out */
	GZIP_END,
};

/*
 * Takes from `*in` and gives what is to be sent, valid until the next call. To be called until it
 * gives nothing: only then all of `*in` has been taken and the step has been made.
 */
struct str gzip_next(struct gzip *g, enum gzip_step step, struct str *in);

/* True if an Accept-Encoding header (ptr NULL: none) allows gzip. */
bool gzip_accepted(struct str header);

#endif
