/*
 * Statements as trees: what the parser makes of a text.
 *
 * Names are folded to lower case unless they were quoted. A keyspace with ptr NULL was not said.
 * Everything lies in the arena that was parsed with, and borrows the statement's text.
 */
#ifndef FROND_CQL_STATEMENT_H
#define FROND_CQL_STATEMENT_H

#include "cql/term.h"

struct cql_name {
	struct str keyspace;
	struct str name;
};

/* ---- Conditions of WHERE and IF ---- */

enum cql_operator {
	CQL_OP_EQ,
	CQL_OP_LT,
	CQL_OP_LE,
	CQL_OP_GT,
	CQL_OP_GE,
	CQL_OP_NE,
	CQL_OP_IN,
	CQL_OP_NOT_IN,
	CQL_OP_CONTAINS,
	CQL_OP_CONTAINS_KEY,
	CQL_OP_LIKE,
	CQL_OP_IS_NOT_NULL,
};

/* "=", "CONTAINS KEY". */
struct str cql_operator_text(enum cql_operator op);

enum cql_left {
	CQL_LEFT_COLUMN,  /* columns[0] */
	CQL_LEFT_ELEMENT, /* columns[0][key] */
	CQL_LEFT_FIELD,   /* columns[0].field, in conditions of IF */
	CQL_LEFT_JSON,    /* columns[0] -> path[0] …, the last one ->> with `is_text` */
	CQL_LEFT_TUPLE,   /* (columns) */
	CQL_LEFT_TOKEN,   /* token(columns) */
};

struct cql_relation {
	enum cql_left left;
	enum cql_operator op;
	size_t column_count;
	const struct str *columns;
	const struct cql_term *key;
	struct str field;
	size_t path_count;
	const struct cql_term *const *path;
	bool is_text;
	/* IN (a, b): values. IN ?, IN :m: one value that is a marker of the whole list. Else one,
	 * but none of IS NOT NULL. */
	bool is_list;
	size_t value_count;
	const struct cql_term *const *values;
	size_t at, length; /* in the statement's text */
};

/* The relation as it was written, but for white space. */
void cql_relation_print(struct buf *out, const struct cql_relation *r);

struct cql_relations {
	size_t count;
	const struct cql_relation *list;
};

/* IF of a write. */
struct cql_if {
	bool exists, not_exists;
	struct cql_relations conditions;
};

/* USING; NULL: not said. */
struct cql_using {
	const struct cql_term *timestamp, *ttl;
};

/* ---- Reading and writing ---- */

struct cql_selector {
	const struct cql_term *term;
	struct str alias; /* ptr NULL: none */
};

struct cql_order {
	struct str column;
	bool descending;
	const struct cql_term *term; /* YCQL: a path of a jsonb column; NULL: the column */
};

struct cql_select {
	struct cql_name table;
	bool distinct, json;
	size_t selector_count; /* 0: SELECT * */
	const struct cql_selector *selectors;
	struct cql_relations where;
	size_t group_count;
	const struct cql_term *const *group_by;
	size_t order_count;
	const struct cql_order *order_by;
	const struct cql_term *per_partition_limit, *limit, *offset; /* NULL: not said */
	const struct cql_term *as_of; /* FROM t AS OF moment: a past to read */
	bool allow_filtering;
};

struct cql_insert {
	struct cql_name table;
	size_t count;
	const struct str *columns;            /* NULL with `json` */
	const struct cql_term *const *values; /* as many */
	const struct cql_term *json;          /* INSERT JSON: a text */
	bool default_unset;                   /* DEFAULT UNSET: what JSON does not name stays */
	struct cql_if condition;              /* IF NOT EXISTS; in YCQL conditions, too */
	struct cql_using using;
	bool returns_status; /* YCQL: RETURNS STATUS AS ROW */
};

