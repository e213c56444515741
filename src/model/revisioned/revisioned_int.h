/* What the files of model/revisioned share; see README.md for the layout they keep. */
#ifndef FROND_MODEL_REVISIONED_INT_H
#define FROND_MODEL_REVISIONED_INT_H

#include "base/buf.h"
#include "kv/tuple.h"
#include "model/revisioned/revisioned.h"

enum {
	REV_FORMAT = 1, /* of every value here; another one is STATUS_CORRUPT */

	REV_PAGE_BYTES = 256 * 1024, /* keys and values read for one page of a feed */
	REV_PAGE_SKIP = 100000,      /* entries that one page skips at most */
	REV_DIFF_WAVE = 1000,        /* documents whose branches are read at once */
	REV_COUNTER_BYTES = 8,       /* little-endian */
	REV_CACHE_SLOTS = 256,       /* databases that a cache remembers */

	/* An ancestor list in a value, which also holds at most this much else. */
	REV_VALUE_OTHER_BYTES = 100,
	REV_ANCESTORS_BYTES = KV_LIMIT_VALUE_BYTES - REV_VALUE_OTHER_BYTES,

	REV_KEY_BYTES = 2 * (KV_LIMIT_KEY_BYTES + 1), /* a buffer for both bounds of a range */

	REV_KEY_SPACE_BYTES = 2, /* a subspace's number in a key */

	/* The number and the flag of a revision in a key, and its hash, encoded: at most. */
	REV_KEY_TAIL_BYTES = 1 + 9,
	REV_KEY_HASH_BYTES = 2 + 2 * REV_HASH_BYTES,
};

/* ---- Keys (keys.c). Each function forgets what the buffer held. ---- */

/* A key, or both bounds of a range; a longer one fails the buffer, rev_key_status() names that. */
#define REV_KEY_INIT BUF_INIT(REV_KEY_BYTES)

void rev_key_space(struct buf *key, const struct rev_db *db, enum rev_subspace space);
void rev_key_named(struct buf *key, const struct rev_db *db, enum rev_subspace space,
		   struct str name);
void rev_key_rev(struct buf *key, const struct rev_db *db, enum rev_subspace space, struct str id,
		 bool deleted, struct rev_id rev);
void rev_key_change(struct buf *key, const struct rev_db *db, const struct rev_seq *seq);

/* What follows the subspace's prefix. */
struct str rev_key_tail(const struct buf *key, const struct rev_db *db);

/* STATUS_KEY_TOO_LARGE for a key past the store's limit. */
MUST_USE enum status rev_key_status(const struct buf *key);

/* What follows every key below `key`: type codes are all less than FF, and so are escaped NULs. */
#define REV_KEY_LAST ((uint8_t)0xff)

/* The next key after `key` itself. */
#define REV_KEY_NEXT ((uint8_t)0x00)

/* The length of a string or of bytes as a tuple element. */
size_t rev_encoded_bytes(struct str s);

/* ---- Elements of tuples ---- */

/*
 * The next element, of `kind` TUPLE_STRING or TUPLE_BYTES. In the arena if `copy` or if it has
 * NULs.
 */
MUST_USE enum status rev_next_text(struct tuple_reader *r, enum tuple_kind kind,
				   struct arena *arena, bool copy, struct str *ret);

/* Reads a value's format, which must be ours. */
MUST_USE enum status rev_next_format(struct tuple_reader *r);

/* Told of one pair of the root; `key` is at what follows the space. */
typedef enum status rev_take_root(void *arg, struct tuple_reader key, struct str value);

/* Every (ROOT, space, …), by snapshot reads, until a call fails; returns that failure. */
MUST_USE enum status rev_root_scan(struct kv_tx *tx, uint64_t space, rev_take_root *take,
				   void *arg);

/* ---- Branches as REVISIONS stores them (rows.c) ---- */

struct rev_row {
	struct rev_id rev;
	bool deleted;
	bool winner;
	bool replaced;         /* by the edit being applied */
	struct rev_seq seq;    /* of a winner */
	uint64_t branch_count; /* of a winner */
	struct str ancestors;  /* encoded elements, newest first */
	bool has_atts;         /* the value ends with true: there are attachments to care for */
	bool has_one_key;      /* with false: of the leaf's body, nothing lies below its root */
};

