/*
 * Rows: databases whose documents are rows under keys of hash and range components, with maps
 * inside them, expiry and write times (timed.h). README.md has the layout.
 *
 * Functions that write read nothing unless their comment says so, but for the clock, once in a
 * transaction. No function commits. What is returned lies in the caller's arena. Threading: that of
 * the transaction.
 */
#ifndef FROND_MODEL_TIMED_ROWS_ROWS_H
#define FROND_MODEL_TIMED_ROWS_ROWS_H

#include "model/timed/timed.h"

enum {
	TIMED_DB_NAME_BYTES = 100,
};

/* ---- Databases (kind.c, columns.c) ---- */

/* Registers the kind with the catalog, and with what sweeps; again is fine. */
void timed_rows_register(void);

extern const struct catalog_kind timed_rows_kind;

/*
 * Creates a database. `default_ttl_ms`: how long after its write expires what has no expiry of its
 * own; 0: never. STATUS_EXISTS; STATUS_INVALID, explained.
 */
MUST_USE enum status timed_create(struct kv_tx *tx, struct str name,
				  const struct timed_schema *schema, uint64_t default_ttl_ms,
				  struct err *err);

/*
 * Adds columns behind those that the table has. STATUS_INVALID, explained. Touches the metadata
 * version; the transaction does nothing else to the database.
 */
MUST_USE enum status timed_columns_add(struct timed *t, const struct str *names, size_t count);

/* The id of the column; 0 if there is none of that name. */
uint64_t timed_column_find(const struct timed_schema *schema, struct str name);

/* ---- Keys ---- */

struct timed_key {
	const struct doc_scalar *parts; /* as many as the schema has */
	size_t count;
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

/* ---- Writing (write.c) ---- */

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

#endif
