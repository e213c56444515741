/* What the rooms of the model share: subspaces, keys, the clock, pairs, what each kind does. */
#ifndef FROND_MODEL_TIMED_TIMED_INT_H
#define FROND_MODEL_TIMED_TIMED_INT_H

#include "catalog/check.h"
#include "catalog/keys.h"
#include "doc/key_read.h"
#include "model/timed/cell.h"

/*
 * Stored: never renumber. They differ from the revisioned model's, because the shape of a store
 * (kv/shape.h) knows subspaces by their numbers alone.
 */
enum timed_space {
	TIMED_SPACE_SCHEMA = 32,
	TIMED_SPACE_ROWS = 33,
	TIMED_SPACE_EXPIRY = 34,
	TIMED_SPACE_CLOCK = 35,
	TIMED_SPACE_CHANGED = 36,
	TIMED_SPACE_BODY = 37,
	TIMED_SPACE_GONE = 38,
	TIMED_SPACE_COUNT = 39,
	TIMED_SPACE_UNDO = 40,
	TIMED_SPACE_HISTORY = 41,
	TIMED_SPACE_RETIME = 42,
	TIMED_SPACE_COUNTER = 43, /* of tables: numbers that are added to */
	TIMED_SPACE_MARKS =
		44, /* of tables: deletions that writers with stamps of their own read */
	TIMED_SPACE_TABLE = 45,   /* their schema */
	TIMED_SPACE_DROPPED = 46, /* columns of a table that are to be cleared */
	TIMED_SPACE_HELD = 47,
	TIMED_SPACE_WEIGH = 48,
	TIMED_SPACE_VERSIONS = 49,
	TIMED_SPACE_TRIM = 50,
	TIMED_SPACE_RETRIM = 51,
	TIMED_SPACE_STATS = 60,   /* of tables: how many entries all indexes have */
	TIMED_SPACE_TALLIES = 61, /* and how many of them lie in ranges of keys */
};

enum {
	/* Of the description: what expires by default; how long the past is kept. */
	TIMED_OPTION_TTL_MS = 0,
	TIMED_OPTION_HISTORY_SECONDS = 1,

	TIMED_SPACE_BYTES = 2, /* of the number of a subspace in a key */
	TIMED_HASH_BYTES = 2,
	TIMED_EXPIRY_SHARDS = 16,
	TIMED_US_PER_MS = 1000,
};

/* ---- Kinds (kind.c) ---- */

/* An entry of EXPIRY whose time has come. */
struct timed_due {
	uint64_t ms;
	struct str tail; /* what is behind the time in the entry's key */
	struct str key;  /* (P, ROWS) with the same tail */
};

/* What has become of it. */
struct timed_due_swept {
	bool done;                 /* what it tells of has gone, or a part of that has */
	bool stays;                /* the entry does, since a part is left */
	bool more;                 /* there is more to be cleared, by other transactions */
	struct timed_expired what; /* for the listener; `key.ptr` NULL: nothing */
};

/* What databases of a kind do in their own way. Static: it stays as long as the process. */
struct timed_kind {
	const struct catalog_kind *catalog;
	bool tells;    /* listeners of the sweep are told of what goes */
	bool defaults; /* what has no expiry of its own goes by the database's: timed_ttl_set() */
	/* A row's own cell that has expired hides what lies below it. */
	bool (*own_hides)(const struct catalog_db *db);
	enum timed_space schema_space; /* a single key, which every database has */

	/* Clears or writes in a sweep, before it looks at entries, what has been left for later. */
	enum status (*tend)(struct timed *t, uint64_t *ret_done, bool *ret_more);
	/* Or NULL. Asks for what due_sweep() will read, side by side for several entries. */
	struct kv_future *(*due_ask)(struct timed *t, const struct timed_due *due);
	/*
	 * Removes what has expired by the entry, if it expires at that time. The sweep then clears
	 * the entry, unless it stays. `asked`: by due_ask(); NULL if nothing was asked for. What
	 * the listener is told lies in the arena.
	 */
	enum status (*due_sweep)(struct timed *t, const struct timed_due *due,
				 struct kv_future *asked, struct arena *arena,
				 struct timed_due_swept *ret);

