/*
 * Sequences: when something was changed. An Incarnation, one byte, and the versionstamp of the
 * transaction: one total order over all databases of a store, which never goes back, also when a
 * database moves to another store.
 *
 * Plain values. Threading: none of its own.
 */
#ifndef FROND_CATALOG_SEQ_H
#define FROND_CATALOG_SEQ_H

#include "base/big_endian.h"
#include "base/buf.h"
#include "base/status.h"
#include "base/str.h"
#include "kv/kv.h"

enum {
	CATALOG_SEQ_BYTES = 13,
	CATALOG_SEQ_HEX_BYTES = 26,
};

struct catalog_seq {
	uint8_t bytes[CATALOG_SEQ_BYTES]; /* Incarnation, then the 12-byte versionstamp */
};

/* The version of its commit, with which the versionstamp begins. */
static inline uint64_t
catalog_seq_version(const struct catalog_seq *seq)
{
	return big_endian_64(seq->bytes + 1);
}

/*
 * 26 hexadecimal characters, or "0" for the beginning. STATUS_INVALID otherwise. ("now" is the
 * door's to resolve.)
 */
MUST_USE enum status catalog_seq_parse(struct str text, struct catalog_seq *ret, struct err *err);
void catalog_seq_write(const struct catalog_seq *seq, struct buf *ret);
int catalog_seq_cmp(const struct catalog_seq *a, const struct catalog_seq *b);

/* Twelve bytes for a stamp that the commit fills in, but for the order within the transaction. */
void catalog_stamp(uint16_t order, uint8_t ret[KV_VERSIONSTAMP_BYTES]);

#endif
