/* What the files of tables share: the schema's record, keys, pairs that become rows. */
#ifndef FROND_MODEL_TIMED_TABLES_TABLES_INT_H
#define FROND_MODEL_TIMED_TABLES_TABLES_INT_H

#include "index/engine/def.h"
#include "index/engine/source.h"
#include "kv/many.h"
#include "model/timed/tables/index.h"
#include "model/timed/tables/keyspaces.h"
#include "model/timed/tables/row.h"
#include "model/timed/timed_int.h"

enum {
	TABLE_TOKEN_BYTES = 8,
	TABLE_RECORD_ARENA_BYTES = 4 * 1024 * 1024, /* while a schema is changed */
	TABLE_NEEDS_ARENA_BYTES = 64 * 1024 * 1024, /* all types of a keyspace */
};

/* ---- The schema (schema.c) ---- */

/* (P, TABLE) */
MUST_USE enum status table_schema_key(const struct catalog_db *db, struct buf *key);
void table_schema_put(const struct table_schema *schema, struct buf *value);
MUST_USE enum status table_schema_parse(struct str value, struct arena *arena,
					struct table_schema *ret, struct err *err);
/* True if INSERT packs rows by the properties: counters have nothing to pack. */
bool table_schema_asks_to_pack(const struct table_schema *schema);
/* True if the rows of a table that is empty may be whole (whole.c). */
bool table_schema_may_be_whole(const struct table_schema *schema);
/* STATUS_INVALID, explained, if no table can have this schema. */
MUST_USE enum status table_schema_check(const struct table_schema *schema, struct err *err);
/* Writes the record of a table. STATUS_INVALID, explained, if it is too long. */
MUST_USE enum status table_schema_write(struct kv_tx *tx, const struct catalog_db *db,
					const struct table_schema *schema, struct err *err);
/* The record as it is stored, in the arena. STATUS_CORRUPT, explained: also if there is none. */
MUST_USE enum status table_schema_get(struct kv_tx *tx, const struct catalog_db *db,
				      enum kv_read mode, struct arena *arena,
				      struct table_schema *ret, struct err *err);
/* The same; the transaction conflicts with changes of it. */
MUST_USE enum status table_schema_read(struct kv_tx *tx, const struct catalog_db *db,
				       struct arena *arena, struct table_schema *ret,
				       struct err *err);
/* What writers do for the first time in a table, whose description says so from then on. */
enum table_first {
	TABLE_FIRST_STAMP, /* it is `stamped`, and not `whole`: leaves are made of what is packed */
	TABLE_FIRST_LEAF,  /* it is not `whole` any more */
	TABLE_FIRST_UNTOLD, /* not `counted` any more: rows are written whose count nobody tells */
};

/*
 * Changes the table's description by a transaction of its own, and returns STATUS_TX_CONFLICT: the
 * caller begins again, and finds it changed (alter.c). Another failure if that was not possible.
 */
MUST_USE enum status table_schema_note(struct timed *t, enum table_first first);
/*
 * What an opened table keeps: the schema and the indexes, in an arena of its own, and the engine's
 * set of definitions (NULL: there are none). `kept` are the indexes that writers keep, as set->kept
 * has them.
 */
struct table_extension {
	struct arena *arena;
	struct table_schema schema;
	_Atomic(struct table_note *) note; /* NULL: nobody has left one */
	void *set;
	const struct table_index *indexes;
	size_t index_count;
	const struct table_index *kept;
	size_t kept_count;
	const uint64_t *used; /* ids of the columns that these look at, ascending */
	size_t used_count;
};

enum status table_extend(struct kv_tx *tx, const struct catalog_db *db, void **ret,
			 struct err *err);
void table_extension_free(void *extension);

/* STATUS_INVALID, explained with what it names, such as "a column". */
MUST_USE enum status table_check_text(const char *what, struct str text, size_t least, size_t most,
				      const char *limit, struct err *err);
/* 1 to TABLE_NAME_BYTES letters, digits and underscores. */
MUST_USE enum status table_check_name(const char *what, struct str name, struct err *err);
MUST_USE enum status table_check_properties(const struct table_property *properties, size_t count,
					    struct err *err);
/* The properties with some of them set, by name: in the arena. STATUS_LIMIT. */
MUST_USE enum status table_properties_merge(const struct table_property *old, size_t old_count,
					    const struct table_property *set, size_t set_count,
					    struct arena *arena, const struct table_property **ret,
					    size_t *ret_count);