	/*
	 * Or NULL: versions cannot be bounded, since what belongs to a row is not known. Gets the
	 * id of the body that the value of a key of ROWS names, as it is in keys, and the moment
	 * in which it was made; `ret_body` stays empty if there is none.
	 */
	enum status (*body_of)(struct timed *t, struct str value, struct buf *ret_body,
			       uint64_t *ret_made_us);
	/*
	 * Of a record of a body that is forgotten: gets what else the change has left to GONE, as
	 * it is there behind the bucket; `ret` stays empty if that is nothing.
	 */
	enum status (*left_by)(struct timed *t, const struct history_record *record,
			       struct buf *ret);

	/* Says whether the value of a key of ROWS has expired at the transaction's moment. */
	enum status (*has_expired)(struct timed *t, struct str value, bool *ret);
	/* Draws the key of what has been deleted. STATUS_NOT_FOUND: that is not shown. */
	enum status (*draw_key)(const struct catalog_db *db, uint64_t space, struct str tail,
				struct arena *arena, struct buf *ret);
	/* Checks the subspaces that are this kind's own; v->db has its schema. */
	enum status (*verify)(struct catalog_verify *v);
	/* The same in ranges, by timed_verify_ranges() and timed_verify_once(). */
	enum status (*verify_in_ranges)(struct catalog_verify *v);
};

enum {
	TIMED_KINDS = 3,
};

/*
 * Makes the kind known to the catalog, to sweeps and to listings; again is fine. Before any other
 * thread runs.
 */
void timed_kind_register(const struct timed_kind *kind);
/* The kinds that were registered; NULL behind the last one. */
const struct timed_kind *timed_kind_at(size_t at);
/* The kind of the database, which has been registered. */
const struct timed_kind *timed_kind_of(const struct catalog_db *db);

/* For the catalog: a key of ROWS without a path. */
bool timed_is_document(struct str key);

/* ---- Keys (keys.c) ---- */

/* What all keys of a subspace begin with. */
static inline void
timed_key_space(struct buf *key, const struct catalog_db *db, enum timed_space space)
{
	buf_clear(key);
	buf_append_str(key, db->prefix);
	tuple_put_u64(key, space);
}

/* FNV-1a, folded to 16 bits. Stored: it never changes. */
uint16_t timed_hash16(struct str bytes);

/* (P, EXPIRY, shard, ms, hash components, range components, path…) of a key below ROWS. */
MUST_USE enum status timed_key_expiry(const struct catalog_db *db, struct str key, uint64_t ms,
				      struct buf *ret);

/*
 * Appends a component of a key. STATUS_INVALID, explained, for a value that cannot be one;
 * STATUS_KEY_TOO_LARGE, explained.
 */
MUST_USE enum status timed_key_component(struct timed *t, const struct doc_scalar *s,
					 bool descending, struct buf *to);
/* STATUS_KEY_TOO_LARGE, explained, for a key below ROWS of more than TIMED_KEY_BYTES. */
MUST_USE enum status timed_key_check_bytes(struct timed *t, const struct buf *key);
/* Takes the end off an element of bytes: keys whose element goes on lie behind what is left. */
void timed_key_element_open(struct buf *key);
/*
 * `begin` and `end` are the edges of a range, by elements without their ends: makes them its
 * bounds, which leave out or take in the rows of the edges. A range whose edges stand the wrong way
 * round becomes one without rows.
 */
MUST_USE enum status timed_key_close_range(enum timed_bound_kind from, enum timed_bound_kind to,
					   struct buf *begin, struct buf *end);

/* The length of the row's part of a key below ROWS. STATUS_CORRUPT. */
MUST_USE enum status timed_key_row_bytes(const struct catalog_db *db, struct str key, size_t *ret);

/* A key below ROWS, behind the subspace. */
struct timed_place {
	uint16_t hash;
	struct doc_scalar *key; /* as many as the schema has components */
	struct timed_path path;
};

MUST_USE enum status timed_place_parse(const struct timed_schema *schema, struct str tail,
				       struct arena *arena, struct timed_place *ret);

/* ---- The clock (clock.c) ---- */

