/*
 * Rows in time: the model of databases whose documents are rows under keys of hash and range
 * components, with maps inside them, expiry and write times. README.md has the layout.
 *
 * A transaction that works on rows is a struct timed, on the caller's stack: it fixes one moment
 * for everything that is read and written in it. Functions that write read nothing unless their
 * comment says so, but for the clock, once in a transaction. No function commits. What is returned
 * lies in the caller's arena. Threading: that of the transaction.
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
	TIMED_DB_NAME_BYTES = 100,
	TIMED_PATH_STEPS = 64, /* columns and keys that lead to a leaf */
	/* Of a row's key and a path in it, encoded; what wraps them is a key of the store, too. */
	TIMED_KEY_BYTES = 9800,
	TIMED_VALUE_BYTES = 90000, /* of a leaf, encoded */
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

/* The kinds, for the catalog. Registers them; again is fine. */
void timed_register(void);

/*
 * Creates a database. `default_ttl_ms`: how long after its write expires what has no expiry of its
 * own; 0: never. STATUS_EXISTS; STATUS_INVALID, explained.
 */
MUST_USE enum status timed_create(struct kv_tx *tx, struct str name,
				  const struct timed_schema *schema, uint64_t default_ttl_ms,
				  struct err *err);

extern const struct catalog_kind timed_kind;
/* Databases of Redis's door, whose rows are items (item.h). */
extern const struct catalog_kind timed_redis_kind;

/* The schema of an opened database. */
const struct timed_schema *timed_schema_of(const struct catalog_db *db);

/*
 * Adds columns behind those that the table has. STATUS_INVALID, explained. Touches the metadata
 * version; the transaction does nothing else to the database.
 */
struct timed;
MUST_USE enum status timed_columns_add(struct timed *t, const struct str *names, size_t count);

/* The id of the column; 0 if there is none of that name. */
uint64_t timed_column_find(const struct timed_schema *schema, struct str name);

/* ---- A transaction on rows (clock.c) ---- */

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
	struct timed_stages *stages;   /* item.h; NULL: nothing can be staged */
	struct timed_maps *maps;       /* item.h; NULL: nothing is kept between transactions */
	struct timed_map *held;        /* of those; timed_maps_return() */
	uint64_t at_us;                /* the moment of the past that is read; 0: the present */
	bool at_is_date;               /* it is by the wall clock, until timed_now() */
	struct kv_future *asked_state; /* of the history, with `asked`; NULL: there is none */
	bool has_history;
	struct history_state state; /* if has_history */
	uint64_t soonest_ms;        /* the soonest expiry that this transaction writes; 0: none */
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
};

/*
 * Sets for how many seconds the past of the database can be read; 0: nothing is kept. The past
 * begins with the next turn of timed_sweep(). STATUS_INVALID, explained. Touches the metadata
 * version; the transaction does nothing else to the database.
 */
MUST_USE enum status timed_history_set(struct timed *t, uint64_t seconds);
uint64_t timed_history_seconds(const struct catalog_db *db);
/*
 * Begins the past of a database whose history was set by an earlier transaction, as the next turn
 * of timed_sweep() would do.
 */
MUST_USE enum status timed_history_begin(struct timed *t);
/* Gives the first moment that can be read, in milliseconds since 1970; 0: there is none yet. */
MUST_USE enum status timed_history_oldest(struct timed *t, uint64_t *ret_ms);
/* How long after its write expires what has no expiry of its own; 0: never. */
uint64_t timed_ttl_ms(const struct catalog_db *db);
/*
 * Changes that, for what is there already, too (retime.c): every read goes by it at once, and what
 * has expired by it is removed in the background. Touches the metadata version; the transaction
 * does nothing else to the database.
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

struct timed_key {
	const struct doc_scalar *parts; /* as many as the schema has */
	size_t count;
};

enum timed_bound_kind {
	TIMED_BOUND_END,       /* no bound */
	TIMED_BOUND_INCLUSIVE, /* what equals it is in the range */
	TIMED_BOUND_EXCLUSIVE,
};

/* An end of a range of rows: the first `count` range components. Rows that begin so equal it. */
struct timed_edge {
	enum timed_bound_kind kind;
	const struct doc_scalar *parts;
	size_t count;
};

