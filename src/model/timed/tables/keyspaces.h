/*
 * Keyspaces, whose names are the first part of tables' names, and the types that are defined in
 * them. They lie in the root of the store, beside the versionstamp of the latest change of any
 * schema. A process that reads this key learns of changes that others make.
 *
 *     (ROOT, 20)                  → versionstamp
 *     (ROOT, 20, keyspace)        → (format, ((property, value), …))
 *     (ROOT, 20, keyspace, type)  → (format, ((field, type), …))
 *
 * No function commits. Each that changes something writes the stamp. What is returned lies in the
 * caller's arena. Threading: on the thread or fiber that has the transaction.
 */
#ifndef FROND_MODEL_TIMED_TABLES_KEYSPACES_H
#define FROND_MODEL_TIMED_TABLES_KEYSPACES_H

#include "model/timed/tables/tables.h"

enum {
	TABLE_TYPE_FIELDS = 500, /* of a type */
	TABLE_STAMP_BYTES = KV_VERSIONSTAMP_BYTES,
};

/* ---- The stamp of the schema ---- */

/* Writes the stamp with the commit; once or more in a transaction. */
MUST_USE enum status table_schemas_touch(struct kv_tx *tx);

/* The stamp: other bytes after each change of any keyspace, type or table. All 0: none yet. */
MUST_USE enum status table_schemas_stamp(struct kv_tx *tx, uint8_t ret[static TABLE_STAMP_BYTES]);

/* ---- Keyspaces ---- */

struct table_keyspace {
	struct str name;
	const struct table_property *properties; /* by name */
	size_t property_count;
};

/* STATUS_EXISTS; STATUS_INVALID, explained. */
MUST_USE enum status table_keyspace_create(struct kv_tx *tx, const struct table_keyspace *keyspace,
					   struct err *err);

/* Sets the properties that are given; others stay. STATUS_NOT_FOUND; STATUS_INVALID, explained. */
MUST_USE enum status table_keyspace_alter(struct kv_tx *tx, const struct table_keyspace *keyspace,
					  struct err *err);

/*
 * Deletes the keyspace with its types and tables (create.c). STATUS_NOT_FOUND. Touches the metadata
 * version if it has tables.
 */
MUST_USE enum status table_keyspace_drop(struct kv_tx *tx, struct str name, struct err *err);

/* STATUS_NOT_FOUND. The transaction conflicts with changes of the keyspace. */
MUST_USE enum status table_keyspace_read(struct kv_tx *tx, struct str name, struct arena *arena,
					 struct table_keyspace *ret, struct err *err);

struct table_keyspaces {
	const struct table_keyspace *keyspaces; /* by name */
	size_t count;
};

MUST_USE enum status table_keyspace_list(struct kv_tx *tx, struct arena *arena,
					 struct table_keyspaces *ret, struct err *err);

/* ---- Types ---- */

struct table_field {
	struct str name;
	struct str type; /* the caller's text */
};

struct table_type {
	struct str keyspace;
	struct str name;
	const struct table_field *fields; /* in their order */
	size_t field_count;
};

/*
 * Creates a type, or with `replaces` changes one that is there, which touches the metadata
 * version, as dropping one does. Who uses it is the caller's to know. STATUS_EXISTS;
 * STATUS_NOT_FOUND, explained: the keyspace, or the type that is to be replaced; STATUS_INVALID,
 * explained.
 */
MUST_USE enum status table_type_put(struct kv_tx *tx, const struct table_type *type, bool replaces,
				    struct err *err);

/* STATUS_NOT_FOUND. */
MUST_USE enum status table_type_drop(struct kv_tx *tx, struct str keyspace, struct str name,
				     struct err *err);

/* STATUS_NOT_FOUND. The transaction conflicts with changes of the type. */
MUST_USE enum status table_type_read(struct kv_tx *tx, struct str keyspace, struct str name,
				     struct arena *arena, struct table_type *ret, struct err *err);

struct table_types {
	const struct table_type *types; /* by keyspace and name */
	size_t count;
};

/* The types of a keyspace, or all if it is empty. */
MUST_USE enum status table_type_list(struct kv_tx *tx, struct str keyspace, struct arena *arena,
				     struct table_types *ret, struct err *err);

/* ---- What a table needs besides itself (needs.c) ---- */

struct table_needs {
	struct table_keyspace keyspace;
	/* Those that its columns name, and that these name, by name. A word of a type's text names
	 * a type, whatever it means there: rather one too many than one too few. */
	const struct table_type *types;
	size_t type_count;
};

/* Reads what an opened table needs. A keyspace that is lost has no properties. */
MUST_USE enum status table_needs_read(struct kv_tx *tx, const struct catalog_db *db,
				      struct arena *arena, struct table_needs *ret,
				      struct err *err);

/*
 * Makes in this keyspace what is missing of it. A keyspace that is there stays as it is.
 * STATUS_INVALID, explained, if a type is there that has other fields.
 */
MUST_USE enum status table_needs_ensure(struct kv_tx *tx, struct str keyspace,
					const struct table_needs *needs, struct arena *arena,
					struct err *err);

#endif
