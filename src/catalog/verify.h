/*
 * Checks a store: its own keys, every database by the function of its kind, and whether there are
 * keys that belong to nothing. Reads all of it, once, and memory does not grow with it but for
 * eight bytes a database. Tells findings, which are no failure.
 *
 * One transaction sees one version, so writers may go on. An engine that keeps versions for seconds
 * only answers STATUS_TX_TOO_OLD to what takes longer; it can be read at several versions while
 * nobody writes (`still`), or in ranges of its keys while others write (`ranges`). Of a range
 * everything that belongs to its documents is read at one version, so writers cannot make it
 * differ. What only all ranges together tell is left out (docs/OPERATING.md lists it).
 *
 * Threading: any thread that may wait.
 */
#ifndef FROND_CATALOG_VERIFY_H
#define FROND_CATALOG_VERIFY_H

#include "base/status.h"
#include "base/str.h"
#include "catalog/space.h"
#include "kv/kv.h"

struct catalog_db;
struct catalog_kind;
struct view_functions;

/* Everything is borrowed for the time of the call. */
struct catalog_finding {
	const char *kind;              /* its stable name, such as "branch_count"; static */
	struct str database;           /* ptr NULL: the store's own keys, or those of no database */
	const struct catalog_kind *of; /* the kind of that database; NULL likewise */
	struct str key;                /* where; for something missing, where it should be */
	const char *text;              /* what is wrong */
};

struct catalog_verify_sum {
	uint64_t databases;
	uint64_t documents; /* with a winner, deleted or not; local ones are not counted */
	uint64_t leaves;    /* of bodies, local documents' included */
	uint64_t packed;    /* bodies that have no leaves, likewise */
	uint64_t keys;      /* read, single ones looked up aside */
	uint64_t bytes;     /* of those keys and their values */
	uint64_t functions; /* that reduce, and could not be called to compare stored results */
	uint64_t findings;
	uint64_t unchecked; /* of these: what took too long to be read at one version */
};

/* Lends functions of design documents, to compare results that they have made. Borrowed. */
struct catalog_verify_lender {
	const struct view_functions *functions; /* index/view/functions.h */
	/*
	 * What they are called with, for the design document `id` with that text. Given back by
	 * functions->release(). NULL: they cannot be called.
	 */
	void *(*lend)(void *arg, const struct catalog_db *db, struct str id, struct str text);
	void *arg;
};

struct catalog_verify_options {
	void (*found)(const struct catalog_finding *finding, void *arg);
	/* Called now and then with the sums so far; NULL for not at all. */
	void (*progress)(const struct catalog_verify_sum *sum, void *arg);
	void *arg;
	const struct catalog_verify_lender *lender; /* NULL: no function is called */
	bool still;          /* nobody writes: as many transactions as it takes, on any engine */
	bool ranges;         /* others write: each range at a version of its own */
	uint64_t rate_bytes; /* of keys and values that are gone through in a second; 0: no limit */
	size_t range_units;  /* documents or keys of a range at most; 0: the default */
};

/*
 * Checks the whole store, or (catalog_verify_db) one database alone. Failures are STATUS_NOT_FOUND
 * for a database that is not there, STATUS_NEWER for one that a newer frond has written,
 * STATUS_NOMEM, STATUS_LIMIT, and what the store itself answers to reads. `ret` has the sums in any
 * case.
 */
MUST_USE enum status catalog_verify_store(struct kv_tx *tx,
					  const struct catalog_verify_options *options,
					  struct catalog_verify_sum *ret, struct err *err);
MUST_USE enum status catalog_verify_db(struct kv_tx *tx, enum catalog_space space, struct str name,
				       const struct catalog_verify_options *options,
				       struct catalog_verify_sum *ret, struct err *err);

/*
 * The same for a database that nobody writes to, which may have no name yet. `still` need not be
 * set.
 */
MUST_USE enum status catalog_verify_still(struct kv_store *store, const struct catalog_db *db,
					  const struct catalog_verify_options *options,
					  struct catalog_verify_sum *ret, struct err *err);

#endif