/* The rows of one set of hash components, or some of them, in the order in which they lie. */
struct timed_rows {
	const struct timed_key *hash;
	struct timed_edge from;
	struct timed_edge to;
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

/* ---- Writing (write.c) ---- */

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

/* What a row's own cell says. Stored: never renumber. */
enum timed_type {
	TIMED_LEAF = 0,     /* a leaf in a row; of a row: it has no cell of its own */
	TIMED_INSERTED = 1, /* a row of a table that was inserted: it is there without columns */
	TIMED_VALUE = 2,    /* the row is a primitive */
	TIMED_HASH = 3,     /* the row is a collection, a map */
	TIMED_SET = 4,      /* a map whose values are null */
	TIMED_ZSET = 5,     /* of an item (item.h): members with scores, and in their order */
	TIMED_LIST = 6,     /* of an item: elements in an order */
	TIMED_STREAM = 7,   /* of an item: entries in the order of their ids */
	TIMED_TYPES,
};

/*
 * Makes the row of a table live on its own: it then is there although no column has a value. A row
 * that was only ever updated is there as long as one of its leaves is.
 */
MUST_USE enum status timed_insert(struct timed *t, const struct timed_key *key,
				  struct timed_expiry expiry);

/* A leaf, by its path below the place that is written. */
struct timed_value {
	struct timed_path path;
	struct doc_scalar value;
};

/*
 * Sets the place to a scalar (one value, with an empty path) or to a map, whatever was there
 * before. Scalars on the way give way to maps. An empty map is no values, and leaves nothing.
 */
MUST_USE enum status timed_put(struct timed *t, const struct timed_key *key,
			       const struct timed_path *place, const struct timed_value *values,
			       size_t count, struct timed_expiry expiry);

/* Clears the place, or the row if the path is empty, with all that is below. Reads nothing. */
MUST_USE enum status timed_clear(struct timed *t, const struct timed_key *key,
				 const struct timed_path *place);

enum {
	TIMED_CLEAR_KEYS = 1000, /* that one transaction clears of a range, with a history */
};

/*
 * Clears a range of rows. Without a history it reads nothing, and all of the range goes at once.
 * With one, what is cleared is read and recorded: one transaction clears whole rows that together
 * have TIMED_CLEAR_KEYS keys, or one row that has more, and `*ret_more` is true if rows are left.
 */
MUST_USE enum status timed_clear_rows(struct timed *t, const struct timed_rows *rows,
				      bool *ret_more);

/* Of a database without columns: replaces the row by one value. */
MUST_USE enum status timed_set(struct timed *t, const struct timed_key *key,
			       const struct doc_scalar *value, struct timed_expiry expiry);

/*
 * Of a database without columns: adds members to the collection that the row is, TIMED_HASH or
 * TIMED_SET, and makes it if there is none. Reads the row's own cell. STATUS_INVALID, explained, if
 * the row is something else. A new collection expires as `expiry` says, its members with it.
 */
MUST_USE enum status timed_add(struct timed *t, const struct timed_key *key, enum timed_type type,
			       const struct timed_value *members, size_t count,
			       struct timed_expiry expiry);

/* ---- Reading (read.c) ---- */

struct timed_leaf {
	struct timed_path path;
	struct doc_scalar value;
	uint64_t write_us;   /* since 1970 */
	uint64_t expires_ms; /* since 1970; 0: never */
};

/* A row as it is at the transaction's moment: what has expired is not in it. */
struct timed_row {
	struct doc_scalar *key;  /* as many as the schema has components */
	enum timed_type type;    /* TIMED_LEAF: no cell of its own, or only a place was read */
	struct doc_scalar value; /* TIMED_VALUE */
	uint64_t write_us;       /* of the row's own cell */
	uint64_t expires_ms;
	struct timed_leaf *leaves; /* in the order of their paths */
	size_t leaf_count;
};

/*
 * Reads a row, or only what is at a path in it. One range, and the clock with it, in one round
 * trip; below a collection the row's own cell besides. STATUS_NOT_FOUND; STATUS_LIMIT when the
 * arena is full; STATUS_CORRUPT.
 */
MUST_USE enum status timed_read(struct timed *t, const struct timed_key *key,
				const struct timed_path *place, struct arena *arena,
				struct timed_row *ret);

/* Goes through the rows of one set of hash components, or of the whole database. */
struct timed_scan {
	struct timed *t;
	struct timed_cursor scan;
	struct kv_pair pair; /* the first of the next row */
	struct buf row;      /* the key of the row that is read */
	bool has_pair;
	bool open;
};

/* `hash`: the hash components; NULL: all rows, in the order of their hashes. */
MUST_USE enum status timed_scan_open(struct timed_scan *scan, struct timed *t,
				     const struct timed_key *hash);
/* Goes through a range of rows. */
MUST_USE enum status timed_scan_open_rows(struct timed_scan *scan, struct timed *t,
					  const struct timed_rows *rows);
/* The next row that is there. STATUS_NOT_FOUND at the end. */
MUST_USE enum status timed_scan_next(struct timed_scan *scan, struct arena *arena,
				     struct timed_row *ret);
void timed_scan_close(struct timed_scan *scan);

/* ---- Going through cells (cells.c) ---- */

/* A cell that is there, as a dump has it. */
struct timed_cell_seen {
	bool begins; /* it is the first of its row */
	struct timed_key key;
	struct timed_path path; /* empty: the row's own cell */
	enum timed_type type;   /* of the row's own cell; TIMED_LEAF with a path */
	struct doc_scalar value;
	uint64_t write_us;
	struct timed_expiry expiry; /* TIMED_EXPIRY_DEFAULT, _NEVER or _AT */
};

/*
 * Visits the cells of all rows that are there at the transaction's moment, one after the other,
 * without gathering a row in memory. The row's own cell comes before its leaves. The arena is
 * cleared before each cell; what `visit` gets lies in it.
 */
typedef enum status timed_cell_visitor(void *arg, const struct timed_cell_seen *cell);
MUST_USE enum status timed_cells(struct timed *t, struct arena *arena, timed_cell_visitor *visit,
				 void *arg);

/* ---- Removing what has expired (expiry.c) ---- */

struct chores;

enum {
	TIMED_SWEEP_KEYS = 500, /* that one transaction looks at */
	TIMED_SOON_MS = 1000,   /* between two sweeps while nobody waits for what they tell */
};

/* What has expired and is removed: an item, or one of its members (item.h). */
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
