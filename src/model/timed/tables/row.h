/*
 * Rows of a table (tables.h): writing, reading, going through them.
 *
 * A key is a token, which the caller computes from the hash components, and all components in the
 * order of the schema. Rows lie in the order of their tokens as signed numbers, then of the hash
 * components, then of the range components. A component that has no scalar of its own, such as a
 * frozen collection, is DOC_BYTES of the caller's making, whose order is the one of their bytes. A
 * number comes back as doc/key_read.h says, by its value: the caller knows the type.
 *
 * Functions that write read nothing unless their comment says so, but for the clock, once in a
 * transaction. No function commits. What is returned lies in the caller's arena. Threading: that of
 * the transaction.
 */
#ifndef FROND_MODEL_TIMED_TABLES_ROW_H
#define FROND_MODEL_TIMED_TABLES_ROW_H

#include "model/timed/tables/tables.h"

enum {
	TABLE_PLACE_BYTES = 10000,      /* of a place where a scan goes on */
	TABLE_PACKED_BYTES = 16 * 1024, /* of what is packed in one row */
};

/*
 * `count` is key_count for a row; hash_count for a partition and its static columns. In a table
 * without range components both name the only row of a partition, and there are no statics.
 */
struct table_key {
	int64_t token;
	const struct doc_scalar *parts;
	size_t count;
};

/* ---- What orders writes (stamps.c) ---- */

/*
 * Writes take effect in the order in which they commit, unless a client says otherwise: what is
 * written and cleared from here on has `stamp`, microseconds that may be any but INT64_MIN, and
 * takes effect only where nothing has a later one. Of what has no stamp the moment of its
 * transaction counts. This is so cell by cell. Of equal stamps the deletion wins, as which a value
 * counts that has expired, then the greater value, then the one that lives longer. Expiry counts
 * from the moment in any case.
 *
 * Such a writer reads what it would overwrite. Its first use in a table sets a flag of the table's
 * description, by a transaction of its own, and the functions below then return STATUS_TX_CONFLICT:
 * the caller begins again. From then on deletions of any writer leave marks (marks.c), which such
 * writers read, for as many seconds as TABLE_PROPERTY_GRACE says. What had been deleted before, or
 * longer ago, may come back by an older stamp. A writer without a stamp reads nothing else than
 * whether there were stamps ahead of the moment, and as long as that is so, it compares as well,
 * with the moment as its stamp, and wins where that is equal.
 *
 * STATUS_INVALID, explained, in a table of counters, and for INT64_MIN.
 */
MUST_USE enum status table_stamp_set(struct timed *t, int64_t stamp);
/* Back to the order of commits. */
void table_stamp_unset(struct timed *t);

/*
 * From here on rows are put back that were there before, with timed_written_at(), and where they
 * had one, with a stamp: nothing is compared, clearing leaves no marks, and table_clear_row() takes
 * away the marks that are in the row's way.
 */
void table_restore_begin(struct timed *t);
void table_restore_end(struct timed *t);

/* ---- Writing (write.c) ---- */

enum table_change_kind {
	/* A column of TABLE_SINGLE becomes `value`; DOC_NULL clears it. */
	TABLE_CHANGE_PUT,
	/* A column of any storage is cleared. With a list, a map, a set it is emptied. */
	TABLE_CHANGE_CLEAR,
	/* An element of a map (`element` its key), or a member of a set (no value) is written. */
	TABLE_CHANGE_PUT_ELEMENT,
	/* An element is cleared: by its key, as a member, or as a list's by its `place`. */
	TABLE_CHANGE_CLEAR_ELEMENT,
	/* A value is put behind, or before, all elements of a list: appending a and then b gives
	 * a, b; prepending a and then b gives b, a. */
	TABLE_CHANGE_APPEND,
	TABLE_CHANGE_PREPEND,
	/* The list's element at `element`, its place as a row has it, becomes `value`. */
	TABLE_CHANGE_PUT_PLACE,
	/* `value.n` is added to a counter. */
	TABLE_CHANGE_ADD,
};

