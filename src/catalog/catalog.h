/*
 * The databases of a store, of every kind. Each has a name in a name space, a number with which all
 * its keys begin, and a description. The catalog creates, opens, lists and deletes databases. The
 * model of a database decides what is in it (kind.h).
 *
 *     (ROOT, 1, name)         → a database's description (description.c); names of CouchDB's space
 *     (ROOT, 1, space, name)  → the same in any other name space
 *     (ROOT, 2)               → the number behind the last block that was taken (kv/prefix.h)
 *     (ROOT, 4, P)            a deleted database, whose keys are still to be cleared (drop.c)
 *     (ROOT, 16, ms, P)       one of which some keys are kept until then
 *     (ROOT, 17, …)           what the clocks of its processes showed (clock.h)
 *     (ROOT, 5, …)            → what happened to databases (events.h)
 *     (ROOT, 6)               → the Incarnation that new databases begin with; absent: 0
 *     (ROOT, 7, …)            → a database on its way to or from another store (move.h)
 *     (ROOT, 9, …)            → settings of all servers of the store (stored_settings.h)
 *
 * No function that takes a transaction commits it; the caller does. Such a function may be called
 * again in the next attempt. Descriptions are counted and immutable. Threading: a function belongs
 * to the thread of its transaction; a catalog_cache belongs to one thread.
 */
#ifndef FROND_CATALOG_CATALOG_H
#define FROND_CATALOG_CATALOG_H

#include "base/arena.h"
#include "catalog/kind.h"
#include "catalog/name_range.h"
#include "kv/kv.h"

enum {
	CATALOG_NAME_BYTES = 238, /* the same limit as in CouchDB; longer names are refused */
	CATALOG_DROP_KEYS = 5000, /* keys of a deleted database that one transaction clears */
	CATALOG_SWEEP_PLACE_BYTES = 256, /* kept of the key up to which a database is cleared */
};

/* Why a database can only be read: it is, or was, relocated (move.h). Stored: never renumber. */
enum catalog_fence {
	CATALOG_FENCE_NONE = 0,
	CATALOG_FENCE_MOVING = 1,
	/* the source of a move that was to be kept: it can be read and deleted */
	CATALOG_FENCE_KEPT = 2,
};

struct catalog_tally;
struct catalog_tallies;
struct chores;

/* A database's description, immutable and counted: a writer may replace it while a reader uses it.
 */
struct catalog_db {
	struct str name;
	struct str prefix; /* (P,) encoded, with which all its keys begin */
	uint64_t number;   /* P */
	const struct catalog_kind *kind;
	uint8_t incarnation;
	uint8_t uuid[16];
	uint64_t created_ms; /* since 1970 */
	enum catalog_fence fence;
	uint64_t options[CATALOG_OPTIONS]; /* the kind of the database says what they mean */
	struct catalog_tally *tally; /* what writers know of its counters by range; NULL: nothing */
	void *extension; /* what the kind keeps with an opened database; NULL: nothing */
	bool bare;       /* opened by catalog_open_bare(): tally and extension have not been read */
	/* It was opened with a cache, so whoever has it has read the metadata version. */
	bool by_version;
};

struct catalog_db *catalog_db_ref(struct catalog_db *db);
void catalog_db_unref(struct catalog_db *db); /* NULL is fine */

/*
 * Every function that writes to a database calls this first. Returns STATUS_UNAVAILABLE while the
 * database is being moved, STATUS_FORBIDDEN for one that a move has kept at its source.
 */
MUST_USE enum status catalog_db_check_writable(const struct catalog_db *db, struct err *err);

/*
 * Does the same for the database as this transaction sees it, whatever the description says, by
 * reading its key. Returns STATUS_NOT_FOUND if the database was deleted meanwhile, even if another
 * one has its name now.
 */
MUST_USE enum status catalog_db_check_now(struct kv_tx *tx, const struct catalog_db *db,
					  struct err *err);

/* ---- The cache (cache.c) ---- */

/*
 * Descriptions of databases, which are valid until the metadata version of the store changes. A
 * cache belongs to one thread.
 */
struct catalog_cache;
struct catalog_cache *catalog_cache_new(void); /* NULL when out of memory */
void catalog_cache_free(struct catalog_cache *cache);

/*
 * Gives the cache what all caches of a process share about counters by range (tally.h). Call this
 * before the cache is used.
 */
void catalog_cache_share(struct catalog_cache *cache, struct catalog_tallies *tallies);