enum cql_assign_kind {
	CQL_ASSIGN_SET,      /* c = value */
	CQL_ASSIGN_ADD,      /* c = c + value, c += value */
	CQL_ASSIGN_PREPEND,  /* c = value + c */
	CQL_ASSIGN_SUBTRACT, /* c = c - value, c -= value */
	CQL_ASSIGN_ELEMENT,  /* c[key] = value */
	CQL_ASSIGN_FIELD,    /* c.field = value */
	CQL_ASSIGN_JSON,     /* c -> path … = value */
};

struct cql_assignment {
	enum cql_assign_kind kind;
	struct str column, field;
	const struct cql_term *key;
	size_t path_count;
	const struct cql_term *const *path;
	const struct cql_term *value;
	size_t at, length;
};

struct cql_update {
	struct cql_name table;
	size_t count;
	const struct cql_assignment *assignments;
	struct cql_relations where;
	struct cql_if condition;
	struct cql_using using;
	bool returns_status;
};

struct cql_deletion {
	struct str column;
	struct str field;           /* ptr NULL: none */
	const struct cql_term *key; /* NULL: none */
};

struct cql_delete {
	struct cql_name table;
	size_t count; /* 0: rows */
	const struct cql_deletion *what;
	struct cql_relations where;
	struct cql_if condition;
	struct cql_using using;
	bool returns_status;
};

enum cql_batch_kind {
	CQL_BATCH_LOGGED,
	CQL_BATCH_UNLOGGED,
	CQL_BATCH_COUNTER,
	CQL_BATCH_TRANSACTION, /* of CQL_TRANSACTION */
};

struct cql_statement;

/* BATCH, and YCQL's transactions. */
struct cql_batch {
	enum cql_batch_kind kind;
	struct cql_using using;
	size_t count;
	struct cql_statement *const
		*statements; /* INSERT, UPDATE, DELETE; in transactions SELECT */
};

/* ---- The schema ---- */

/* `WITH name = value`. */
struct cql_property {
	struct str name;
	bool is_map;
	struct str value; /* of a constant, texts without quotes */
	bool is_text;     /* a constant in quotes */
	size_t count;     /* of entries: texts, numbers, booleans as text */
	const struct cql_property *entries;
};

struct cql_properties {
	size_t count;
	const struct cql_property *list;
};

/* The last property of that name, or NULL. */
const struct cql_property *cql_property_find(const struct cql_properties *p, struct str name);

struct cql_keyspace { /* CREATE, ALTER */
	struct str name;
	bool if_not_exists, if_exists;
	struct cql_properties with;
};

struct cql_column {
	struct str name;
	const struct cql_type *type; /* not resolved */
	bool is_static;
};

struct cql_rename {
	struct str from, to;
};

struct cql_create_table {
	struct cql_name table;
	bool if_not_exists;
	size_t column_count;
	const struct cql_column *columns;
	size_t partition_count, clustering_count;
	const struct str *partition, *clustering; /* names, in order */
	size_t key_clauses;                       /* PRIMARY KEYs that were said: one is right */
	size_t order_count;
	const struct cql_order *clustering_order;
	bool compact_storage;
	struct cql_properties with;
};

enum cql_alter_kind {
	CQL_ALTER_ADD,
	CQL_ALTER_DROP,
	CQL_ALTER_COLUMN_TYPE, /* or a field's */
	CQL_ALTER_RENAME,
	CQL_ALTER_WITH,
	CQL_ALTER_DROP_COMPACT,
};

struct cql_alter_table {
	struct cql_name table;
	enum cql_alter_kind kind;
	bool if_exists, if_not_exists, if_column_exists;
	size_t column_count;
	const struct cql_column *columns; /* ADD, COLUMN_TYPE; DROP: names */
	const struct cql_term *timestamp; /* DROP … USING TIMESTAMP */
	size_t rename_count;
	const struct cql_rename *renames;
	struct cql_properties with;
};

struct cql_create_type {
	struct cql_name type;
	bool if_not_exists;
	size_t count;
	const struct cql_column *fields;
};

