/*
 * Writing documents: edits, and purging what should never have been there.
 *
 * Every function that takes a transaction leaves the commit to its caller, and may be called again
 * in the next attempt. What is returned lives in the arena given. Threading: that of the
 * transaction.
 */
#ifndef FROND_MODEL_WRITE_H
#define FROND_MODEL_WRITE_H

#include "base/arena.h"
#include "catalog/catalog.h"
#include "doc/doc.h"
#include "kv/kv.h"
#include "model/revisioned/att.h"
#include "model/revisioned/revision.h"

enum {
	REV_DOC_ID_BYTES = 7000, /* leaves room for a path in a key of 10,000 */
	REV_BATCH_EDITS = 65535, /* edits in one transaction: two bytes of a versionstamp */
};

enum rev_edit_kind {
	/*
	 * Extends the live head `parent`. With no parent: creates the document, or, if all its
	 * branches are deleted, starts it again from the deleted winner. The revision of a deleted
	 * head is always a conflict.
	 */
	REV_EDIT_INTERACTIVE,
	/* new_edits=false: brings a revision made elsewhere, with its history. */
	REV_EDIT_REPLICATED,
};

struct rev_text;

struct rev_edit {
	enum rev_edit_kind kind;
	struct str id;
	bool deleted;
	struct doc doc;       /* leaves or packed; `term` for the hash of interactive edits */
	struct rev_id parent; /* INTERACTIVE: the revision that was named; pos 0: none */
	/* REPLICATED: the new revision, then its ancestors, newest first: pos of [0] counts down.
	 */
	uint64_t start;
	struct str *history;
	size_t history_count;
	/*
	 * All attachments of the new revision, in the order in which they count for its hash; of
	 * the extended revision's own, those that are not here are given up.
	 */
	const struct rev_att_edit *atts;
	size_t atts_count;
	/* The body's text, if it is in the store already (body.h); NULL: it is not. */
	const struct rev_text *text;
	/*
	 * INTERACTIVE, in a partitioned database: while the document's partition has so many bytes
	 * or more, an edit that makes the document larger is refused; 0: however large it is. The
	 * counter of the partition is read as a snapshot, so edits at the same time may pass the
	 * limit together.
	 */
	uint64_t max_partition_bytes;
};

struct rev_result {
	enum status
		status; /* STATUS_OK, STATUS_DOC_CONFLICT, or what is wrong with this edit alone */
	struct str att; /* STATUS_ATT_MISSING: its name, borrowed from the edit */
	/* STATUS_DUPLICATE: the name of the index, borrowed from the database's description */
	struct str index;
	struct rev_id rev; /* STATUS_OK: the new revision; REPLICATED: borrowed from the edit */
	bool unchanged;    /* REPLICATED: it was known already */
};

/*
 * Applies the edits, each for itself: a conflict of one is told in its result and leaves the others
 * alone. All reads go out in one wave. The ids must be distinct within a transaction, because an
 * edit cannot read the versionstamp that another wrote: STATUS_INVALID for the whole. Edits that
 * can merge are excepted: all of one document are applied in their order, and written together.
 * `first` is the number of edits that this transaction has had before (REV_BATCH_EDITS in all).
 *
 * Any status but STATUS_OK is the transaction's: nothing is to be committed. Of one edit alone:
 * STATUS_DOC_CONFLICT; STATUS_KEY_TOO_LARGE for an id (or an id and an opaque hash) past the
 * limits; STATUS_PATH_TOO_LONG for a member that fits no key below them; STATUS_INVALID for an
 * empty id, one that a partitioned database cannot have (rev_partition_id_fault()), a history that
 * is none or two attachments of one name; STATUS_ATT_MISSING for a stub that stands for nothing;
 * STATUS_TIMEOUT for an upload that was given up meanwhile; STATUS_PARTITION_FULL.
 *
 * Costs: extending the winner 1 key in 1 round trip, extending a loser 2 in 2, deleting
 * the winner 2 in 1, a document with no parent given 1 in 1, REPLICATED N in 1, however many of
 * them merge. New documents with ascending ids share a read (neighbours.h), and take 2 round trips
 * where others lie between them. Where the edit or what it replaces has attachments, those are
 * read as well; see README.md.
 */
MUST_USE enum status rev_write(struct kv_tx *tx, const struct catalog_db *db,
			       const struct rev_edit *edits, size_t count, size_t first,
			       struct arena *arena, struct rev_result *ret_results,
			       struct err *err);

/*
 * True if rev_write() reads nothing once it has written, as a rule: the database has no indexes.
 * Edits of losing branches and those that have to do with attachments may still do so.
 */
bool rev_write_reads_first(const struct catalog_db *db);

/*
 * True if the edit can be in a transaction together with others of its document that can merge,
 * too: it is replicated, and what it needs is in it or in the document's other branches.
 */
bool rev_edit_can_merge(const struct rev_edit *edit);

/* ---- Design documents ---- */

struct index_source;

/* The winner of a document before or after a change. */
struct rev_design_change {
	struct str id;
	const struct index_source *before; /* NULL: there was none, or a deleted one */
	const struct index_source *after;  /* likewise */
};

/*
 * Called in the transaction that changes the winner of a design document, whoever writes it: an
 * edit, a replication, a purge; once for each of them in a transaction (and again in each
 * attempt), before the document itself is written. It finds the definitions of indexes in
 * index_set_of(db), and reads none from the store: what this transaction has created there cannot
 * be read yet.
 * A failure is the transaction's, and nothing is committed: what is wrong with the document itself
 * is no failure, since it may have come by replication.
 */
typedef enum status rev_design_changed(struct kv_tx *tx, const struct catalog_db *db,
				       const struct rev_design_change *change, struct arena *arena);

/* Sets what is called, for all databases of the process; NULL: nothing. Before any other thread. */
void rev_design_hook(rev_design_changed *changed);

/* True for a document whose changes of winner are to be reported. */
typedef bool rev_is_followed(const struct catalog_db *db, struct str id);

/*
 * Sets callbacks for further documents than design documents; `is_followed` selects them. NULL:
 * there are none. `changed` is not called for an edit that a unique index refuses. Before any other
 * thread; a call that repeats the one before changes nothing and may come later.
 */
void rev_follow(rev_is_followed *is_followed, rev_design_changed *changed);

/* ---- Purging ---- */

enum {
	REV_PURGE_DOCS = 100, /* in one transaction */
};

struct rev_purge_query {
	struct str id;
	const struct rev_id *revs;
	size_t count;
};

struct rev_purge_result {
	struct rev_id *revs; /* heads that are gone, in the query's order; borrowed hashes */
	size_t count;
};

/*
 * Takes heads out of documents as if they had never been, with what only they know of their
 * history: no tombstone tells, and no replication. What is no head is passed over. Of the branches
 * that remain the best becomes the winner, under a new Sequence, so that feeds and indexes see the
 * change; a document without any branch left is gone from every subspace.
 *
 * Ids must be distinct, at most REV_PURGE_DOCS of them (STATUS_INVALID). For k revisions of a
 * document the last k + 1 branches are read, and in a second round trip those of the k that are not
 * among them; in another one, attachments.
 */
MUST_USE enum status rev_purge(struct kv_tx *tx, const struct catalog_db *db,
			       const struct rev_purge_query *queries, size_t count,
			       struct arena *arena, struct rev_purge_result *ret_results,
			       struct err *err);

#endif