/*
 * Returns the description that the cache last saw, or NULL if it has seen none. The pointer is
 * borrowed until the cache is used again. The description may be out of date.
 */
const struct catalog_db *catalog_cache_peek(const struct catalog_cache *cache,
					    enum catalog_space space, struct str name);

/* ---- Databases (databases.c) ---- */

/*
 * Creates a database of this kind; the model gives the meaning of `options`. Returns STATUS_EXISTS;
 * STATUS_INVALID for a name that is not allowed; STATUS_UNAVAILABLE while a database of this name
 * is being moved here; what admit.h says. Does not touch the metadata version, and conflicts with
 * no other creation.
 */
MUST_USE enum status catalog_create(struct kv_tx *tx, const struct catalog_kind *kind,
				    struct str name, const uint64_t options[CATALOG_OPTIONS],
				    struct err *err);

/*
 * Deletes the database and creates an empty one in its place, in one transaction: there are no more
 * than before, so nobody is asked (admit.h). Returns what catalog_delete() and catalog_create() do.
 */
MUST_USE enum status catalog_replace(struct kv_tx *tx, const struct catalog_kind *kind,
				     struct str name, const uint64_t options[CATALOG_OPTIONS],
				     struct err *err);

/*
 * Deletes the database with the commit. Its prefix is never used again; catalog_drop_sweep() clears
 * its keys, those that its kind keeps for a while at last. Returns STATUS_NOT_FOUND if there is no
 * such database. Touches the metadata version.
 */
MUST_USE enum status catalog_delete(struct kv_tx *tx, enum catalog_space space, struct str name,
				    struct err *err);

/*
 * Gives a database another name, and nothing else: its number, and so its keys, stay. Feeds of
 * events are told of the old name's end and of the new one's beginning. Returns STATUS_NOT_FOUND;
 * STATUS_EXISTS if the new name is taken; STATUS_INVALID; STATUS_UNAVAILABLE while either of them
 * is being moved. Touches the metadata version.
 */
MUST_USE enum status catalog_rename(struct kv_tx *tx, const struct catalog_kind *kind,
				    struct str from, struct str to, struct err *err);

/*
 * Gets the description of the database as this transaction sees it; the transaction then conflicts
 * with a deletion of the database. Reads no key if the cache has the description (`cache` may be
 * NULL). The caller owns the reference. Returns STATUS_NOT_FOUND ("Database does not exist.").
 */
MUST_USE enum status catalog_open(struct kv_tx *tx, struct catalog_cache *cache,
				  enum catalog_space space, struct str name,
				  struct catalog_db **ret, struct err *err);

/*
 * The same for a transaction that only reads documents. It does not read the counters and the
 * definitions of indexes, so a database that the cache does not have costs one round trip. The
 * description may be bare: nobody may write with it, or use its indexes.
 */
MUST_USE enum status catalog_open_bare(struct kv_tx *tx, struct catalog_cache *cache,
				       enum catalog_space space, struct str name,
				       struct catalog_db **ret, struct err *err);

/*
 * Returns a new reference to the description in the cache, or NULL if the cache has none that this
 * transaction may use. Reads no key. The description may be bare.
 */
struct catalog_db *catalog_open_cached(struct kv_tx *tx, struct catalog_cache *cache,
				       enum catalog_space space, struct str name);

/* Reads a page of the names in a name space. */
MUST_USE enum status catalog_list(struct kv_tx *tx, enum catalog_space space,
				  const struct name_range *range, struct arena *arena,
				  struct name_page *ret);

/*
 * The same in a transaction of its own: at most `limit` names behind `place`, or the first ones if
 * that is empty. For work that goes through all databases, a page at a time.
 */
MUST_USE enum status catalog_list_behind(struct kv_store *store, enum catalog_space space,
					 struct str place, size_t limit, struct arena *arena,
					 struct name_page *ret, struct err *err);

/* A page of all databases, of every name space. */
struct catalog_page {
	struct catalog_db *dbs; /* in the arena: not counted, and without a tally */
	size_t count;
	bool more;
};

/*
 * Reads at most `limit` databases behind `*last`, which is empty for the first page, and sets
 * `*last` to the key of the last one on the page. Returns STATUS_NEWER, explained, for a
 * description that a newer frond wrote: then there is no page, and `*last` is its key, so that the
 * caller may go on behind it. STATUS_INVALID, explained, if `*last` is nothing of the kind.
 */
MUST_USE enum status catalog_all(struct kv_tx *tx, struct buf *last, size_t limit,
				 struct arena *arena, struct catalog_page *ret, struct err *err);

