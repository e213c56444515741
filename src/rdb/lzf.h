/* Strings that Redis has compressed (LibLZF). Threading: none. */
#ifndef FROND_RDB_LZF_H
#define FROND_RDB_LZF_H

#include "base/status.h"
#include "base/str.h"

enum {
	/* A byte that is compressed stands for fewer bytes than that: 264 from three. */
	LZF_RATIO = 89,
};

/* STATUS_INVALID: the bytes do not become exactly `len`. */
MUST_USE enum status rdb_lzf_expand(struct str in, char *out, size_t len);

#endif