struct rev_rows {
	struct rev_row *rows; /* winner first */
	size_t count;
};

/* Asks for the document's branches, from the winner downwards; `limit` 0: all of them. */
MUST_USE enum status rev_rows_read(struct kv_tx *tx, const struct rev_db *db, struct str id,
				   size_t limit, enum kv_read mode, struct buf *key,
				   struct kv_future **ret);

/*
 * Waits for rev_rows_read(). Reads on where the answer is longer than one range. Rows borrow from
 * the transaction's futures: they last until it is reset or `f` is freed.
 */
MUST_USE enum status rev_rows_wait(struct kv_tx *tx, const struct rev_db *db, struct str id,
				   size_t limit, enum kv_read mode, struct kv_future *f,
				   struct buf *key, struct arena *arena, struct rev_rows *ret);

/*
 * A branch from the end of its key, behind the document's id, and its value. Borrows from both. Its
 * ancestors are not looked at: whoever goes through them may still find STATUS_CORRUPT.
 */
MUST_USE enum status rev_row_parse(struct str tail, struct str value, struct arena *arena,
				   struct rev_row *ret);

/*
 * Whether the branch is, or descends from, `rev`; then `*ret_rest` are the encoded ancestors of
 * `rev` that it knows. `scratch` is used.
 */
MUST_USE enum status rev_row_find(const struct rev_row *row, struct rev_id rev, struct buf *scratch,
				  bool *ret_found, struct str *ret_rest);

int rev_row_cmp(const struct rev_row *a, const struct rev_row *b);

/* Appends ancestors, as long as the limits allow: some hashes, then what a branch has, once. */
struct rev_stem {
	struct buf *out;
	size_t left; /* ancestors that may still come */
};

void rev_stem_init(struct rev_stem *stem, struct buf *out, const struct rev_db *db);
void rev_stem_add(struct rev_stem *stem, struct str hash);
/* `most`: there are no more of them, since a revision has fewer than its position. */
MUST_USE enum status rev_stem_add_encoded(struct rev_stem *stem, struct str ancestors,
					  uint64_t most);

/* The values of a branch. A winner's has its Sequence filled in by the commit: the offset. */
void rev_value_loser(struct buf *value, const struct rev_row *row);
size_t rev_value_winner(struct buf *value, uint8_t incarnation, uint16_t order,
			uint64_t branch_count, const struct rev_row *row);

/* Twelve bytes for a stamp that the commit fills in, but for the order of the edit. */
void rev_stamp(uint16_t order, uint8_t ret[KV_VERSIONSTAMP_BYTES]);

/* ---- Ranges of names (range.c) ---- */

/*
 * The keys of `range` below the prefix in `lo` (which becomes the lower bound); `hi` becomes the
 * upper one. `after` is appended to a name's key to get past it: REV_KEY_NEXT, or REV_KEY_LAST
 * where more keys lie below a name.
 */
MUST_USE enum status rev_range_bounds(const struct rev_name_range *range, uint8_t after,
				      struct buf *lo, struct buf *hi);

/*
 * The limit of a scan for one page: what is skipped, what is wanted, and one to know whether there
 * is more. 0, no limit, where that is no number.
 */
size_t rev_scan_limit(uint64_t skip, size_t wanted);

/*
 * Room for one more element in an array in the arena, which doubles: `*array` has `count` elements
 * of `size` bytes and room for `*cap`. STATUS_LIMIT.
 */
MUST_USE enum status rev_array_grow(struct arena *arena, void **array, size_t size, size_t count,
				    size_t *cap);

/* The bytes of `a` and of `b`, one behind the other in the arena: a copy of a pair. */
MUST_USE enum status rev_pair_copy(struct arena *arena, struct str key, struct str value,
				   struct kv_pair *ret);

/* ---- Bodies (bodies.c; the last one read.c) ---- */

/*
 * The pairs from `prefix` on: the root's value, the attachments, and the leaves with their paths as
 * keys; what the root's value says is left to the caller. `found` is false if there is no root.
 * Uses `key`, which may hold the prefix.
 */
MUST_USE enum status rev_body_read(struct kv_tx *tx, struct buf *key, struct arena *arena,
				   bool *ret_found, struct str *ret_root, struct rev_doc *ret);

