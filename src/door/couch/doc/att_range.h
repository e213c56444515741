/*
 * The Range header of a request for an attachment.
 */
#ifndef FROND_DOOR_COUCH_DOC_ATT_RANGE_H
#define FROND_DOOR_COUCH_DOC_ATT_RANGE_H

#include "base/str.h"

enum {
	COUCH_RANGES = 10, /* so many, and all of it is sent instead */
};

struct couch_range {
	uint64_t begin;
	uint64_t end; /* behind the last byte */
};

/*
 * The Range header as CouchDB takes it, of `length` bytes. *ret_count 0: send all of it. False: it
 * asks for what is not there.
 */
bool couch_ranges_parse(struct str header, uint64_t length, struct couch_range ret[COUCH_RANGES],
			size_t *ret_count);

#endif