struct cql_alter_type {
	struct cql_name type;
	enum cql_alter_kind kind; /* ADD, COLUMN_TYPE, RENAME */
	bool if_exists, if_not_exists, if_field_exists;
	size_t field_count;
	const struct cql_column *fields;
	size_t rename_count;
	const struct cql_rename *renames;
};

enum cql_index_part {
	CQL_INDEX_PLAIN, /* of a collection: its values */
	CQL_INDEX_VALUES,
	CQL_INDEX_KEYS,
	CQL_INDEX_ENTRIES,
	CQL_INDEX_FULL,
};

struct cql_index_target {
	enum cql_index_part part;
	struct str column;
	const struct cql_term *term; /* YCQL: a path into jsonb; NULL: the column */
};

struct cql_create_index {
	struct str name; /* ptr NULL: not said */
	struct cql_name table;
	bool if_not_exists, unique, custom;
	struct str using_class;
	size_t target_count;
	size_t hash_count; /* of those, in ((a, b), c); 0: not said */
	const struct cql_index_target *targets;
	size_t include_count; /* INCLUDE, COVERING */
	const struct str *include;
	struct cql_relations where;
	size_t order_count;
	const struct cql_order *clustering_order;
	struct cql_properties with;
};

struct cql_drop {             /* keyspace, table, type, index */
	struct cql_name name; /* of a keyspace `name` */
	bool if_exists;
};

/* ---- People ---- */

enum cql_truth {
	CQL_UNSAID = -1,
	CQL_FALSE,
	CQL_TRUE
};

struct cql_role { /* CREATE, ALTER ROLE and USER */
	struct str name;
	bool if_not_exists, if_exists, is_user;
	bool has_password, password_is_hashed;
	struct str password;
	enum cql_truth login, superuser;
	bool has_options, has_datacenters; /* OPTIONS, ACCESS TO */
};

enum cql_permission {
	CQL_MAY_CREATE = 1 << 0,
	CQL_MAY_ALTER = 1 << 1,
	CQL_MAY_DROP = 1 << 2,
	CQL_MAY_SELECT = 1 << 3,
	CQL_MAY_MODIFY = 1 << 4,
	CQL_MAY_AUTHORIZE = 1 << 5,
	CQL_MAY_DESCRIBE = 1 << 6,
	CQL_MAY_EXECUTE = 1 << 7,
	CQL_MAY_ALL = (1 << 8) - 1,
};

enum cql_resource_kind {
	CQL_RESOURCE_NONE, /* not said */
	CQL_RESOURCE_ALL_KEYSPACES,
	CQL_RESOURCE_KEYSPACE,
	CQL_RESOURCE_TABLE,
	CQL_RESOURCE_ALL_TABLES, /* IN KEYSPACE */
	CQL_RESOURCE_ALL_ROLES,
	CQL_RESOURCE_ROLE,
	CQL_RESOURCE_ALL_FUNCTIONS, /* with or without IN KEYSPACE */
	CQL_RESOURCE_FUNCTION,
	CQL_RESOURCE_ALL_MBEANS,
	CQL_RESOURCE_MBEAN,
};

struct cql_grant {            /* GRANT, REVOKE; LIST PERMISSIONS */
	bool of_role;         /* GRANT role TO role */
	struct str role;      /* that is granted */
	unsigned permissions; /* of enum cql_permission */
	enum cql_resource_kind resource;
	struct cql_name on; /* KEYSPACE and ROLE: name */
	struct str grantee; /* LIST: OF; ptr NULL: not said */
	bool no_recursive;
	bool users; /* LIST USERS */
};

/* ---- DESCRIBE ---- */

