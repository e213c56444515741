/*
 * The record of purges: what has been purged, by Sequence, for everything that is made from the
 * documents and lies behind them, such as indexes and views.
 *
 * Each document that loses heads to a purge leaves one record. The oldest are cleared beyond the
 * database's limit, but never one that a registered reader has not seen: a reader has a name, and
 * the Sequence up to which it has read.
 *
 *     rev_purge_reader_add(tx, db, name, &at);           // with what is built at that moment
 *     while (... rev_purges_page(tx, db, &at, most, arena, &page), page.count ...)
 *             …each of page.purges; at = page.purges[page.count - 1].seq;
 *     rev_purge_reader_advance(tx, db, name, &at);       // in the transaction that has used them
 *     rev_purge_reader_remove(tx, db, name);             // with what was built
 *
 * Every function that takes a transaction leaves the commit to its caller, and may be called again
 * in the next attempt. What is returned lives in the arena given. Threading: that of the
 * transaction.
 */
#ifndef FROND_MODEL_PURGES_H
#define FROND_MODEL_PURGES_H

#include "base/arena.h"
#include "catalog/catalog.h"
#include "catalog/seq.h"
#include "kv/kv.h"
#include "model/revisioned/revision.h"

enum {
	REV_PURGES_LIMIT_DEFAULT = 1000, /* _purged_infos_limit, as in CouchDB */
	REV_PURGE_ID_BYTES = 16,
	REV_PURGE_READER_BYTES = 256,  /* of a reader's name */
	REV_PURGES_TRIM_KEYS = 1000,   /* that one call of rev_purges_trim() looks at */
	REV_PURGES_PAGE = 1000,        /* records in a page at most */
	REV_PURGES_PAGE_BYTES = 65536, /* of records, after which a page ends */
};

/* One document in one purge. */
struct rev_purge {
	struct catalog_seq seq;
	uint8_t id[REV_PURGE_ID_BYTES]; /* random, of this purge of this document */
	struct str doc_id;
	struct rev_id *revs; /* the heads that have gone */
	size_t count;
};

struct rev_purge_page {
	struct rev_purge *purges; /* by Sequence */
	size_t count;             /* 0: there are no more */
};

/* The records after a Sequence, `most` at most; 0: as many as fit. STATUS_NEWER, explained. */
MUST_USE enum status rev_purges_page(struct kv_tx *tx, const struct catalog_db *db,
				     const struct catalog_seq *since, size_t most,
				     struct arena *arena, struct rev_purge_page *ret,
				     struct err *err);

/* ---- The limit ---- */

MUST_USE enum status rev_purges_limit_get(struct kv_tx *tx, const struct catalog_db *db,
					  struct arena *arena, uint64_t *ret);
/* STATUS_INVALID for 0. Clears nothing: rev_purges_trim(). */
MUST_USE enum status rev_purges_limit_set(struct kv_tx *tx, const struct catalog_db *db,
					  uint64_t limit, struct err *err);

/* Whether there are more records than the limit, by a counter: two keys in one round trip. */
MUST_USE enum status rev_purges_over(struct kv_tx *tx, const struct catalog_db *db,
				     struct arena *arena, bool *ret);

/*
 * Clears the oldest records beyond the limit, as far as all readers have seen them. It looks at
 * REV_PURGES_TRIM_KEYS keys at most; `ret_more`: there may be more to clear.
 */
MUST_USE enum status rev_purges_trim(struct kv_tx *tx, const struct catalog_db *db,
				     struct arena *arena, bool *ret_more, struct err *err);

/* ---- Readers ---- */

/*
 * Registers a reader that has nothing to learn from purges before this transaction: `ret` is the
 * Sequence of the newest one. A reader that is there already begins anew.
 */
MUST_USE enum status rev_purge_reader_add(struct kv_tx *tx, const struct catalog_db *db,
					  struct str name, struct catalog_seq *ret,
					  struct err *err);

/* How far it has read. STATUS_NOT_FOUND. */
MUST_USE enum status rev_purge_reader_get(struct kv_tx *tx, const struct catalog_db *db,
					  struct str name, struct catalog_seq *ret,
					  struct err *err);

/* It has read up to `seq`; never goes back. STATUS_NOT_FOUND: it is not registered (any more). */
MUST_USE enum status rev_purge_reader_advance(struct kv_tx *tx, const struct catalog_db *db,
					      struct str name, const struct catalog_seq *seq,
					      struct err *err);

/* Reads no key; one that is not there is fine. */
MUST_USE enum status rev_purge_reader_remove(struct kv_tx *tx, const struct catalog_db *db,
					     struct str name, struct err *err);

#endif
