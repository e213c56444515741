/*
 * Databases in time: what databases of rows (rows/rows.h) and of items (items/item.h) share, which
 * is one moment for each transaction, write times, expiry, and a past that can be read. README.md
 * has the layout.
 *
 * A transaction on such a database is a struct timed, on the caller's stack: it fixes one moment
 * for everything that is read and written in it, and reads the stored clock for that, once. No
 * function commits. What is returned lies in the caller's arena. Threading: that of the
 * transaction.
 */
#ifndef FROND_MODEL_TIMED_TIMED_H
#define FROND_MODEL_TIMED_TIMED_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/status.h"
#include "catalog/catalog.h"
#include "doc/scalar.h"
#include "history/history.h"
#include "kv/kv.h"

enum {
	TIMED_KEY_COLUMNS = 32, /* hash and range components of a key */
	TIMED_COLUMNS = 1000,
	TIMED_NAME_BYTES = 100, /* of a column's name */
	TIMED_PATH_STEPS = 64,  /* columns and keys that lead to a leaf */
	/* Of a row's key and a path in it, encoded; what wraps them is a key of the store, too. */
	TIMED_KEY_BYTES = 9800,
	TIMED_VALUE_BYTES = 90000, /* of a leaf, encoded */
	TIMED_CLEAR_KEYS = 1000,   /* that one transaction clears of a range, with a history */
	TIMED_CHECKED_BYTES = 40,  /* of the id of a body in a key, and the subspace */
};

/* ---- Databases (schema.c) ---- */

struct timed_key_column {
	struct str name;
	bool descending; /* range components only */
};

/*
 * What the rows of a database look like. With columns it is a table: a row has columns. Without,
 * each row is one value or one collection. The id of columns[i] is i + 1.
 */
struct timed_schema {
	struct timed_key_column *key; /* hash components first; at least one of them */
	size_t hash_count;
	size_t key_count;
	struct str *columns;
	size_t column_count;
};

/* The schema of an opened database. */
const struct timed_schema *timed_schema_of(const struct catalog_db *db);

/* ---- A transaction (clock.c) ---- */

/* Where the local time comes from; NULL in its place: base/steady.h. */
struct timed_clock {
	uint64_t (*now_ms)(void *arg);
	/* A clock that only counts what passes; NULL: a database that is ahead waits. */
	uint64_t (*passed_us)(void *arg);
	void *arg;
};

struct timed_stages;
struct timed_maps;
struct timed_map;

struct timed {
	struct kv_tx *tx;
	const struct catalog_db *db;
	const struct timed_clock *clock;
	struct err *err;
	struct kv_future *asked;       /* for the stored clock; NULL: not yet, or answered */
	uint64_t now_us;               /* 0: not fixed yet */
	uint64_t ahead_us;             /* of the local clock, by which the moment is */
	uint64_t write_us;             /* the write time of what is written; 0: now_us */
	bool stored;                   /* this transaction has written the clock */
	bool touched;                  /* and the key that is watched */
	unsigned bodies;               /* ids of bodies that this transaction has made */
	uint32_t places;               /* that it has given to elements of lists (tables/write.c) */
	uint32_t writer;               /* what it is called in those; 0: not yet */
	struct timed_stages *stages;   /* items/item.h; NULL: nothing can be staged */
	struct timed_maps *maps;       /* items/item.h; NULL: nothing is kept for later ones */
	struct timed_map *held;        /* of those; timed_maps_return() */
	uint64_t at_us;                /* the moment of the past that is read; 0: the present */
	bool at_is_date;               /* it is by the wall clock, until timed_now() */
	struct kv_future *asked_state; /* of the history, with `asked`; NULL: there is none */
	bool has_history;
	struct history_state state; /* if has_history */
	bool has_stamp;             /* a client says what orders writes: table_stamp_set() */
	bool restores;              /* what is written was there before: table_restore_begin() */
	int64_t stamp;              /* if has_stamp */
	bool knows_highest;         /* `highest_us` is known (tables/stamps.c) */
	uint64_t highest_us;        /* the highest stamp of the table that was ahead of its time */
	uint64_t soonest_ms;        /* the soonest expiry that this transaction writes; 0: none */
	uint64_t refused_by;        /* the number of the index that said STATUS_DUPLICATE last */
	/* What was found to be readable at `at_us`, the last time (versions.c). */
	char checked[TIMED_CHECKED_BYTES];
	size_t checked_len;
};

void timed_init(struct timed *t, struct kv_tx *tx, const struct catalog_db *db,
		const struct timed_clock *clock, struct err *err);

/*
 * To be called before anything is read: the transaction reads the state of the database at `ms`
 * since 1970, after all that was written until then. Every function that reads then does so; those
 * that write fail. What had expired by then is hidden. The first read fails with STATUS_INVALID,
 * explained, if the database keeps no history, or none that goes back that far.
 */
