/*
 * The marks of an index of documents without Sequences, while it is built. A writer who changes
 * entries of the index leaves a mark with the document's id (index_key_mark()), so a step of the
 * build passes over the documents that have one. For the others the step gets read conflicts with
 * the places of their marks: if a writer sets one meanwhile, the step fails, and finds the mark the
 * next time. Writers that change none of the index's entries are in nobody's way.
 *
 * All places between two marks are one conflict range, which costs next to nothing. It also has the
 * places of documents that come meanwhile, whose writers need not be in the way: where some were,
 * `exact` gives each document a range of its own.
 *
 * Threading: that of the transaction.
 */
#ifndef FROND_INDEX_ENGINE_MARKS_H
#define FROND_INDEX_ENGINE_MARKS_H

#include "index/engine/build.h"
#include "kv/kv.h"

/* All of it is private. Zero: index_marks_close() does nothing. */
struct index_marks {
	struct kv_tx *tx;
	const struct catalog_db *db;
	const struct index_def *def;
	struct kv_scan scan;
	bool open; /* the scan */
	bool done;
	bool exact;
	bool has_last;   /* `last` is a mark that has not been passed */
	size_t prefix;   /* of a mark's key, in front of the id */
	struct buf last; /* the id of the mark that was read last */
	struct buf from; /* where the conflict range begins that is still to be added */
	struct buf key;
};

/*
 * Begins behind the document stretch->after; empty: with the first one. `db` and `def` have to
 * last.
 */
MUST_USE enum status index_marks_open(struct index_marks *m, struct kv_tx *tx,
				      const struct catalog_db *db, const struct index_def *def,
				      const struct index_stretch *stretch);

/*
 * Whether the document has a mark. Each call is with a greater id than the one before. What it puts
 * into the arena is not needed after the call.
 */
MUST_USE enum status index_marks_have(struct index_marks *m, struct str id, struct arena *arena,
				      bool *ret);

/*
 * At the end, behind the last document that was asked for: adds the conflicts that are missing. Not
 * before may the transaction be committed.
 */
MUST_USE enum status index_marks_finish(struct index_marks *m, struct str last);

void index_marks_close(struct index_marks *m);

#endif
