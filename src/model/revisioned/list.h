/*
 * Lists: changes by Sequence, documents by id.
 *
 * Every function that takes a transaction leaves the commit to its caller, and may be called again
 * in the next attempt. What is returned lives in the arena given. Threading: that of the
 * transaction.
 */
#ifndef FROND_MODEL_LIST_H
#define FROND_MODEL_LIST_H

#include "base/arena.h"
#include "catalog/catalog.h"
#include "catalog/name_range.h"
#include "catalog/seq.h"
#include "kv/kv.h"
#include "model/revisioned/revision.h"

/* ---- Feeds: one page a call, so that a long answer can use many transactions ---- */

struct rev_change {
	struct catalog_seq seq;
	struct str id;
	struct rev_id rev; /* the winner's */
	bool deleted;      /* the winner's */
	uint64_t branch_count;
};

struct rev_change_page {
	struct rev_change *changes;
	size_t count;
	bool more; /* the page ended before the range did: go on after the last Sequence */
};

/*
 * Changes with since < Sequence <= until, oldest first, or newest first when descending (`since` is
 * then still the lower bound; to go on, lower `until` by exclusive_until).
 */
struct rev_change_range {
	struct catalog_seq since;
	struct catalog_seq until; /* all FF: no end */
	bool exclusive_until;
	bool descending;
	size_t limit; /* changes at most a page */
};

MUST_USE enum status rev_changes_page(struct kv_tx *tx, const struct catalog_db *db,
				      const struct rev_change_range *range, struct arena *arena,
				      struct rev_change_page *ret);

/*
 * The changes of a range page after page, with the next ones read while a page is worked on.
 *
 *     rev_changes_begin(&c, tx, db, &range);    // its limit: of all pages together; 0: none
 *     while (... rev_changes_next(&c, most, keep, arena, &page) ...)
 *     rev_cursor_end(&c);                       // before the transaction is reset; again is fine
 *
 * A page may have fewer than `most` changes, and at the end none although there was to be `more`.
 * Its strings are the cursor's, valid until the next call, or copied into the arena (`keep`).
 */
struct rev_cursor {
	struct kv_scan scan; /* private, as all of it but `open` */
	size_t prefix_len;
	uint64_t skip;
	bool open;
};

MUST_USE enum status rev_changes_begin(struct rev_cursor *c, struct kv_tx *tx,
				       const struct catalog_db *db,
				       const struct rev_change_range *range);
MUST_USE enum status rev_changes_next(struct rev_cursor *c, size_t most, bool keep,
				      struct arena *arena, struct rev_change_page *ret);
void rev_cursor_end(struct rev_cursor *c);

/*
 * The changes of these documents that lie in the range, in its order; its limit does not count. One
 * key a document, in one wave. `ids` is sorted; one that comes again is passed over.
 */
MUST_USE enum status rev_changes_of(struct kv_tx *tx, const struct catalog_db *db,
				    const struct rev_change_range *range, const struct str *ids,
				    size_t count, struct arena *arena, struct rev_change_page *ret);

/*
 * How many changes lie in the range (its limit aside): the counters, and at most the changes of one
 * range of them at each end that is not the list's own.
 */
MUST_USE enum status rev_changes_count(struct kv_tx *tx, const struct catalog_db *db,
				       const struct rev_change_range *range, uint64_t *ret);

struct rev_entry {
	struct str id;
	struct rev_id rev;
};

struct rev_entry_page {
	struct rev_entry *entries;
	size_t count;
	uint64_t skipped; /* of range->skip: a page may end in the middle of skipping */
	bool more;
	struct str
		last; /* the last id that the page passed, skipped ones included: go on after it */
};

/* Documents whose winner is not deleted, by id; ranges as catalog_list() has them. */
MUST_USE enum status rev_all_docs_page(struct kv_tx *tx, const struct catalog_db *db,
				       const struct name_range *range, struct arena *arena,
				       struct rev_entry_page *ret);

/* As rev_changes_begin() and rev_changes_next(); a page that skips has no entries. */
MUST_USE enum status rev_all_docs_begin(struct rev_cursor *c, struct kv_tx *tx,
					const struct catalog_db *db,
					const struct name_range *range);
MUST_USE enum status rev_all_docs_next(struct rev_cursor *c, size_t most, bool keep,
				       struct arena *arena, struct rev_entry_page *ret);

/*
 * Roughly how many documents lie in the range, for planning: by what this process knows of the
 * counters, which reads nothing; exactly, by reading them, in a small database.
 */
MUST_USE enum status rev_all_docs_estimate(struct kv_tx *tx, const struct catalog_db *db,
					   const struct name_range *range, uint64_t *ret);

/* How many of them come before the range begins, its skip aside, exactly. */
MUST_USE enum status rev_all_docs_offset(struct kv_tx *tx, const struct catalog_db *db,
					 const struct name_range *range, uint64_t *ret);

#endif
