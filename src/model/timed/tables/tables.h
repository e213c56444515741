/*
 * Tables: databases of the kind "table", called "keyspace.table", whose rows lie under keys of hash
 * and range components, as CQL's do (timed.h is what they share with other databases in time;
 * README.md has the layout).
 *
 * This header has what a table is: its columns, how it is created, altered and deleted. keyspaces.h
 * has what tables are called by and where their types are; row.h writes and reads rows.
 *
 * A table knows no language. The type of a column is a text that only the caller understands; what
 * the model has to know of it is its storage. The token of a row comes from the caller.
 *
 * No function commits. Threading: on the thread or fiber that has the transaction.
 */
#ifndef FROND_MODEL_TIMED_TABLES_TABLES_H
#define FROND_MODEL_TIMED_TABLES_TABLES_H

#include "model/timed/timed.h"

enum {
	TABLE_NAME_BYTES = 48,       /* of a keyspace, a table, a type */
	TABLE_COLUMN_BYTES = 100,    /* of a column's name */
	TABLE_TYPE_BYTES = 4000,     /* of a type's text */
	TABLE_KEY_COLUMNS = 32,      /* hash and range components of a key */
	TABLE_COLUMNS = 1000,        /* of a table, those of its key with them */
	TABLE_DROPPED = 200,         /* dropped columns that a schema remembers; the oldest go */
	TABLE_PROPERTIES = 100,      /* of a table or a keyspace */
	TABLE_PROPERTY_BYTES = 8000, /* of one, its name with it */
	TABLE_ID_BYTES = 16,
	/* Of a value; what it replaces lies in a history in the same transaction. */
	TABLE_VALUE_BYTES = 4000000,
	/* Of a partition: deletions of ranges of rows that are remembered (table_stamp_set()). */
	TABLE_RANGE_MARKS = 10000,
};

extern const struct catalog_kind table_kind;

/* Registers the kind with the catalog, and with what sweeps; again is fine. */
void tables_register(void);

/* ---- What a table is (schema.c) ---- */

/* Stored: never renumber. */
enum table_column_kind {
	TABLE_HASH = 1,    /* a component of the key by which rows are spread */
	TABLE_RANGE = 2,   /* a component of the key by which the rows of a partition are ordered */
	TABLE_STATIC = 3,  /* one value for all rows of a partition */
	TABLE_REGULAR = 4, /* one value in each row */
};

/* How values of a column lie. Stored: never renumber. */
enum table_storage {
	TABLE_SINGLE = 0,  /* one cell: a scalar, or a frozen value as the caller's bytes */
	TABLE_MAP = 1,     /* a cell for each key */
	TABLE_SET = 2,     /* a cell for each member */
	TABLE_LIST = 3,    /* a cell for each element, in an order that writers extend blindly */
	TABLE_COUNTER = 4, /* a number that is added to blindly */
};

struct table_column {
	uint64_t id;     /* from 1 up, never used again in this table; set by the model */
	struct str name; /* UTF-8 */
	struct str type; /* UTF-8, the caller's own */
	enum table_column_kind kind;
	enum table_storage storage; /* TABLE_SINGLE of what belongs to the key */
	bool descending;            /* of TABLE_RANGE only */
	bool has_pieces;            /* values may lie in pieces (pieces.c) */
};

/* A column that is no longer there. */
struct table_dropped {
	struct table_column column;
	uint64_t dropped_us; /* since 1970 */
};

struct table_property {
	struct str name;  /* UTF-8 */
	struct str value; /* UTF-8, the caller's own */
};

/*
 * A table with a column of TABLE_COUNTER has only such columns outside of its key, and none of its
 * cells expires.
 */
struct table_schema {
	uint8_t id[TABLE_ID_BYTES]; /* the table keeps it when it is truncated or moved; a UUID */
	/* Hash components, range components, then the others by their ids. */
	const struct table_column *columns;
	size_t hash_count;
	size_t key_count; /* hash and range components */
	size_t column_count;
	size_t static_count;
	bool counters;
	bool stamped; /* clients have ordered writes by stamps of their own: table_stamp_set() */
	bool packed;  /* rows may be packed (packed.h) */
	bool packs;   /* INSERT packs them */
	bool whole;   /* each row is its own cell, and nothing else: nobody has written a leaf */
	/* Its creator wants its rows to be counted. `counted`: they are, since all who have written
	 * to it since it was made, or emptied, have told the count (table_count_add()). */
	bool counts;
	bool counted;
	uint64_t next_id;
	const struct table_dropped *dropped; /* the latest last */
	size_t dropped_count;
	const struct table_property *properties; /* by name */
	size_t property_count;
};

/* The schema of an opened table, for as long as the description lasts. */
const struct table_schema *table_schema_of(const struct catalog_db *db);

