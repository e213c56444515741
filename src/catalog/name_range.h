/*
 * Ranges of names, either of databases or of what a database keeps by name.
 *
 * These are plain values that borrow names. Threading: any thread.
 */
#ifndef FROND_CATALOG_NAME_RANGE_H
#define FROND_CATALOG_NAME_RANGE_H

#include "base/buf.h"
#include "base/status.h"
#include "base/str.h"

/*
 * Names from `begin` to `end` in byte order, or in reverse order if `descending`. Without has_begin
 * or has_end the range has no such bound.
 */
struct name_range {
	struct str begin;
	struct str end;
	bool has_begin;
	bool has_end;
	bool exclusive_end;
	bool exclusive_begin; /* true to continue after the last name of a page */
	bool descending;      /* begin is then the upper bound, as in CouchDB's queries */
	uint64_t skip;
	size_t limit; /* the most names on a page; a page may be shorter (see `more`) */
};

struct name_page {
	struct str *names;
	size_t count;
	bool more;
};

enum {
	/* only so many bytes of a longer name are compared; no stored name is longer */
	NAME_RANGE_BYTES = 7000,
};

/*
 * Appends bounds to the prefix in `lo`, which becomes the lower bound of the keys of `range`; `hi`
 * becomes the upper bound. `after` is the byte that is appended to the key of a name to get past
 * it: CATALOG_KEY_NEXT, or CATALOG_KEY_LAST where more keys lie below a name. Only strings lie
 * within the bounds.
 */
MUST_USE enum status name_range_bounds(const struct name_range *range, uint8_t after,
				       struct buf *lo, struct buf *hi);

/*
 * Returns the limit of a scan for one page: the names to skip, the names wanted, and one more,
 * which shows whether there are more. Returns 0, which is no limit, if the sum does not fit.
 */
size_t name_range_scan_limit(uint64_t skip, size_t wanted);

#endif