enum cql_describe_kind {
	CQL_DESCRIBE_CLUSTER,
	CQL_DESCRIBE_SCHEMA, /* `full`: FULL SCHEMA */
	CQL_DESCRIBE_KEYSPACES,
	CQL_DESCRIBE_TABLES,
	CQL_DESCRIBE_TYPES,
	CQL_DESCRIBE_FUNCTIONS,
	CQL_DESCRIBE_AGGREGATES,
	CQL_DESCRIBE_KEYSPACE, /* name; ptr NULL: the current one; `only`: ONLY KEYSPACE */
	CQL_DESCRIBE_TABLE,
	CQL_DESCRIBE_INDEX,
	CQL_DESCRIBE_VIEW,
	CQL_DESCRIBE_TYPE,
	CQL_DESCRIBE_FUNCTION,
	CQL_DESCRIBE_AGGREGATE,
	CQL_DESCRIBE_ANY, /* DESCRIBE name: a keyspace, table, index or view */
};

struct cql_describe {
	enum cql_describe_kind kind;
	struct cql_name name;
	bool full, only, internals;
};

/* ---- All of them ---- */

enum cql_statement_kind {
	CQL_USE,
	CQL_SELECT,
	CQL_INSERT,
	CQL_UPDATE,
	CQL_DELETE,
	CQL_BATCH,
	CQL_TRANSACTION, /* BEGIN TRANSACTION …; END TRANSACTION, START TRANSACTION; …; COMMIT */
	/* What such a block begins and ends with, alone: a batch of the protocol may have them
	 * as its first and its last statement. */
	CQL_TRANSACTION_BEGIN,
	CQL_TRANSACTION_END,
	CQL_TRUNCATE,
	CQL_CREATE_KEYSPACE,
	CQL_ALTER_KEYSPACE,
	CQL_DROP_KEYSPACE,
	CQL_CREATE_TABLE,
	CQL_ALTER_TABLE,
	CQL_DROP_TABLE,
	CQL_CREATE_TYPE,
	CQL_ALTER_TYPE,
	CQL_DROP_TYPE,
	CQL_CREATE_INDEX,
	CQL_DROP_INDEX,
	CQL_CREATE_ROLE,
	CQL_ALTER_ROLE,
	CQL_DROP_ROLE,
	CQL_GRANT,
	CQL_REVOKE,
	CQL_LIST_ROLES,
	CQL_LIST_PERMISSIONS,
	CQL_DESCRIBE,
	/* Parsed as far as its name: CREATE, ALTER, DROP of FUNCTION, AGGREGATE, TRIGGER,
	 * MATERIALIZED VIEW and what else frond refuses. */
	CQL_REFUSED,
};

struct cql_statement {
	enum cql_statement_kind kind;
	struct str text; /* of this statement alone */
	size_t marker_count;
	const struct str *marker_names; /* ptr NULL: `?` */
	union {
		struct str use; /* USE: a keyspace */
		struct cql_select select;
		struct cql_insert insert;
		struct cql_update update;
		struct cql_delete remove;
		struct cql_batch batch; /* TRANSACTION, too */
		struct cql_name truncate;
		struct cql_keyspace keyspace;
		struct cql_create_table create_table;
		struct cql_alter_table alter_table;
		struct cql_create_type create_type;
		struct cql_alter_type alter_type;
		struct cql_create_index create_index;
		struct cql_drop drop; /* ROLE: name */
		struct cql_role role;
		struct cql_grant grant; /* LIST_ROLES: grantee, no_recursive */
		struct cql_describe describe;
		struct str refused; /* "CREATE FUNCTION" */
	};
};

/*
 * Parses a text that is one statement, with a semicolon or without. Errors: the syntax table of
 * error.h; CQL_E_UTF8; names that are too long are CQL_E_NAME_TOO_LONG.
 */
MUST_USE enum status cql_parse(struct cql *q, struct str text, struct cql_statement **ret);

/* Parses a term alone, such as a default; for tools and tests. */
MUST_USE enum status cql_parse_term(struct cql *q, struct str text, struct cql_term **ret);

/* The statement's text, for logs: one with a password ends in front of it. */
void cql_statement_print_safe(struct buf *out, const struct cql_statement *s);

#endif