void table_properties_put(const struct table_property *properties, size_t count, struct buf *value);
MUST_USE enum status table_properties_next(struct tuple_reader *r, struct arena *arena,
					   const struct table_property **ret, size_t *ret_count);

/* The subspace in which the cells of the table lie: ROWS or COUNTER. */
static inline enum timed_space
table_space(const struct table_schema *schema)
{
	return schema->counters ? TIMED_SPACE_COUNTER : TIMED_SPACE_ROWS;
}

/* ---- Counting (count.c) ---- */

/*
 * To be called before rows are written or cleared. Unless the caller `tells` the count, a table
 * that was counted is so no more; then returns STATUS_TX_CONFLICT, as table_schema_note().
 */
MUST_USE enum status table_count_check(struct timed *t, bool tells);
/* The value of the counter. False: it is none. */
bool table_count_parse(struct str value, uint64_t *ret);
/* Compares the counter with `rows`, NULL: not known, and looks that nothing else is beside it. */
MUST_USE enum status table_verify_count(struct catalog_verify *v, const uint64_t *rows);

/* ---- Columns that were dropped (dropped.c) ---- */

/* Says that all cells are to be looked at for columns that are no longer there. */
MUST_USE enum status table_dropped_begin(struct timed *t);
/* Clears such cells among some, TIMED_SWEEP_KEYS at most, if any are to be looked at. */
MUST_USE enum status table_dropped_tend(struct timed *t, uint64_t *ret_done, bool *ret_more);

/* ---- Values in pieces, while they are read (pieces.c) ---- */

/* A piece that came before its cell. */
struct table_piece {
	uint64_t n;
	struct str value;
	struct table_piece *next;
};

/* The pieces of a value while they are read. All zero: none are awaited. */
struct table_pieces {
	char *to;      /* where the next one goes; NULL: they are only counted */
	uint64_t left; /* bytes */
	uint64_t next; /* its number */
	bool skips;    /* those that come now are of no interest */
	/* Backward they come before their cell, the last one first. */
	struct table_piece *kept;
};

/* ---- Indexes (index.c, stored.c, index_write.c, indexed.c, verify_indexes.c) ---- */

enum {
	TABLE_LIST_ENTRIES = 0,                      /* of the kind's lists */
	TABLE_INDEX_ARENA_BYTES = 256 * 1024 * 1024, /* of one row and its entries */
	TABLE_SPAN_KEYS = 4,                         /* columns of a span that are read as keys */
};

extern const struct index_documents table_indexed_rows;

/* See struct catalog_kind. */
const void *table_extension_indexes(const void *extension);
/* Loads the definitions into the extension, whose schema is there. */
MUST_USE enum status table_indexes_load(struct kv_tx *tx, const struct catalog_db *db,
					struct table_extension *extension, struct err *err);
/*
 * Gives a table that this transaction has created anew, without rows, the indexes of the one that
 * it replaces.
 */
MUST_USE enum status table_indexes_carry(struct kv_tx *tx, const struct catalog_db *from,
					 const struct catalog_db *to, struct err *err);

/* True if entries of the index depend on the column. */
bool table_index_looks_at(const struct table_index *index, uint64_t column);

/* A row as entries are made of it: what is stored of `used` columns, expired or not. */
struct table_stored {
	const struct table_extension *extension;
	struct arena *arena;
	struct index_typed_cell *cells;
	size_t cap;
	struct index_typed_row row;
	struct table_pieces pieces; /* of the value that was taken last */
};

/* Begins with the columns of the key; `tail` is the row's key behind the subspace. */
MUST_USE enum status table_stored_begin(struct table_stored *s, const struct catalog_db *db,
					struct arena *arena, struct str tail);
/* Adds a pair, by the rest of its key behind the row's. All pairs come, in the order of keys. */
MUST_USE enum status table_stored_take(struct table_stored *s, struct str rest, struct str value);
/* After the last pair. STATUS_CORRUPT: pieces of a value are missing. */
MUST_USE enum status table_stored_end(const struct table_stored *s);
/*
 * Columns whose ids lie side by side. All zero: all, and that the row was inserted. Where each of
 * those that matter is one pair, they are named, too: keys are found in less time than a range, and
 * of what the transaction has written itself, without sorting it.
 */
struct table_span {
	bool some;
	uint64_t first, last;
	uint64_t ids[TABLE_SPAN_KEYS]; /* ascending */
	size_t count;                  /* 0: they are not named */
	bool many;                     /* there are too many, or one is a collection */
};