/* The root value of a local document: N of the revision 0-N, and the packed body, if it has it. */
MUST_USE enum status rev_local_root_parse(struct str value, uint64_t *ret, struct str *ret_packed);

/*
 * The body as the database's scheme wants it: `*ret` has either `packed` or leaves, in the arena
 * where they are not the document's own.
 */
MUST_USE enum status rev_body_form(const struct rev_db *db, const struct doc *doc,
				   struct arena *arena, struct rev_doc *ret);

/* ---- Counters and the watched key (stats.c) ---- */

#define REV_STAT_DOCS    STR("doc_count")
#define REV_STAT_DELETED STR("doc_del_count")
#define REV_STAT_CHANGED STR("changed")
#define REV_STAT_PURGED  STR("purged")

/* Adds to a counter; nothing for 0. */
MUST_USE enum status rev_stat_add(struct kv_tx *tx, const struct rev_db *db, struct str name,
				  int64_t delta, struct buf *key);

/* Adds to the counter of that key, which is then there, also for 0. */
MUST_USE enum status rev_counter_add(struct kv_tx *tx, const struct buf *key, int64_t change);

/* A counter that was asked for; absent: 0. */
MUST_USE enum status rev_counter_wait(struct kv_future *f, uint64_t *ret);

/* Remembers the Sequence of the newest purge, so that no Sequence ever goes back. */
MUST_USE enum status rev_stat_purged(struct kv_tx *tx, const struct rev_db *db, uint16_t order,
				     struct buf *key);

/* Leaves a new value under the watched key. */
MUST_USE enum status rev_stat_changed(struct kv_tx *tx, const struct rev_db *db, uint16_t order,
				      struct buf *key);

/* ---- Applying an edit (apply.c) ---- */

struct rev_counted;

struct rev_writer {
	struct kv_tx *tx;
	const struct rev_db *db;
	struct arena *arena;
	struct buf key;
	struct buf value;
	struct buf ancestors; /* of the new leaf, encoded */
	struct buf scratch;
	int64_t docs_delta;
	int64_t deleted_delta;
	bool changed;
	uint16_t last_order;
	struct rev_att_delta *deltas; /* in the arena */
	size_t deltas_count;
	size_t deltas_cap;
	struct rev_guide *guide;     /* of the counters by range; NULL: none is known */
	struct rev_counted *counted; /* in the arena */
	size_t counted_count;
	size_t counted_cap;
};

/* One edit as it is going to be applied. */
struct rev_update {
	const struct rev_edit *edit;
	struct rev_id rev;
	uint16_t order;
	/* Branches that were read, the winner among them if there is one; `replaced` is set on
	 * those that the new leaf descends from. */
	struct rev_row *rows;
	size_t count;
	const struct rev_att *atts; /* of the new leaf, stubs resolved: as many as the edit has */
};

/*
 * Writes the new leaf, whose encoded ancestors are in w->ancestors, clears what it replaces, and
 * moves the winner's belongings: the Sequence, the change, the entry in ALL_DOCS, the counts.
 */
MUST_USE enum status rev_update_apply(struct rev_writer *w, const struct rev_update *u);

/*
 * Clears the rows that are `replaced`, all of the document's rows being there, and leaves its
 * belongings to the best of the others, under a new Sequence; with no other, nothing is left.
 */
MUST_USE enum status rev_update_purge(struct rev_writer *w, const struct rev_update *u);

/*
 * At the end of a batch: attachments, counters, and the watched key if anything has changed. The
 * guide is still the caller's to let go.
 */
MUST_USE enum status rev_writer_finish(struct rev_writer *w);

/* ---- Counters by range (tally.c, tally_read.c) ---- */

/* What is counted. */
enum rev_list {
	REV_LIST_DOCS,    /* the keys of ALL_DOCS */
	REV_LIST_CHANGES, /* those of CHANGES */
	REV_LISTS,
};

/* By how much a range of a guide changes. */
struct rev_counted {
	enum rev_list list;
	size_t range;
	int64_t change;
};

/* The guide that is valid now, with a new reference; NULL if none is known. */
struct rev_guide *rev_guide_get(const struct rev_db *db);
void rev_guide_unref(struct rev_guide *guide); /* NULL is fine */