/* The value of the clock's key. STATUS_CORRUPT. */
MUST_USE enum status timed_clock_parse(struct str value, uint64_t *ret_us);
/* Asks for the stored clock, so that timed_now() waits in the same round trip as other reads. */
MUST_USE enum status timed_ask(struct timed *t);
/* The write time of what this transaction writes now. */
static inline uint64_t
timed_write_us(const struct timed *t)
{
	return t->write_us ? t->write_us : t->now_us;
}
/* The same in a transaction that writes, which moves the stored clock on. */
MUST_USE enum status timed_now_write(struct timed *t);
/* Writes the key that whoever watches the database watches, once in a transaction; blindly. */
MUST_USE enum status timed_touch(struct timed *t);
/* (P, CHANGED). */
MUST_USE enum status timed_changed_key(struct str prefix, struct buf *key);
MUST_USE enum status timed_changed_write(struct kv_tx *tx, struct str prefix);
/* What every function that writes calls first: the database is writable, the clock moves on. */
MUST_USE enum status timed_write_begin(struct timed *t);

/* Writes the state of the history as `t` has it. */
MUST_USE enum status timed_history_write(struct timed *t);

/* ---- Pairs of rows and bodies (data.c) ---- */

MUST_USE enum status timed_data_set(struct timed *t, struct str key, struct str value);
MUST_USE enum status timed_data_clear(struct timed *t, struct str key);
MUST_USE enum status timed_data_clear_range(struct timed *t, struct str begin, struct str end);
/* Clears the key itself and everything below it. */
MUST_USE enum status timed_data_clear_below(struct timed *t, struct str key);
/*
 * Clears a range of keys that begins and ends between rows, and calls timed_touch(). With a
 * history, whole rows that together have TIMED_CLEAR_KEYS keys, or one row that has more;
 * `*ret_more` is true if rows are left. timed_write_begin() has been called then.
 */
MUST_USE enum status timed_data_clear_rows(struct timed *t, struct str begin, struct str end,
					   bool *ret_more);
/* Adds to a number of eight bytes. */
MUST_USE enum status timed_data_add(struct timed *t, struct str key, int64_t change);

/* The key is borrowed until it has been waited for. `ret->ptr` NULL: it is not there. */
MUST_USE enum status timed_data_ask(struct timed *t, struct str key, enum kv_read mode,
				    struct timed_got *ret);
/* The same for a caller that looks at the first KV_HEAD_BYTES bytes of the value only. */
MUST_USE enum status timed_data_ask_head(struct timed *t, struct str key, enum kv_read mode,
					 struct timed_got *ret);
/* As timed_data_ask() for `count` keys, at most KV_MANY, together. */
void timed_data_ask_many(struct timed *t, const struct str *keys, size_t count, enum kv_read mode,
			 struct timed_got *ret);
MUST_USE enum status timed_data_wait(struct timed *t, struct timed_got *got, struct arena *arena,
				     struct str *ret);
MUST_USE enum status timed_data_get(struct timed *t, struct str key, enum kv_read mode,
				    struct arena *arena, struct str *ret);

/* The first pair of a range; options->limit is 1. STATUS_NOT_FOUND: there is none. */
struct timed_one {
	struct kv_future *future;
	struct str begin, end;
	struct kv_range_options options;
};

MUST_USE enum status timed_one_ask(struct timed *t, struct str begin, struct str end,
				   const struct kv_range_options *options, struct timed_one *ret);
MUST_USE enum status timed_one_wait(struct timed *t, struct timed_one *one, struct arena *arena,
				    struct kv_pair *ret);

/* The interface of kv_scan. A cursor that is all zero may be closed. */
MUST_USE enum status timed_cursor_open(struct timed_cursor *c, struct timed *t, struct str begin,
				       struct str end, const struct kv_range_options *options);
/* The same where about `first` pairs are wanted: no more are read at first (kv/few.h). */
MUST_USE enum status timed_cursor_open_few(struct timed_cursor *c, struct timed *t,
					   struct str begin, struct str end,
					   const struct kv_range_options *options, size_t first);
/* As kv_scan_expect(). */
void timed_cursor_expect(struct timed_cursor *c, size_t pairs);
/* Counts steps (loop/step.h): whoever goes through many pairs lets others run. */
MUST_USE enum status timed_cursor_next(struct timed_cursor *c, struct kv_pair *ret);
/*
 * True if the next step finds its pair beside the last one, and the pairs that have come keep their
 * place during it. Otherwise they go with that step.
 */