struct table_change {
	enum table_change_kind kind;
	uint64_t column; /* its id */
	struct doc_scalar element;
	struct doc_scalar value;
	struct timed_expiry expiry; /* of what is written; TIMED_EXPIRY_DEFAULT is zero */
	/* Of TABLE_CHANGE_CLEAR, before a collection gets new elements: it takes effect right
	 * before what has the same stamp, and not behind that as a deletion does. */
	bool makes_way;
};

/*
 * The changes of a row, in their order. All zero but for the key: nothing. A key of a partition
 * writes its static columns, one of a row only regular ones.
 */
struct table_write {
	struct table_key key;
	/* The row is there even if no column has a value (as after INSERT, not UPDATE). */
	bool inserts;
	/*
	 * The transaction has cleared the row, or has read that no pair of it is there (`has_pairs`
	 * of table_row), and conflicts with whoever writes one: what an INSERT would pack is not
	 * looked for again.
	 */
	bool is_new;
	/* What table_look_ask() has asked for of this write; NULL: nothing. */
	struct table_look *look;
	/* The caller tells the count (table_count_add()); nothing of the row expires. */
	bool tells_count;
	struct timed_expiry expiry; /* of that; of nothing else */
	const struct table_change *changes;
	size_t change_count;
};

/*
 * STATUS_INVALID, explained, for changes that do not fit the schema; STATUS_VALUE_TOO_LARGE,
 * STATUS_KEY_TOO_LARGE, explained with the limit's name: TABLE_VALUE_BYTES, TIMED_KEY_BYTES.
 *
 * Also STATUS_TX_CONFLICT, before anything is committed: when a column gets its first value that is
 * too long for one pair, and when nobody tells the count of a table that has one. By then another
 * transaction has changed the table's description, so the caller begins its transaction again, as
 * after any conflict. All other functions that clear rows do the same for the count.
 */
MUST_USE enum status table_write(struct timed *t, const struct table_write *write);

/*
 * In a table whose rows are whole: writes into its description, in this transaction, that rows may
 * have leaves. Without this call table_write() does so in a transaction of its own before the first
 * leaf, and fails with STATUS_TX_CONFLICT. `t` still says that rows are whole. So the caller opens
 * the table again, without a cache, and uses `t` no more.
 */
MUST_USE enum status table_leaves_begin(struct timed *t);

/*
 * Asks for what table_write() of this INSERT has to read, so that writers of several rows wait for
 * all of it together. `*ret`, in the arena: its `look`, which table_look_end() ends in any case;
 * NULL: it reads nothing that can be asked for before. Until it is written the transaction writes
 * nothing else of the row, and only by INSERTs.
 */
MUST_USE enum status table_look_ask(struct timed *t, const struct table_write *write,
				    struct arena *arena, struct table_look **ret);
/* True if both are of one row. */
bool table_look_meets(const struct table_look *a, const struct table_look *b);
void table_look_end(struct table_look *look); /* NULL is fine */

/*
 * Clears a row, or with a key of a partition its static columns alone. STATUS_INVALID, explained.
 */
MUST_USE enum status table_clear_row(struct timed *t, const struct table_key *key);
/* The same for a caller that tells the count. */
MUST_USE enum status table_clear_told_row(struct timed *t, const struct table_key *key);

/* An end of a range of rows: the first `count` range components. Rows that begin so equal it. */
struct table_edge {
	enum timed_bound_kind kind;
	const struct doc_scalar *parts;
	size_t count;
};

/*
 * Clears rows of a partition between two edges in the order in which they lie, and not its static
 * columns. Without a history it reads nothing, and all of the range goes at once. With one, or with
 * a stamp, a transaction clears whole rows that together have TIMED_CLEAR_KEYS keys, or one that
 * has more, and `*ret_more` is true if rows are left. In a table whose clients use stamps,
 * STATUS_INVALID, explained, once TABLE_RANGE_MARKS deletions of ranges are remembered of a
 * partition.
 */
