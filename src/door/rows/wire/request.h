/*
 * Bodies of requests (docs/ROWS.md). What a request has many of, such as keys and rows, stays in
 * the body, is checked once for its form, and is then taken one by one; the rest is in the arena.
 * Texts and values are borrowed from the body.
 *
 * Functions that read a whole body return STATUS_INVALID, explained, for one that is malformed, and
 * STATUS_LIMIT when the arena is full. Threading: none.
 */
#ifndef FROND_DOOR_ROWS_WIRE_REQUEST_H
#define FROND_DOOR_ROWS_WIRE_REQUEST_H

#include "base/arena.h"
#include "door/rows/wire/frame.h"

enum {
	ROWS_COLUMNS = 1000,   /* that a request names */
	ROWS_KEY_COLUMNS = 32, /* values of a key */
	ROWS_FILTERS = 100,    /* conditions of a scan */
	ROWS_ID_BYTES = 16,
};

/* A table, and which one of that name the client knows. */
struct rows_table {
	struct str schema;
	struct str name;
	struct str id; /* ROWS_ID_BYTES; empty where zeros were sent: any */
};

/* ---- Schemas ---- */

/* In messages: never renumber. As in a table's schema. */
enum rows_role {
	ROWS_ROLE_HASH = 1,
	ROWS_ROLE_RANGE = 2,
	ROWS_ROLE_STATIC = 3,
	ROWS_ROLE_REGULAR = 4,
};

enum rows_column_flag {
	ROWS_COLUMN_DESCENDING = 1 << 0,
	ROWS_COLUMN_ORDERED = 1 << 1, /* keys are in PostgreSQL's order; in answers only */
};

struct rows_column {
	struct str name;
	unsigned kind; /* enum rows_kind, not checked */
	unsigned role; /* enum rows_role, likewise */
	bool descending;
};

struct rows_create {
	struct rows_table table; /* without an id */
	const struct rows_column *columns;
	size_t count;
};

struct rows_rename {
	struct str from, to;
};

struct rows_alter {
	struct rows_table table;
	const struct rows_column *add; /* the name and the kind */
	size_t add_count;
	const struct str *drop;
	size_t drop_count;
	const struct rows_rename *rename;
	size_t rename_count;
};

MUST_USE enum status rows_create_read(struct str body, struct arena *arena, struct rows_create *ret,
				      struct err *err);
MUST_USE enum status rows_alter_read(struct str body, struct arena *arena, struct rows_alter *ret,
				     struct err *err);

/* One or two names, and nothing else: of a schema, of a table in it. */
MUST_USE enum status rows_names_read(struct str body, struct str *first, struct str *second,
				     struct err *err);

/* ---- Indexes ---- */

enum rows_index_flag {
	ROWS_INDEX_UNIQUE = 1 << 0,
	ROWS_INDEX_READY = 1 << 1,  /* rows can be found by it; in answers only, as those below */
	ROWS_INDEX_FAILED = 1 << 2, /* its build has found rows with the same values */
	ROWS_INDEX_KNOWN = 1 << 3,  /* its columns and conditions can be told */
	ROWS_INDEX_GROUPS = 1 << 4, /* rows of a group lie together in it */
};

struct rows_index_column {
	uint32_t id;
	bool descending;
};

/* In messages: never renumber. */
enum rows_condition_op {
	ROWS_CONDITION_EQ = 0,
	ROWS_CONDITION_NE = 1,
	ROWS_CONDITION_LT = 2,
	ROWS_CONDITION_LE = 3,
	ROWS_CONDITION_GT = 4,
	ROWS_CONDITION_GE = 5,
	ROWS_CONDITION_NOT_NULL = 6,
};

struct rows_condition {
	uint32_t column;
	enum rows_condition_op op;
	struct rows_value value; /* null for NOT_NULL */
};

struct rows_index_create {
	struct rows_table table;
	struct str name;
	bool unique;
	const struct rows_index_column *columns;
	size_t count;
	const uint32_t *included;
	size_t included_count;
	const struct rows_condition *conditions;
	size_t condition_count;
	struct str spec; /* the conditions for people */
};

MUST_USE enum status rows_index_create_read(struct str body, struct arena *arena,
					    struct rows_index_create *ret, struct err *err);
