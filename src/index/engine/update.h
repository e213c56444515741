/*
 * Keeping indexes in the transaction that changes a document, and filling those that are new.
 *
 * A model calls index_update() for each document whose winner changes, with the body that had
 * entries and the one that gets them. Entries that both have are neither cleared nor set. No
 * transaction is committed here.
 *
 * Threading: on the thread or fiber that has the transaction.
 */
#ifndef FROND_INDEX_ENGINE_UPDATE_H
#define FROND_INDEX_ENGINE_UPDATE_H

#include "catalog/tally.h"
#include "index/engine/entry.h"

/* The name of the counter of all entries of a database, in the subspace of the kind's totals. */
#define INDEX_STAT_ENTRIES "entry_count"

/* What a batch of edits changes in the indexes of a database. All fields are private. */
struct index_writer {
	struct kv_tx *tx;
	const struct catalog_db *db;
	const struct index_set *set;
	struct catalog_counts *counts; /* of the model's batch */
	size_t list;                   /* which of the kind's lists the entries are */
	struct budget_part *part;
	struct index_work work; /* its arena is the writer's own */
	int64_t entries_delta;
	struct index_refusal refusal; /* after STATUS_UNSUPPORTED */
	struct str duplicate;         /* after STATUS_DUPLICATE: the value of the new entry */
	struct str taken;             /* and the key of the entry in its way, in the work's arena */
	bool retired;                 /* indexes of another collation have been put out of use */
	struct buf key;

	/* New entries of a build that are not written yet, in an arena of their own. */
	struct kv_pair *kept;
	size_t kept_count;
	size_t kept_cap;
	struct arena *kept_arena;
};

/*
 * `counts` outlives the writer, whose memory counts where that of `arena` does. `list` is the index
 * of the entries in kind->lists.
 */
void index_writer_init(struct index_writer *writer, struct kv_tx *tx, const struct catalog_db *db,
		       struct catalog_counts *counts, size_t list, struct arena *arena);
void index_writer_release(struct index_writer *writer);

/* What changes of a document. Sources that are NULL have no entries. */
struct index_change {
	const struct index_source *before;
	struct catalog_seq before_seq; /* the Sequence of the winner that `before` is of */
	const struct index_source *after;
	/*
	 * By index in the set's `kept`: the change cannot touch its entries, and the sources need
	 * not have what it looks at. NULL: all of them are looked at.
	 */
	const bool *untouched;
};

/*
 * Takes out the entries of `before` and puts in those of `after`. Reads nothing, but: for an index
 * that is BUILDING, and a document that is older than it, whether the entries of `before` are
 * there (the builder may have been there or not); for a UNIQUE one, the range of each new entry's
 * values. All of these go out together, in one round trip.
 *
 * Where documents have no Sequences, `before_seq` says nothing: a change of the entries of an index
 * that is BUILDING leaves a mark with the document's id, by which the build knows that the document
 * has its entries (build.h).
 *
 * STATUS_DUPLICATE if a UNIQUE index has these values from another document: nothing was written
 * then, and *ret_def is that index. STATUS_UNSUPPORTED if an index cannot have the document: then,
 * too, nothing was written, and writer->refusal says why. Its other failures are those of
 * index_entries_make().
 */
MUST_USE enum status index_update(struct index_writer *writer, const struct index_change *change,
				  const struct index_def **ret_def);

/* At the end of a batch: adds to the counter of all entries, (P, totals, "entry_count"). */
MUST_USE enum status index_writer_finish(struct index_writer *writer);

/* ---- Building and clearing ---- */

typedef enum status index_writing(struct index_writer *writer, void *arg);

/*
 * Runs `body` with a writer of its own in the transaction, and adds what that has counted. `list`
 * is as above; what the writer needs is in `arena`, what the counts need in `lasting`, to which the
 * body adds nothing that it takes back. A failure of the body is returned, and nothing is counted.
 */
MUST_USE enum status index_writer_run(struct kv_tx *tx, const struct catalog_db *db, size_t list,
				      struct arena *arena, struct arena *lasting,
				      index_writing *body, void *arg);

/*
 * Sets the entries of a document in one index that is BUILDING: a document whose Sequence is not
 * greater than def->created (index_build_wants()). The caller's transaction must conflict with
 * edits of the document, and with anybody who builds the same range.
 *
 * `fresh`: the caller knows that the index has no entry of the document, so no key is read unless
 * the index is UNIQUE. Otherwise the key of each entry is read. New entries may be kept, to be
 * written in key order, until index_writer_finish(). STATUS_DUPLICATE as index_update().
 */
MUST_USE enum status index_build_document(struct index_writer *writer, const struct index_def *def,
					  const struct index_source *source, bool fresh);

/*
 * Clears at most `limit` entries of an index that is DROPPED or FAILED, and counts them.
 * `*ret_more` is true if some are left.
 */
MUST_USE enum status index_clear(struct index_writer *writer, const struct index_def *def,
				 size_t limit, bool *ret_more);

#endif