/* Notes that a key comes (+1) or goes (-1): by what follows the list's prefix. */
MUST_USE enum status rev_tally_count(struct rev_writer *w, enum rev_list list, struct str tail,
				     int64_t change);
/* Notes that a change comes, under the Sequence of the commit. */
MUST_USE enum status rev_tally_count_new(struct rev_writer *w);
/* At the end of a batch: adds to the counters. */
MUST_USE enum status rev_tally_finish(struct rev_writer *w);

/* Gives a new description its tally; reads the counters if nobody of `all` (or NULL) has yet. */
MUST_USE enum status rev_tally_open(struct kv_tx *tx, struct rev_tallies *all, struct rev_db *db);
void rev_tally_unref(struct rev_tally *tally); /* NULL is fine */

/* There is something to do for who tends the database. */
void rev_tally_note(const struct rev_db *db, uint64_t keys);

/* How many keys of the list come before `at`, or are at it and behind it. */
MUST_USE enum status rev_tally_rank(struct kv_tx *tx, const struct rev_db *db, enum rev_list list,
				    struct str at, bool behind, uint64_t *ret);

/* The number of keys between two bounds, read a stretch at a time. */
MUST_USE enum status rev_keys_count(struct kv_tx *tx, struct str lo, struct str hi, uint64_t *ret);

/* ---- Attachments (att.c) ---- */

#define REV_ATT_SPACE_DATA STR("data")
#define REV_ATT_SPACE_REFS STR("refs")

/* (P, ATTACHMENTS, space, id) */
void rev_key_att(struct buf *key, const struct rev_db *db, struct str space,
		 const uint8_t id[REV_ATT_ID_BYTES]);
void rev_key_upload(struct buf *key, uint64_t number, const uint8_t id[REV_ATT_ID_BYTES]);

/* What follows a revision's key in DOCUMENTS in front of an attachment's name. */
#define REV_ATT_MARK STR("\0")

/* The pair of an attachment, behind the revision's key: its path there and its value. */
MUST_USE enum status rev_att_parse(struct str path, struct str value, struct arena *arena,
				   struct rev_att *ret, uint64_t *ret_order);

/* Attachments with the numbers that they were written under, to be put in that order. */
struct rev_att_list {
	struct rev_att *atts;
	uint64_t *orders;
	size_t count;
	size_t cap;
	size_t orders_cap;
};

MUST_USE enum status rev_att_list_add(struct rev_att_list *list, struct str path, struct str value,
				      struct arena *arena);
void rev_att_list_sort(struct rev_att_list *list);

/* Asks for all attachments of a leaf; then waits for them. */
MUST_USE enum status rev_atts_get(struct kv_tx *tx, const struct rev_db *db, struct str id,
				  struct rev_id rev, bool deleted, struct buf *key,
				  struct kv_future **ret);
MUST_USE enum status rev_atts_wait(struct kv_tx *tx, const struct rev_db *db, struct str id,
				   struct rev_id rev, bool deleted, struct kv_future *f,
				   struct buf *key, struct arena *arena, struct rev_att_list *ret);

/* Writes `data`, whose first byte is byte `first` * REV_ATT_CHUNK_BYTES of the attachment. */
MUST_USE enum status rev_att_write_data(struct kv_tx *tx, const struct rev_db *db,
					const uint8_t id[REV_ATT_ID_BYTES], uint64_t first,
					struct str data, struct buf *key);

/* Clears the data and the counter. */
MUST_USE enum status rev_att_clear(struct kv_tx *tx, const struct rev_db *db,
				   const uint8_t id[REV_ATT_ID_BYTES], struct buf *key);

/* Gives up every upload into the database with this number. */
MUST_USE enum status rev_uploads_clear(struct kv_store *store, uint64_t number, struct err *err);

/* ---- Attachments of edits (att_edit.c) ---- */

/* By how much the number of revisions that have an attachment changes. */
struct rev_att_delta {
	uint8_t id[REV_ATT_ID_BYTES];
	int64_t change;
	struct kv_future *refs;
};

/* What is wrong with an edit's attachments before anything is read. `prefix_bytes`: of its key. */
MUST_USE enum status rev_atts_check(const struct rev_edit *edit, size_t prefix_bytes);

/*
 * The new leaf's attachments, with stubs taken from `from`. `revpos`: what those that the edit
 * brings get; 0: as it says. STATUS_ATT_MISSING, with the name in *ret_name.
 */