/* Of INDEX_BUILD: a table, and the number of its index. */
MUST_USE enum status rows_index_build_read(struct str body, struct rows_table *ret,
					   uint32_t *ret_number, struct err *err);

/* ---- Reading rows ---- */

enum rows_bound {
	ROWS_BOUND_NONE = 0,
	ROWS_BOUND_INCLUSIVE = 1,
	ROWS_BOUND_EXCLUSIVE = 2,
};

struct rows_edge {
	enum rows_bound kind;
	const struct rows_value *values;
	size_t count;
};

enum rows_test {
	ROWS_TEST_INTERVAL = 0,
	ROWS_TEST_NULL = 1,
	ROWS_TEST_NOT_NULL = 2,
};

struct rows_filter {
	uint32_t column;
	enum rows_test test;
	enum rows_bound from_kind, to_kind;
	struct rows_value from, to; /* of an interval */
};

enum rows_sum {
	ROWS_SUM_COUNT = 1, /* of values that are not null */
	ROWS_SUM_SUM = 2,
	ROWS_SUM_LEAST = 3,
	ROWS_SUM_GREATEST = 4,
};

enum rows_scan_flag {
	ROWS_SCAN_REVERSE = 1 << 0,
	ROWS_SCAN_SUMS = 1 << 1,   /* no rows: how many, and a sum for each column */
	ROWS_SCAN_GROUPS = 1 << 2, /* the same for each group of rows; with sums only */
	ROWS_SCAN_INDEX = 1 << 3,  /* by an index, in the order of its entries; not of groups */
};

struct rows_scan {
	struct rows_table table;
	bool reverse;
	bool sums;
	size_t groups;  /* columns of the key, from the first, that are equal in a group; 0: none */
	uint32_t index; /* its number; 0: by the key */
	const uint32_t *columns;
	const uint8_t *ops; /* enum rows_sum, with `sums` */
	size_t column_count;
	const struct rows_value *equal; /* the first columns of the key, or of the index */
	size_t equal_count;
	struct rows_edge from, to; /* of the columns behind these */
	const struct rows_filter *filters;
	size_t filter_count;
	uint32_t rows;   /* at most; 0: no limit */
	uint32_t bytes;  /* of the answer, about; 0: as many as the door gives */
	uint32_t sample; /* each row with the probability of this over 2^32; 0: all */
	struct str place;
};

MUST_USE enum status rows_scan_read(struct str body, struct arena *arena, struct rows_scan *ret,
				    struct err *err);

struct rows_key {
	struct rows_value values[ROWS_KEY_COLUMNS];
	size_t count;
};

struct rows_get {
	struct rows_table table;
	const uint32_t *columns;
	size_t column_count;
	uint32_t key_count;
	struct rows_in keys; /* for rows_key_next() */
};

MUST_USE enum status rows_get_read(struct str body, struct arena *arena, struct rows_get *ret,
				   struct err *err);
void rows_key_next(struct rows_in *keys, struct rows_key *ret);

/* ---- Writing rows ---- */

/* In messages: never renumber. */
enum rows_op {
	ROWS_OP_INSERT = 1,     /* 23505 if the row is there */
	ROWS_OP_INSERT_NEW = 2, /* nothing happens if it is */
	ROWS_OP_UPDATE = 3,     /* nothing happens if it is not there */
	ROWS_OP_PUT = 4,        /* writes columns, whatever is there; reads nothing */
	ROWS_OP_REPLACE = 5,    /* the row has these columns and no others; reads nothing */
	ROWS_OP_DELETE = 6,     /* tells whether it was there */
	ROWS_OP_DELETE_ANY = 7, /* does not, and reads nothing */
	ROWS_OPS_END,
};

struct rows_write {
	struct rows_table table;
	const uint32_t *columns;
	size_t column_count;
	uint32_t count;
	struct rows_in ops; /* for rows_write_next() */
};

MUST_USE enum status rows_write_read(struct str body, struct arena *arena, struct rows_write *ret,
				     struct err *err);

static inline bool
rows_op_has_values(enum rows_op op)
{
	return op < ROWS_OP_DELETE;
}

/* `values` has room for the write's columns; a deletion has none. */
void rows_write_next(struct rows_in *ops, size_t column_count, enum rows_op *ret_op,
		     struct rows_key *ret_key, struct rows_value *values);

#endif