MUST_USE enum status table_clear_range(struct timed *t, const struct table_key *partition,
				       const struct table_edge *from, const struct table_edge *to,
				       bool *ret_more);
/* The same of a whole partition, its static columns with it. */
MUST_USE enum status table_clear_partition(struct timed *t, const struct table_key *partition,
					   bool *ret_more);

/* ---- Counting (count.c) ---- */

/*
 * A table with `counted` in its schema has a counter of its rows. It is right as long as every
 * writer knows of each row that it writes or clears whether the row was there, by having read it in
 * the same transaction, with a conflict; writes no row that is not inserted, and nothing that
 * expires; and tells how many rows have come, less those that have gone. The first write of one who
 * does not ends the count, until the table is emptied (table_truncate()).
 */
MUST_USE enum status table_count_add(struct timed *t, int64_t rows);
/*
 * How many rows there are, what the transaction has told with them. `*ret_known` is false, and
 * `*ret` 0, where the table is not counted, or the past is read. With KV_READ the transaction
 * conflicts with whoever adds or removes rows.
 */
MUST_USE enum status table_count_read(struct timed *t, enum kv_read mode, uint64_t *ret,
				      bool *ret_known);

/* ---- Reading (read.c) ---- */

/* A value that is there at the transaction's moment. */
struct table_cell {
	const struct table_column *column; /* of the table's description, as long as that lasts */
	/* Of a map: the key. Of a set: the member. Of a list: its place, which means nothing else
	 * than where the element is. Otherwise DOC_NULL. */
	struct doc_scalar element;
	struct doc_scalar value; /* of a set DOC_NULL; of a counter DOC_INT64 */
	uint64_t write_us;       /* since 1970; 0 of a counter */
	bool has_stamp;          /* a client's stamp orders it */
	int64_t stamp;           /* if it has one */
	uint64_t expires_ms;     /* since 1970; 0: never */
	bool by_default;         /* it expires, or does not, by the table's default TTL */
};

struct table_row {
	int64_t token;
	struct doc_scalar *key; /* the components of the schema; of statics alone hash_count */
	size_t key_count;
	bool is_row;         /* false: only static columns are there (see table_scan_options) */
	bool has_pairs;      /* of table_read(), also of a row that is not there: it has expired */
	bool inserted;       /* it is there whatever its columns are */
	uint64_t write_us;   /* of that */
	bool has_stamp;      /* likewise */
	int64_t stamp;       /* likewise */
	uint64_t expires_ms; /* likewise; 0: never */
	bool by_default;     /* likewise */
	/* By the ids of their columns, elements in their order. Only columns that were wanted. */
	struct table_cell *cells;
	size_t cell_count;
	struct table_cell *statics;
	size_t static_count;
};

/* Which columns are wanted. */
struct table_wanted {
	bool some;           /* else all */
	const uint64_t *ids; /* ascending */
	size_t count;
};

/*
 * Reads the row at a key, and with `statics` the static columns of its partition; both, and the
 * clock, in one round trip. With a key of a partition it reads the static columns alone.
 * STATUS_NOT_FOUND: there is no such row; with `statics` only if there are no static values either,
 * otherwise `is_row` tells. `wanted` may be NULL: all. STATUS_LIMIT when the arena is full;
 * STATUS_CORRUPT, explained.
 */
MUST_USE enum status table_read(struct timed *t, const struct table_key *key, bool statics,
				const struct table_wanted *wanted, struct arena *arena,
				struct table_row *ret);

/*
 * The same in two steps, for whoever reads several rows: all that table_read() reads first is asked
 * for, and table_asked_read() waits for it, once. The key and `wanted` last until then. `*ret` is
 * the caller's to free.
 */