static inline bool
timed_cursor_stays(const struct timed_cursor *c)
{
	return !c->past && c->scan.at < c->scan.range.count;
}
void timed_cursor_close(struct timed_cursor *c);

/* ---- History (history.c) ---- */

/* The history of the database, for the functions of history/ (data.c). */
struct history timed_history_of(const struct timed *t);

/* (P, HISTORY); keys.c has it. */
MUST_USE enum status timed_history_key(const struct catalog_db *db, struct buf *key);
/*
 * Of a subspace whose keys begin with the number of a bucket: the range of the buckets that no
 * reader of the past needs any more. Without a history it is the whole subspace.
 */
MUST_USE enum status timed_history_unread(const struct timed *t, enum timed_space space,
					  struct buf *begin, struct buf *end);

/* The bounds of a history that end whole buckets. */
enum timed_history_bound {
	TIMED_HISTORY_BY_SECONDS,
	TIMED_HISTORY_BY_BYTES,
	TIMED_HISTORY_BYS,
};

/* What a transaction has done to the buckets of a history. */
struct timed_tended {
	bool changed;
	unsigned ended[TIMED_HISTORY_BYS]; /* buckets that can no longer be read, by the bound */
	uint64_t forgotten;                /* versions of items that went by their bound */
};

/* Begins and ends buckets of the database. Another transaction clears what that makes old. */
MUST_USE enum status timed_history_tend(struct timed *t, struct timed_tended *ret);
MUST_USE enum status timed_history_clear(struct timed *t, uint64_t *ret_done, bool *ret_more);
/* Counts what was recorded before the history was bounded by bytes, a slice of it. */
MUST_USE enum status timed_history_count(struct timed *t, uint64_t *ret_done, bool *ret_more);

/* ---- What bodies that are gone have (weigh.c) ---- */

/* Writes an entry of GONE, by its key. */
MUST_USE enum status timed_gone_put(struct timed *t, struct str gone);
/* Bytes are bounded from this bucket on: what went before is to be weighed, too. */
MUST_USE enum status timed_weigh_begin(struct timed *t, uint64_t bucket);
/* Nobody asks any more what went in buckets before this one; UINT64_MAX: in any. */
MUST_USE enum status timed_weigh_forget(struct timed *t, uint64_t bucket);
/* Weighs a slice of what is to be weighed, once all records are counted. */
MUST_USE enum status timed_weigh(struct timed *t, uint64_t *ret_done, bool *ret_more);
MUST_USE enum status timed_weigh_is_done(struct timed *t, bool *ret);
/* True if all that went before bytes were bounded is listed in WEIGH. */
MUST_USE enum status timed_weigh_is_listed(struct timed *t, bool *ret);
/* The value of an entry of GONE or of WEIGH; '' is 0. */
bool timed_weight_parse(struct str value, uint64_t *ret_number, struct str *ret_place);

/* Gives what went in a bucket to the sweep, if there is an entry of GONE with that tail. */
MUST_USE enum status timed_gone_release(struct timed *t, uint64_t bucket, struct str tail);

/* ---- The schema (schema.c) ---- */

/*
 * Creates a database of the kind; see timed_create(). `replaces`: in place of the one of that name,
 * which is there.
 */
MUST_USE enum status timed_create_of(struct kv_tx *tx, const struct catalog_kind *kind,
				     struct str name, const struct timed_schema *schema,
				     uint64_t default_ttl_ms, bool replaces, struct err *err);

enum {
	TIMED_SCHEMA_KEY_BYTES = 32,
	TIMED_SCHEMA_ARENA_BYTES = 1024 * 1024,
};

MUST_USE enum status timed_schema_key(const struct catalog_db *db, struct buf *key);
/* STATUS_INVALID, explained, if no database can have this schema. */
MUST_USE enum status timed_schema_check(const struct timed_schema *schema, struct err *err);
void timed_schema_put(const struct timed_schema *schema, struct buf *value);
MUST_USE enum status timed_schema_parse(struct str value, struct arena *arena,
					struct timed_schema *ret, struct err *err);