void timed_at(struct timed *t, uint64_t ms);
/* The same of a moment in microseconds. */
void timed_at_us(struct timed *t, uint64_t us);
/* The same of a moment by the wall clock, as people name one (timed_ahead_ms()). */
void timed_at_date_us(struct timed *t, uint64_t us);

/* Fixes the moment of the transaction, `now_us`, if it is not fixed yet. */
MUST_USE enum status timed_now(struct timed *t);

/*
 * How many milliseconds the time of the database is ahead of the date (steady_date_ms()), negative
 * if it is behind; 0 unless clocks were wrong, by a second or more. The moment has been fixed. What
 * a client calls the moment M is M + timed_ahead_ms() in what is stored.
 */
int64_t timed_ahead_ms(const struct timed *t);

/*
 * Sets the write time of what is written from now on, in microseconds since 1970; 0: the moment of
 * the transaction, as without this call. For what comes back from a dump. A time that is later than
 * the moment, because the clock of the source was ahead, becomes the moment.
 */
MUST_USE enum status timed_written_at(struct timed *t, uint64_t us);

enum {
	TIMED_HISTORY_SECONDS = 1000 * 1000 * 1000, /* at most */
	TIMED_HISTORY_VERSIONS = 10 * 1000,         /* of an item, if they are bounded */
};

/* How much of the past a database keeps: what any bound excludes goes, the oldest first. */
struct timed_history_bounds {
	uint64_t seconds; /* 0: nothing is kept */
	uint64_t bytes;   /* of records (history/history.h), up to INT64_MAX; 0: no bound */
	/*
	 * Of each item, beside what it is now: how many states it has been in, each from one
	 * transaction that changed it to the next one; 0: no bound. For databases of items.
	 */
	uint64_t versions;
};

/*
 * Sets how much of the past of the database can be read. The past begins with the next turn of
 * timed_sweep(), which also removes what is beyond the bounds. STATUS_INVALID, explained. Touches
 * the metadata version; the transaction does nothing else to the database.
 */
MUST_USE enum status timed_history_set(struct timed *t, struct timed_history_bounds bounds);
uint64_t timed_history_seconds(const struct catalog_db *db);
/*
 * Begins the past of a database whose history was set by an earlier transaction, as the next turn
 * of timed_sweep() would do.
 */
MUST_USE enum status timed_history_begin(struct timed *t);

struct timed_history_info {
	struct timed_history_bounds bounds;
	uint64_t
		oldest_ms; /* the first moment that can be read, since 1970; 0: there is none yet */
	uint64_t held_bytes; /* if there is a bound by bytes: of the records that can be read */
	bool held_all;       /* that is all of them; false: some are still to be counted */
};

MUST_USE enum status timed_history_info_get(struct timed *t, struct timed_history_info *ret);
/* The bounds alone; reads no more than timed_now() does. */
MUST_USE enum status timed_history_bounds_get(struct timed *t, struct timed_history_bounds *ret);
/* How long after its write expires what has no expiry of its own; 0: never. */
uint64_t timed_ttl_ms(const struct catalog_db *db);
/*
 * Changes that, for what is there already, too: every read goes by it at once, and what has expired
 * by it is removed in the background (retime.c). STATUS_INVALID, explained, for databases of items.
 * Touches the metadata version; the transaction writes nothing else to the rows of the database.
 */
MUST_USE enum status timed_ttl_set(struct timed *t, uint64_t ttl_ms);

/* ---- Reads of the present or of the past (data.c); all fields are private ---- */

/* The value of a key that was asked for. */
struct timed_got {
	struct kv_future *future;
	struct str key;
};

/* A range that is gone through. */
struct timed_cursor {
	struct kv_scan scan;
	struct history_scan *past; /* NULL: the present is read */
	struct timed_horizons *horizons;
	struct history history;
	size_t left;
};

/* ---- Listings of the past (listing.c) ---- */

enum {
	TIMED_LISTING_BYTES = 256 * 1024 * 1024, /* of all that one row has held */
};

enum timed_listed {
	TIMED_LISTED_LIVE,
	TIMED_LISTED_STRUCK,   /* it had been overwritten or deleted, or had expired */
	TIMED_LISTED_DELETION, /* what lies below `pair.key` was deleted at `deleted_us` */
};

struct timed_line {
	enum timed_listed kind;
	struct kv_pair pair;
	uint64_t deleted_us; /* since 1970 */
};

/*
 * Lists what rows, bodies and counts were at timed_at(), and all that had been overwritten or
 * deleted by then, as far as the history goes back: in the order of keys, of one key the newest
 * first. For people. STATUS_LIMIT, explained, if one row has held too much.
 */
typedef enum status timed_lister(void *arg, const struct timed_line *line);
MUST_USE enum status timed_list(struct timed *t, timed_lister *list, void *arg);

/* Draws the line of a deletion. False, with nothing appended, if the key cannot be read. */
bool timed_draw_deletion(const struct catalog_db *db, const struct timed_line *line,
			 struct buf *ret);