struct table_asked;
MUST_USE enum status table_ask(struct timed *t, const struct table_key *key, bool statics,
			       const struct table_wanted *wanted, struct table_asked **ret);
MUST_USE enum status table_asked_read(struct table_asked *asked, struct arena *arena,
				      struct table_row *ret);
void table_asked_free(struct table_asked *asked); /* may be NULL */

/*
 * Whether rows are new, for whoever inserts several of them, which may come in the order of their
 * keys: what is known to be empty, up to the next pair. All fields are private (gap.c).
 */
struct table_gap {
	struct buf end;         /* behind the last row that will be asked for */
	struct buf from, until; /* nothing is there; `from` empty: nothing is known */
	unsigned misses;        /* reads that have told of one row only */
};
void table_gap_init(struct table_gap *g);
void table_gap_release(struct table_gap *g);
/* Before the first row is asked for: `last` is the one that comes last. */
MUST_USE enum status table_gap_begin(struct table_gap *g, struct timed *t,
				     const struct table_key *last);
/*
 * `*ret_is_new`: no pair of the row is there, and the transaction conflicts with whoever writes
 * one; then the caller writes the row, before it asks for another one. Otherwise nothing was found
 * out, and table_read() tells. Reads one pair at most, and where rows come in order, once for all
 * of them up to the next one that is there.
 */
MUST_USE enum status table_gap_look(struct table_gap *g, struct timed *t,
				    const struct table_key *key, bool *ret_is_new);

/* The cells of a column in a row that was read; `*ret_count` is 0 if it is null. */
const struct table_cell *table_cells_of(const struct table_cell *cells, size_t count,
					const struct table_column *column, size_t *ret_count);

/* ---- Going through rows (scan.c) ---- */

/* An end of a range of tokens. */
struct table_token_edge {
	enum timed_bound_kind kind;
	int64_t token;
};

struct table_scan_options {
	/* The rows of a partition, between two edges in the order in which they lie … */
	const struct table_key *partition;
	struct table_edge from, to;
	/* … or, if that is NULL, those of a range of tokens. */
	struct table_token_edge from_token, to_token;
	bool reverse;      /* from the end of the range towards its beginning */
	struct str after;  /* go on behind a table_scan_place(), with the same range; or empty */
	bool statics;      /* read static columns beside rows */
	bool static_alone; /* and of partitions without rows, once each, in their place; not
			      with edges */
	const struct table_wanted *wanted; /* NULL: all columns */
	size_t rows;                       /* about so many are wanted; 0: all */
	/*
	 * Texts of a row may be borrowed from what the scan has read: they last until the next
	 * call, or until it is closed, and are not in the arena.
	 */
	bool borrows;
	/* The scan pauses behind a row when it has read so much; 0: never. */
	size_t pairs_most;
	size_t bytes_most; /* keys and values */
};

struct table_scan;

/* The options are read now, and `wanted` while the scan lasts. `*ret` is the caller's to close. */
MUST_USE enum status table_scan_open(struct timed *t, const struct table_scan_options *options,
				     struct table_scan **ret);
/*
 * The next row that is there. STATUS_NOT_FOUND at the end of the range, or where the scan pauses:
 * table_scan_paused() tells.
 */
MUST_USE enum status table_scan_next(struct table_scan *scan, struct arena *arena,
				     struct table_row *ret);
/* True if there may be rows behind the place: the scan ended because it had read so much. */
bool table_scan_paused(const struct table_scan *scan);
/*
 * Appends the place behind the last row that was returned, or where the scan paused: bytes to be
 * kept anywhere, which mean the same in another transaction, process and version of the table's
 * rows. TABLE_PLACE_BYTES at most.
 */
MUST_USE enum status table_scan_place(const struct table_scan *scan, struct buf *ret);
/* Leaves out what is left of the partition of the last row. */
MUST_USE enum status table_scan_skip_partition(struct table_scan *scan);
void table_scan_close(struct table_scan *scan); /* NULL is fine */

#endif
