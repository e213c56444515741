/*
 * Tables as statements see them: columns with types, those of the store and those that the door
 * makes up (system.h).
 *
 * A struct schema_table lies in the arena that it was made in, and belongs to one transaction.
 * Threading: on the thread or fiber that has the transaction.
 */
#ifndef FROND_DOOR_CQL_SCHEMA_TABLE_H
#define FROND_DOOR_CQL_SCHEMA_TABLE_H

#include "cql/type.h"
#include "model/timed/tables/keyspaces.h"
#include "model/timed/tables/tables.h"

enum schema_kind {
	SCHEMA_PARTITION,
	SCHEMA_CLUSTERING,
	SCHEMA_STATIC,
	SCHEMA_REGULAR,
};

struct schema_column {
	struct str name;
	const struct cql_type *type;
	enum schema_kind kind;
	unsigned position; /* within the partition or the clustering key */
	bool descending;
	const struct table_column *stored; /* NULL: of a table that is made up */
};

struct schema_system; /* system.h */

struct schema_table {
	struct str keyspace;
	struct str name;
	/* Partition key, clustering key, static columns by name, others by name. */
	const struct schema_column *columns;
	size_t count;
	size_t partition_count;
	size_t key_count; /* with the clustering columns */
	size_t static_count;
	bool counters;
	bool compact;          /* WITH COMPACT STORAGE: columns make rows, INSERT does not */
	struct catalog_db *db; /* NULL: it is made up; else held until it is closed */
	const struct table_schema *schema;  /* of `db` */
	const struct schema_system *system; /* of one that is made up */
};

/* NULL if there is no such column. */
const struct schema_column *schema_column_find(const struct schema_table *t, struct str name);
/* Its number in `columns`. */
static inline size_t
schema_column_at(const struct schema_table *t, const struct schema_column *c)
{
	return (size_t)(c - t->columns);
}

/*
 * Finds user types in a transaction (cql_type_find): `arg` is a struct schema_types. What was found
 * is kept for the next time.
 */
struct schema_types {
	struct kv_tx *tx;
	struct arena *arena;
	struct schema_found *found;
};

enum status schema_type_find(void *arg, struct cql *q, struct str keyspace, struct str name,
			     const struct cql_type **ret);

/*
 * Opens a table of the store by its database, whose reference becomes the table's. STATUS_LIMIT
 * when the arena is full; STATUS_CORRUPT, explained, for a type that cannot be read.
 */
MUST_USE enum status schema_table_of(struct cql *q, struct schema_types *types,
				     struct catalog_db *db, struct schema_table **ret);

/*
 * The table of a database as what is kept for later transactions has it: all of it lies in the
 * arena, and nothing of it in the database, so `db` and `schema` are NULL. Fails as
 * schema_table_of() does.
 */
MUST_USE enum status schema_table_apart(struct cql *q, struct schema_types *types,
					const struct catalog_db *db, struct schema_table **ret);

void schema_table_close(struct schema_table *t); /* NULL is fine */

/*
 * A hash of what clients know of the table: the names, types and order of its columns. A prepared
 * statement of another one is to be prepared again.
 */
uint64_t schema_table_hash(const struct schema_table *t);

/* ---- Properties: texts as the store keeps them ---- */

struct schema_pair {
	struct str name;
	struct str value;
};

/* Writes a map as a literal of CQL, which schema_map_read() reads. */
void schema_map_print(struct buf *out, const struct schema_pair *pairs, size_t count);
/* Its entries, in the arena; none where the text is none. */
MUST_USE enum status schema_map_read(struct cql *q, struct str text, struct schema_pair **ret,
				     size_t *ret_count);

/* The property of a keyspace; `ptr` NULL if it was never set. */
struct str schema_property(const struct table_property *properties, size_t count, struct str name);

/* ---- All of it ---- */

struct schema_keyspace {
	struct str name;
	const struct table_keyspace *stored; /* NULL: it is made up */
	struct schema_table **tables;        /* by name */
	size_t table_count;
	const struct table_type *types; /* by name */
	size_t type_count;
};

struct schema_all {
	struct schema_keyspace *keyspaces; /* of the store, by name */
	size_t count;
	uint8_t stamp[TABLE_STAMP_BYTES];
};

/*
 * Reads the schema, or of it one keyspace if `only` is not empty. The caller closes it. Counts
 * steps. STATUS_LIMIT when the arena is full.
 */
MUST_USE enum status schema_read(struct cql *q, struct schema_types *types, struct str only,
				 struct schema_all *ret);
void schema_close(struct schema_all *all);

#endif