/* Pairs of a row that a writer has read already, each the whole of its column. */
struct table_known {
	uint64_t columns[KV_MANY];  /* 0: the row's own cell */
	struct str values[KV_MANY]; /* `ptr` NULL: there is none */
	size_t count;
};

/* The value of a column's pair, or of the row's own cell. False: it is not known. */
bool table_known_find(const struct table_known *known, uint64_t column, struct str *ret);

/*
 * Reads the row with this key (P, ROWS, …) from the store, as the transaction has written it, or
 * those columns of it that lie in the span (NULL: all). What is `known` (may be NULL) is not read
 * again, where the span names its columns. `*ret_there`: there is any pair. STATUS_CORRUPT.
 */
MUST_USE enum status table_stored_read(struct table_stored *s, struct kv_tx *tx,
				       const struct catalog_db *db, struct str key,
				       const struct table_span *span, enum kv_read mode,
				       const struct table_known *known, struct arena *arena,
				       bool *ret_there);

/* Keeping the indexes of one row, while it is changed. */
struct table_indexing {
	struct timed *t;
	struct arena *arena; /* NULL: no index is touched */
	struct arena *lasting;
	struct str key;         /* of the row, in the arena */
	bool *untouched;        /* by the kept indexes */
	struct table_span span; /* of the columns that the others look at */
	struct table_stored before, after;
	const struct table_known *known; /* of the row as it is now; may be NULL */
	bool had, has;                   /* there was a row, and is one */
	struct str taken; /* after STATUS_DUPLICATE: the key of the entry in the way */
};

/*
 * Before a row is written or cleared, by its key (P, ROWS, …): reads what entries are made of, if
 * the changes touch an index. `changes` NULL: all of the row goes. `known` (may be NULL) is what
 * the writer has read of the row; behind its writes it has brought that up to date, and entries
 * are made of it again. The caller calls table_indexing_end() whatever this returns.
 */
MUST_USE enum status table_indexing_begin(struct table_indexing *x, struct timed *t, struct str key,
					  const struct table_change *changes, size_t count,
					  const struct table_known *known);
/* Behind the writes: changes the entries. Explains what indexes cannot have. */
MUST_USE enum status table_indexing_finish(struct table_indexing *x);
void table_indexing_end(struct table_indexing *x);

/*
 * Clears the cells of a row that have expired, by its key (P, ROWS, …), as the sweep will do.
 * `except`: an index that has no entry of the row yet; NULL: none. `*ret_any`: there were such
 * cells.
 */
MUST_USE enum status table_row_expire(struct timed *t, struct str key,
				      const struct index_def *except, bool *ret_any);
/* The same of the row that the entry with this key stands for, which is in a unique value's way. */
MUST_USE enum status table_taken_expire(struct timed *t, struct str taken, bool *ret_any);

/* Checks the entries of the table that is checked, in both directions. */
MUST_USE enum status table_verify_indexes(struct catalog_verify *v);
MUST_USE enum status table_verify_indexes_in_ranges(struct catalog_verify *v);

/* ---- Keyspaces (keyspaces.c) ---- */

/* STATUS_NOT_FOUND, explained. The transaction conflicts with a drop of the keyspace. */
MUST_USE enum status table_keyspace_check(struct kv_tx *tx, struct str name, struct err *err);
/* Clears the keyspace and its types; create.c has deleted its tables. */
MUST_USE enum status table_keyspace_clear(struct kv_tx *tx, struct str name);
/* Makes one without properties if there is none of that name. */
MUST_USE enum status table_keyspace_ensure(struct kv_tx *tx, struct str name);
/* The check of a pair below (ROOT, 20). */
void table_keyspace_verify(struct catalog_verify *v, struct tuple_reader key,
			   const struct kv_pair *pair);

/* See struct catalog_kind, move_share (needs.c). */
MUST_USE enum status table_needs_share(struct kv_store *from, struct kv_store *to,
				       const struct catalog_db *db, struct err *err);

/* ---- Keys (keys.c) ---- */

/*
 * (P, ROWS, token and hash components, range components): the key of a row, or of the row without
 * range components that has a partition's static columns. STATUS_INVALID, explained.
 */
MUST_USE enum status table_key_row(struct timed *t, const struct table_key *key, struct buf *ret);
/* (P, ROWS, token and hash components), what the keys of a partition begin with. */
MUST_USE enum status table_key_partition(struct timed *t, const struct table_key *key,
					 struct buf *ret);