enum status timed_extend(struct kv_tx *tx, const struct catalog_db *db, void **ret,
			 struct err *err);
void timed_extension_free(void *extension);

/* ---- Cells that are due (cell.c) ---- */

/* For kinds whose entries of EXPIRY are about cells: see struct timed_kind. */
struct kv_future *timed_due_ask(struct timed *t, const struct timed_due *due);
/* Reads the cell of an entry. `*ret_is_due`: it is there, and expires when the entry says. */
MUST_USE enum status timed_due_cell(struct timed *t, const struct timed_due *due,
				    struct kv_future *asked, struct timed_cell *ret,
				    bool *ret_is_due);
/* After such a cell was cleared. */
MUST_USE enum status timed_due_removed(struct timed *t);

/* ---- Walks: all pairs of a subspace, some in each turn of the sweep (walk.c) ---- */

/*
 * How far a walk has come is a record of its own, (P, record) → (format, b"a key behind P"): the
 * pairs before that key have been looked at. No record: there is nothing to look at.
 */
struct timed_walk {
	enum timed_space record;
	enum timed_space space; /* whose pairs are looked at */
	enum status (*look)(struct timed *t, const struct kv_pair *pair, void *arg);
	void *arg;
};

MUST_USE enum status timed_walk_key(const struct catalog_db *db, enum timed_space record,
				    struct buf *key);
/* Has the next turns look at all pairs, from the first on. */
MUST_USE enum status timed_walk_begin(struct timed *t, enum timed_space record,
				      enum timed_space space);
/*
 * Looks at TIMED_SWEEP_KEYS pairs at most, if there is a walk. *ret_done grows by one for a turn;
 * *ret_more becomes true if pairs are left.
 */
MUST_USE enum status timed_walk_turn(struct timed *t, const struct timed_walk *walk,
				     uint64_t *ret_done, bool *ret_more);
/* For checks: whether the value of such a record can be read. */
bool timed_walk_is_good(struct str value);

/* ---- Entries of EXPIRY after a change of the default (retime.c) ---- */

/* Writes the entries of some cells, TIMED_SWEEP_KEYS at most, if the default was changed. */
MUST_USE enum status timed_retime(struct timed *t, uint64_t *ret_done, bool *ret_more);

/* ---- For people (inspect.c) ---- */

const char *timed_space_name(uint64_t space);
/* In quotes, doubled inside. Control characters and what is no UTF-8 are \x and digits. */
void timed_draw_text(struct str s, struct buf *ret);
void timed_draw_time(uint64_t us, struct buf *ret);
void timed_draw_scalar(const struct doc_scalar *s, struct buf *ret);
/*
 * What stands between the place of a cell and its value: ", 2026-… -> (TTL = 86400) ", with a name
 * before it where the cell says that a row was inserted. The TTL counts from the write; a cell that
 * expires as the database says has none.
 */
void timed_draw_written(const struct catalog_db *db, const struct timed_cell *cell,
			struct buf *ret);
/* The key of a row, and a path below it. */
void timed_draw_place(const struct timed_schema *schema, const struct timed_place *place,
		      struct buf *ret);
/* How a kind whose rows have typed keys keeps these. */
struct timed_row_form {
	enum timed_space space;
	size_t hash_count;
	size_t key_count;
	bool (*descends)(const struct catalog_db *db, size_t at);
	/*
	 * The components of the row that a key, behind its subspace, is of; fewer than key_count
	 * for what a partition has once. In the arena. STATUS_CORRUPT.
	 */
	enum status (*parse)(const struct catalog_db *db, struct str tail, struct arena *arena,
			     const struct doc_scalar **ret, size_t *ret_count);
};
/*
 * For a kind's `inspect`: `id` is what is drawn of a row's key, or what that begins with, up to a
 * whole component (inspect_row.c).
 */
MUST_USE enum status timed_inspect_row(struct kv_tx *tx, const struct catalog_db *db,
				       const struct timed_row_form *form, struct str id,
				       catalog_draw_prefix *draw, void *arg);
/* Draws what all kinds have: entries of EXPIRY, the clock, the stamp of the latest change. */
bool timed_draw_pair(const struct catalog_db *db, uint64_t space, struct str tail, struct str value,
		     struct buf *ret);

#endif