/*
 * What a caller has made of a table's schema, so that it need not do so each time that it opens
 * the table. It lies with the description, whose schema never changes, and lasts as long: whoever
 * finds it has opened the table by the description that it was made of. It is the first member
 * of the caller's own struct. Only one caller may leave notes at descriptions that it shares.
 */
struct table_note {
	void (*free)(struct table_note *note);
};

/* The note of an opened table, or NULL if there is none yet. Any thread. */
const struct table_note *table_note_of(const struct catalog_db *db);

/*
 * Leaves a note, which is the description's from now on, and is not changed any more. Returns the
 * one to use: if another thread has left one meanwhile, that one, and `note` has been freed.
 */
const struct table_note *table_note_leave(const struct catalog_db *db, struct table_note *note);

/* NULL if there is no such column. */
const struct table_column *table_column_named(const struct table_schema *schema, struct str name);
const struct table_column *table_column_by_id(const struct table_schema *schema, uint64_t id);

/* The property that says for how many seconds deletions are remembered (table_stamp_set()). */
#define TABLE_PROPERTY_GRACE "gc_grace_seconds"

/*
 * The property by which INSERT packs rows, if it is "true": set by the model where the caller does
 * so. A table that ever had it stays one that may have such rows.
 */
#define TABLE_PROPERTY_PACKED "packed"

/* The property's value; `ptr` NULL if it was never set. */
struct str table_property_of(const struct table_schema *schema, struct str name);

/* ---- Creating and changing (schema.c, create.c, alter.c) ---- */

/*
 * Writes "keyspace.table", the name of the database, which CATALOG_SPACE_TABLE has. STATUS_INVALID,
 * explained, if one of them is no name: 1 to TABLE_NAME_BYTES letters, digits and underscores.
 */
MUST_USE enum status table_name(struct str keyspace, struct str table, struct buf *ret,
				struct err *err);

/* The two parts of such a name, borrowed. */
void table_name_split(struct str name, struct str *ret_keyspace, struct str *ret_table);

/*
 * Creates a table. Of `schema` the columns (kind, order within the key, name, type, storage),
 * properties and `counts` count, the last one where nothing expires by default and there are
 * neither counters nor static columns; ids are given here. `default_ttl_ms`: how long after its
 * write expires what says nothing else; 0: never. STATUS_NOT_FOUND, explained, if there is no such
 * keyspace;
 * STATUS_EXISTS; STATUS_INVALID, explained. Writes the stamp of the schema (keyspaces.h).
 */
MUST_USE enum status table_create(struct kv_tx *tx, struct str name,
				  const struct table_schema *schema, uint64_t default_ttl_ms,
				  struct err *err);

struct table_rename {
	struct str from; /* a column of the key */
	struct str to;
};

/* Changes of a table. All that is not set stays. */
struct table_alteration {
	const struct table_column *add; /* TABLE_STATIC or TABLE_REGULAR */
	size_t add_count;
	const struct str *drop; /* names of columns outside of the key */
	size_t drop_count;
	const struct table_rename *rename;
	size_t rename_count;
	const struct table_property *properties; /* set or replaced */
	size_t property_count;
	bool sets_ttl; /* to `ttl_ms`; for what is there already, too */
	uint64_t ttl_ms;
};

/*
 * Changes the schema: columns are renamed first, then dropped, then added. So a name may be
 * dropped and added at once, and is then a new column without the old one's values. What dropped
 * columns held is hidden at once, and cleared by the sweep. STATUS_INVALID, explained. The
 * transaction conflicts with other changes of the schema, and does nothing else to the table.
 * Touches the metadata version; writes the stamp of the schema.
 */
MUST_USE enum status table_alter(struct timed *t, const struct table_alteration *alteration);

/*
 * Deletes a table; its keys are cleared in the background. STATUS_NOT_FOUND. Touches the metadata
 * version; writes the stamp of the schema.
 */
MUST_USE enum status table_drop(struct kv_tx *tx, struct str name, struct err *err);

/*
 * Deletes all rows: the table goes on under another number, with its schema, its id and its
 * options; the rows of before are cleared in the background, with their past. One with a history
 * has a new one, which begins with the next turn of timed_sweep(). `clock`: see timed_init().
 * STATUS_NOT_FOUND. Touches the metadata version.
 */
MUST_USE enum status table_truncate(struct kv_tx *tx, struct str name,
				    const struct timed_clock *clock, struct err *err);

/*
 * At most `limit` names of tables behind `after` (empty: from the first one), of one keyspace, or
 * of all if `keyspace` is empty. The names are "keyspace.table".
 */
MUST_USE enum status table_list(struct kv_tx *tx, struct str keyspace, struct str after,
				size_t limit, struct arena *arena, struct name_page *ret);

#endif