/* ---- Keys and paths ---- */

enum timed_bound_kind {
	TIMED_BOUND_END,       /* no bound */
	TIMED_BOUND_INCLUSIVE, /* what equals it is in the range */
	TIMED_BOUND_EXCLUSIVE,
};

/* One step below a row: a column of a table, or the key of a map. */
struct timed_step {
	uint64_t column; /* 0: `key` counts */
	struct doc_scalar key;
};

struct timed_path {
	const struct timed_step *steps;
	size_t count;
};

/* ---- Expiry, and what a key of ROWS is ---- */

enum timed_expiry_kind {
	TIMED_EXPIRY_DEFAULT, /* what the database says, at each read */
	TIMED_EXPIRY_NEVER,
	TIMED_EXPIRY_AFTER, /* `ms` from the transaction's moment on */
	TIMED_EXPIRY_AT,    /* at `ms` since 1970 */
};

struct timed_expiry {
	enum timed_expiry_kind kind;
	uint64_t ms;
};

/* What a row's own cell says, or the header of an item. Stored: never renumber. */
enum timed_type {
	TIMED_LEAF = 0,     /* a leaf in a row; of a row: it has no cell of its own */
	TIMED_INSERTED = 1, /* a row of a table that was inserted: it is there without columns */
	TIMED_VALUE = 2,    /* the row is a primitive */
	TIMED_HASH = 3,     /* the row is a collection, a map */
	TIMED_SET = 4,      /* a map whose values are null */
	TIMED_ZSET = 5,     /* of an item: members with scores, and in their order */
	TIMED_LIST = 6,     /* of an item: elements in an order */
	TIMED_STREAM = 7,   /* of an item: entries in the order of their ids */
	TIMED_JSON = 8,     /* of an item: a document */
	TIMED_TYPES,
};

/* ---- Removing what has expired (sweep.c) ---- */

struct chores;

enum {
	TIMED_SWEEP_KEYS = 500, /* that one transaction looks at */
	TIMED_SOON_MS = 1000,   /* between two sweeps while nobody waits for what they tell */
};

/* What has expired and is removed: an item, or one of its members. */
struct timed_expired {
	const struct timed_expired *next;
	struct str db; /* its name */
	struct str key;
	bool member;
	bool emptied; /* it was the last member, so the item is gone, too */
};

/* Is told of items. All on the thread of the sweep. */
struct timed_listener {
	/* True if somebody wants to be told soon: then the sweep looks for what expires next. */
	bool (*waits)(void *arg);
	/*
	 * All that one transaction removes, before it commits. If it starts over, this is called
	 * again, maybe with others. What the listener holds on to, so that nobody else tells of
	 * these items meanwhile, it keeps until `expired` is called.
	 */
	void (*removing)(void *arg, const struct timed_expired *first);
	/* After `removing`: what the transaction has removed; NULL: it has failed, or nothing. */
	void (*expired)(void *arg, const struct timed_expired *first);
	void *arg;
};

/*
 * Where several processes serve the store: writes, in the transaction that removes them, what
 * others are to learn of it. Its failure is the transaction's. Registered before other threads
 * start, and called in every process, whoever listens there.
 */
typedef enum status timed_removed(struct kv_tx *tx, const struct timed_expired *first);
void timed_removed_register(timed_removed *tell);

/*
 * Removes what has expired, from all databases, in at most `transactions` transactions of a bounded
 * size. `*ret_done` is how many cells went; `*ret_more` is true if some are left.
 */
MUST_USE enum status timed_sweep(struct kv_store *store, const struct timed_clock *clock,
				 unsigned transactions, uint64_t *ret_done, bool *ret_more,
				 struct err *err);

/* The same, telling a listener; NULL: nobody. */
struct timed_sweeping {
	struct kv_store *store;
	const struct timed_clock *clock; /* NULL: the system's */
	const struct timed_listener *listener;
};

/* What a sweep has done. */
struct timed_swept_all {
	uint64_t done; /* cells that went */
	bool more;     /* some are left */
	/*
	 * If the listener waits: in how many milliseconds the next item expires, as far as that is
	 * known, or one of its members; TIMED_SOON_MS at most.
	 */
	uint64_t soon_ms;
};

MUST_USE enum status timed_sweep_telling(const struct timed_sweeping *s, unsigned transactions,
					 struct timed_swept_all *ret, struct err *err);

/* Adds a chore that calls timed_sweep_telling(). What is named outlives the registry. */
void timed_chores_add(struct chores *chores, struct timed_sweeping *s);

/*
 * Has the chore look in `ms`, for a listener that waits. Whoever has written an expiry that is
 * sooner than TIMED_SOON_MS calls this after the commit. Whoever has met an item that has expired
 * and is not removed yet calls it with 0. Any thread.
 */
void timed_sweep_by(struct chores *chores, uint64_t ms);

#endif