/* What the keys of all rows with such a token begin with, and those with greater ones follow. */
MUST_USE enum status table_key_token(struct timed *t, int64_t token, struct buf *ret);
/* The keys between which the rows of a partition lie that are between two edges. */
MUST_USE enum status table_key_range(struct timed *t, const struct table_key *partition,
				     const struct table_edge *from, const struct table_edge *to,
				     struct buf *begin, struct buf *end);
/* Appends a column, and an element in it unless that is NULL. */
MUST_USE enum status table_key_cell(struct timed *t, uint64_t column,
				    const struct doc_scalar *element, struct buf *key);

/* True if the key belongs to a row whose static columns it has: a partition's. */
static inline bool
table_key_is_static(const struct table_schema *schema, const struct table_key *key)
{
	return schema->key_count > schema->hash_count && key->count == schema->hash_count;
}

/* The key of a row as it is stored. */
struct table_place {
	uint16_t hash; /* the first two bytes */
	int64_t token;
	struct doc_scalar *key;
	size_t key_count; /* hash_count of the schema: static columns */
	uint64_t column;  /* 0: the row's own cell */
	bool has_element;
	struct doc_scalar element;
	bool is_piece; /* the key is that of a piece of the cell's value */
	uint64_t piece;
};

/* The row's part of a key behind the subspace; `*ret_len` is its length. STATUS_CORRUPT. */
MUST_USE enum status table_place_row(const struct table_schema *schema, struct str tail,
				     struct arena *arena, struct table_place *ret, size_t *ret_len);
/*
 * The same of another row of the partition that the place `of` is in, from what is behind the
 * partition's part of the key on. Texts of the partition's components are borrowed from `of`.
 */
MUST_USE enum status table_place_row_beside(const struct table_schema *schema,
					    const struct table_place *of, struct str rest,
					    struct arena *arena, struct table_place *ret);
/* The rest of the key. STATUS_CORRUPT. */
MUST_USE enum status table_place_cell(struct str rest, struct arena *arena,
				      struct table_place *ret);
/* Both. */
MUST_USE enum status table_place_parse(const struct table_schema *schema, struct str tail,
				       struct arena *arena, struct table_place *ret);
/* Only which column it is, of what is behind the row's part. STATUS_CORRUPT. */
MUST_USE enum status table_place_column(struct str rest, uint64_t *ret);

/* ---- Cells that have expired (marks.c) ---- */

/*
 * Clears a cell that has expired. Where clients order writes by stamps it leaves a mark: an older
 * value must not come back.
 */
MUST_USE enum status table_expired_clear(struct timed *t, struct str key,
					 const struct timed_cell *cell);

/* ---- Values in pieces (pieces.c) ---- */

/* True of a value that is too long for one pair, which only a text or bytes can be. */
bool table_value_is_long(const struct doc_scalar *value);
/* True of a change that writes such a value, and one that a row may have. */
bool table_change_is_long(const struct table_change *change);
/*
 * What table_write() calls once the write is known to fit the schema (alter.c). Returns
 * STATUS_TX_CONFLICT after it has changed the table's description, in another transaction, for the
 * first long value of a column.
 */
MUST_USE enum status table_write_allow_pieces(struct timed *t, const struct table_write *write);
/* Clears a cell, and if its column has pieces, those that may lie below it. */
MUST_USE enum status table_cell_clear(struct timed *t, struct str cell, bool has_pieces);
/*
 * Writes such a value at the key of a cell, below which there is nothing. STATUS_VALUE_TOO_LARGE,
 * explained.
 */
MUST_USE enum status table_pieces_write(struct timed *t, struct str cell,
					const struct doc_scalar *value, struct timed_expiry expiry);

/* Behind a cell whose value lies in pieces: these come, and are only counted. */
void table_pieces_begin(struct table_pieces *p, const struct timed_cell *cell);
/*
 * The same, and the value is put together in the arena: it is whole once no piece is left.
 * STATUS_LIMIT; STATUS_CORRUPT.
 */
MUST_USE enum status table_pieces_open(struct table_pieces *p, const struct timed_cell *cell,
				       struct arena *arena, struct doc_scalar *ret);