MUST_USE enum status rev_atts_resolve(const struct rev_edit *edit, const struct rev_att_list *from,
				      uint64_t revpos, struct arena *arena, struct rev_att **ret,
				      struct str *ret_name);

/* Notes that a leaf has come with (+1), or one has gone that had (-1), these attachments. */
MUST_USE enum status rev_atts_count(struct rev_writer *w, const struct rev_att *atts, size_t count,
				    int64_t change);

/* Writes the pointers below w->key, the new leaf's, and the data that comes with the edit. */
MUST_USE enum status rev_atts_write(struct rev_writer *w, const struct rev_update *u);

/* At the end of a batch: the counters, and the data that nothing refers to any more. One wave. */
MUST_USE enum status rev_atts_settle(struct rev_writer *w);

/* ---- Descriptions of databases (db.c, cache.c) ---- */

/* Reads a stored description: everything but the name and the prefix. STATUS_CORRUPT. */
MUST_USE enum status rev_description_parse(struct str value, struct rev_db *ret);

/*
 * Reads that of one database, all but the prefix; its name is borrowed. STATUS_NOT_FOUND. Writing
 * or clearing one leaves it to the caller to touch the metadata version.
 */
MUST_USE enum status rev_description_get(struct kv_tx *tx, struct str name, struct rev_db *ret,
					 struct err *err);
MUST_USE enum status rev_description_set(struct kv_tx *tx, const struct rev_db *db);
MUST_USE enum status rev_description_clear(struct kv_tx *tx, struct str name);

/*
 * A number for a database. They are never used again: nothing of a deleted database can come back
 * in a new one.
 */
MUST_USE enum status rev_number_allocate(struct kv_tx *tx, uint64_t *ret);

/* Deletes the database, whatever state it is in. Touches the metadata version. */
MUST_USE enum status rev_db_remove(struct kv_tx *tx, const struct rev_db *db);

/* STATUS_UNAVAILABLE if a database of this name is being moved here (move_record.c). */
MUST_USE enum status rev_move_check_absent(struct kv_tx *tx, struct str name, struct err *err);

/* Counted, with one reference. NULL when out of memory. `from` gives everything but the prefix. */
struct rev_db *rev_db_new(const struct rev_db *from);

/* What the cache's descriptions share; NULL: nothing. */
struct rev_tallies *rev_cache_tallies(const struct rev_cache *cache);

/* The description that is valid at this metadata version, with a new reference; NULL if unknown. */
struct rev_db *rev_cache_find(struct rev_cache *cache,
			      const uint8_t version[KV_VERSIONSTAMP_TX_BYTES], struct str name);

/* Leaves word that the keys of the database with this number are to be cleared. */
MUST_USE enum status rev_drop_begin(struct kv_tx *tx, uint64_t number);

/*
 * One transaction of rev_dropped_sweep(), for who has the store to himself and need not leave
 * others their turn: REV_DROP_ALONE_KEYS at once.
 */
enum {
	REV_DROP_ALONE_KEYS = 50000,
};

MUST_USE enum status rev_dropped_clear(struct kv_store *store, bool *ret_more, struct err *err);

/* Remembers a description read at that metadata version, if the cache is still there. */
void rev_cache_add(struct rev_cache *cache, const uint8_t version[KV_VERSIONSTAMP_TX_BYTES],
		   struct rev_db *db);

/* ---- The store, and what happens to its databases (events.c) ---- */

/* What new databases begin with; no database of the store has a greater one. */
MUST_USE enum status rev_store_incarnation(struct kv_tx *tx, uint8_t *ret);
MUST_USE enum status rev_store_incarnation_set(struct kv_tx *tx, uint8_t incarnation);

/*
 * Raises the store's Incarnation and that of every database in it to `least` where they are below:
 * a database with that one is coming, and events of all databases are in one order (relocate.c).
 */
MUST_USE enum status rev_incarnations_raise_to(struct kv_store *store, uint8_t least,
					       struct err *err);

/* Notes that the database has been created or deleted by this transaction, and wakes feeds. */
MUST_USE enum status rev_event_put(struct kv_tx *tx, struct str name, enum rev_event_kind kind,
				   uint8_t incarnation);

#endif