/*
 * Goes through all databases, a page in a transaction of its own each time, so that what is done to
 * them in between may take transactions, too. Those that a newer frond wrote are left out. All of
 * it is the caller's; one thread.
 */
struct catalog_walk {
	struct catalog_page page; /* valid until the next call; `more`: there is a next page */
	struct buf last;          /* private, as what follows */
	struct buf next;
	struct arena *arena;
	struct err *err;
};

/* STATUS_NOMEM. catalog_walk_end() is due in any case. */
MUST_USE enum status catalog_walk_begin(struct catalog_walk *walk);
/* Reads the next page, which may be empty. */
MUST_USE enum status catalog_walk_next(struct catalog_walk *walk, struct kv_store *store,
				       struct err *err);
void catalog_walk_end(struct catalog_walk *walk);

/*
 * Changes one option of the database. Returns STATUS_NOT_FOUND if the database was deleted
 * meanwhile, even if another one has its name now. Touches the metadata version.
 */
MUST_USE enum status catalog_option_set(struct kv_tx *tx, const struct catalog_db *db,
					size_t option, uint64_t value, struct err *err);

/*
 * Exchanges the names of two databases of one name space, and nothing else: whoever has opened one
 * of them still has the same database. Returns STATUS_NOT_FOUND. Touches the metadata version.
 */
MUST_USE enum status catalog_swap(struct kv_tx *tx, enum catalog_space space, struct str a,
				  struct str b, struct err *err);

/*
 * Gets the engine's estimate of the bytes that the database takes. This may take a millisecond, so
 * do not call it for every page.
 */
MUST_USE enum status catalog_db_bytes(struct kv_tx *tx, const struct catalog_db *db, uint64_t *ret);

/* ---- What deleted databases leave (drop.c) ---- */

/* How far a deleted database is cleared: of its keys in front of `key` none is left. */
struct catalog_sweep_place {
	uint64_t number; /* of the database */
	size_t len;      /* 0: nothing is known to be cleared */
	char key[CATALOG_SWEEP_PLACE_BYTES];
};

/* The clearing of a store's deleted databases, and how far the present one is cleared. */
struct catalog_sweeping {
	struct kv_store *store;
	struct catalog_sweep_place place; /* zeroed at first */
};

/*
 * Clears keys of deleted databases, CATALOG_DROP_KEYS in each transaction (or all at once where the
 * engine clears ranges cheaply), in at most `transactions` transactions. What a kind keeps
 * (kind.h) stays until `now_ms` has passed its time. `*ret_more` is true if keys are left that can
 * be cleared now. Call this from time to time, from one thread of a process.
 */
MUST_USE enum status catalog_drop_sweep(struct catalog_sweeping *s, uint64_t now_ms,
					unsigned transactions, bool *ret_more, struct err *err);

/* Adds a chore that calls catalog_drop_sweep(). `s` and its store outlive the registry. */
void catalog_chores_add(struct chores *chores, struct catalog_sweeping *s);

/* ---- Incarnations (incarnation.c) ---- */

/* What new databases begin with; no database of the store has a greater one. */
MUST_USE enum status catalog_store_incarnation(struct kv_tx *tx, uint8_t *ret);

/*
 * Raises the Incarnation of one database, because its store continues elsewhere: each change from
 * now on gets a Sequence greater than any that a client has seen. An Incarnation of 255 stays 255.
 * Touches the metadata version. Returns STATUS_NOT_FOUND if there is no such database.
 */
MUST_USE enum status catalog_incarnation_raise(struct kv_tx *tx, enum catalog_space space,
					       struct str name, struct err *err);

/*
 * Does the same for every database of a store that nobody else uses, in as many transactions as
 * needed. `*ret_count` (unless NULL) gets the number of databases.
 */
MUST_USE enum status catalog_incarnations_raise(struct kv_store *store, uint64_t *ret_count,
						struct err *err);

/*
 * Returns STATUS_INVALID, with an explanation for the client, if `since` is greater than every
 * Sequence that the store can have assigned in any database: a reader that continued after it would
 * wait for ever. Only the versionstamp is compared, within the Incarnation of `since`, so that a
 * Sequence from before a move is accepted. If `since` is newer than `tx`, a second transaction asks
 * for the newest version, because the Sequence may belong to a commit that `tx` is too old to see.
 */
MUST_USE enum status catalog_seq_check_reached(struct kv_tx *tx, const struct catalog_seq *since,
					       struct err *err);

#endif