/* Behind a cell whose value nobody wants: its pieces are passed over. */
void table_pieces_skip(struct table_pieces *p);
/* Takes the value of the next pair. False: it is not the piece that belongs there. */
bool table_pieces_take(struct table_pieces *p, uint64_t n, struct str value);
/* Keeps a piece until its cell comes. */
MUST_USE enum status table_pieces_keep(struct table_pieces *p, uint64_t n, struct str value,
				       struct arena *arena);

/* ---- Rows from pairs (read.c) ---- */

/* A row while its pairs are read, in either direction. */
struct table_reading {
	struct timed *t;
	const struct table_schema *schema;
	const struct table_wanted *wanted; /* NULL: all */
	struct arena *arena;
	const struct table_place *beside; /* of the row's partition, read before; or NULL */
	size_t partition_len;             /* of its key */
	bool borrows; /* texts stay where the pairs are, until table_reading_own() */
	bool reverse;
	bool is_static;
	bool any; /* a pair was read, so the row has its key */
	bool lives;
	struct table_row row;
	size_t cap;
	struct table_pieces pieces;
	/* Of a packed row: what its own cell has, and columns whose leaves have expired. */
	struct table_cell *packed;
	size_t packed_count, packed_cap;
	uint64_t *hidden;
	size_t hidden_count, hidden_cap;
	/* Where the next column is looked for first: of the schema, of those that are wanted. */
	size_t column_at, wanted_at;
	size_t cells_owned, packed_owned; /* whose texts no longer lie in pairs */
};

/* Takes a pair; `row_len` is how much of its key is the row's. */
MUST_USE enum status table_reading_take(struct table_reading *r, const struct kv_pair *pair,
					size_t row_len);
/*
 * Copies the texts that were borrowed from pairs, which are about to go, into the arena. May be
 * called again, until table_reading_end(). STATUS_LIMIT.
 */
MUST_USE enum status table_reading_own(struct table_reading *r);
/*
 * After the last pair. `*ret_there`: the row is there. STATUS_CORRUPT: pieces are missing;
 * STATUS_LIMIT.
 */
MUST_USE enum status table_reading_end(struct table_reading *r, bool *ret_there);

enum {
	TABLE_PICK_KEYS = 2,   /* columns that are asked for as keys */
	TABLE_PICK_PACKED = 8, /* likewise, of a packed row */
};

/* One row that is asked for by its key, and with it the static columns of its partition. */
struct table_pick {
	struct timed_cursor cursor[2];
	/* In place of a range where few columns are wanted: the row's own pair, and these. */
	struct timed_got got[2][TABLE_PICK_PACKED + 1];
	size_t got_count[2];
	struct buf keys[2];  /* of these, one behind the other */
	struct buf begin[2]; /* the keys of both */
	/* Where what is read first of them ends, unless empty: behind the last wanted column. */
	struct buf middle[2];
	struct table_reading reading[2];
	bool statics; /* the second is asked for */
};

/*
 * Asks for a row by its key behind the subspace. `statics`: of a row, those of its partition, too.
 * `wanted` may be NULL. The caller closes it in any case.
 */
MUST_USE enum status table_pick_open(struct table_pick *p, struct timed *t, struct str tail,
				     const struct table_wanted *wanted, bool statics);
/* Waits for it. STATUS_NOT_FOUND: it is not there. */
MUST_USE enum status table_pick_read(struct table_pick *p, struct arena *arena,
				     struct table_row *ret);
void table_pick_close(struct table_pick *p);

/* Explains STATUS_CORRUPT. */
enum status table_fail_corrupt(struct timed *t, enum status status);

/* ---- Expiry (expiry.c) ---- */

/* See struct timed_kind. */
MUST_USE enum status table_due_sweep(struct timed *t, const struct timed_due *due,
				     struct kv_future *asked, struct arena *arena,
				     struct timed_due_swept *ret);

/* ---- For people, and the check (inspect.c, verify.c) ---- */

const char *table_space_name(uint64_t space);
bool table_draw_pair(const struct catalog_db *db, uint64_t space, struct str tail, struct str value,
		     struct buf *ret);
/* See struct timed_kind. */
MUST_USE enum status table_inspect(struct kv_tx *tx, const struct catalog_db *db, struct str id,
				   struct arena *arena, catalog_draw_prefix *draw, void *arg);
MUST_USE enum status table_draw_key(const struct catalog_db *db, uint64_t space, struct str tail,
				    struct arena *arena, struct buf *ret);
MUST_USE enum status table_verify(struct catalog_verify *v);
MUST_USE enum status table_verify_in_ranges(struct catalog_verify *v);

#endif
