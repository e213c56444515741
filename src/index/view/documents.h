/*
 * What views need of documents, which a model lends: changes by Sequence with the winners' bodies,
 * and what was purged.
 *
 * Threading: view_documents_register() before any other thread runs; the functions on any thread,
 * each in the transaction given.
 */
#ifndef FROND_INDEX_VIEW_DOCUMENTS_H
#define FROND_INDEX_VIEW_DOCUMENTS_H

#include "base/arena.h"
#include "catalog/catalog.h"
#include "catalog/seq.h"

struct view_doc {
	struct str id;
	struct catalog_seq seq;
	bool gone;       /* deleted, purged, or not to be mapped: it has no rows */
	struct str json; /* unless it is gone: what a map is given */
};

/* What is asked for. */
struct view_docs_want {
	struct catalog_seq after;
	size_t most;       /* documents */
	size_t most_bytes; /* of texts, after which a page ends */
	bool include_design;
	bool local_seq;
};

/* A page of documents by Sequence; all in the arena. */
struct view_docs {
	struct view_doc *docs;
	size_t count;
	struct catalog_seq last; /* up to which the page covers all changes */
	bool more;               /* there are changes behind `last` */
};

/* One kind of databases whose documents can be mapped. Static. */
struct view_documents {
	uint64_t kind; /* struct catalog_kind's number */
	/* The documents whose newest change comes after want->after, by snapshot reads. */
	enum status (*changes)(struct kv_tx *tx, const struct catalog_db *db,
			       const struct view_docs_want *want, struct arena *arena,
			       struct view_docs *ret, struct err *err);
	/* The Sequence of the newest change or purge, by a snapshot read. */
	enum status (*newest)(struct kv_tx *tx, const struct catalog_db *db,
			      struct catalog_seq *ret);
	/* How many documents there are, and how many changes after a Sequence, roughly. */
	enum status (*count)(struct kv_tx *tx, const struct catalog_db *db,
			     const struct catalog_seq *after, uint64_t *ret_docs,
			     uint64_t *ret_changes);
	/*
	 * The documents that purges after a Sequence have taken away whole: `gone`, with the
	 * Sequence of the purge. Those that have branches left are in the changes.
	 */
	enum status (*purges)(struct kv_tx *tx, const struct catalog_db *db,
			      const struct catalog_seq *after, size_t most, struct arena *arena,
			      struct view_docs *ret, struct err *err);
	/* Readers of purges (their names are the engine's): records they have not seen are kept. */
	enum status (*purge_reader_add)(struct kv_tx *tx, const struct catalog_db *db,
					struct str name, struct catalog_seq *ret, struct err *err);
	enum status (*purge_reader_advance)(struct kv_tx *tx, const struct catalog_db *db,
					    struct str name, const struct catalog_seq *seq,
					    struct err *err);
	enum status (*purge_reader_remove)(struct kv_tx *tx, const struct catalog_db *db,
					   struct str name, struct err *err);
};

void view_documents_register(const struct view_documents *documents); /* again is fine */

/* Those of the database's kind; NULL if its documents cannot be mapped. */
const struct view_documents *view_documents_of(const struct catalog_db *db);

#endif
