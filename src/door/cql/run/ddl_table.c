/* CREATE, ALTER, DROP and TRUNCATE of tables. */
#include "base/rand.h"
#include "door/cql/run/ddl.h"
#include "door/cql/run/value.h"
#include "door/cql/schema/options.h"
#include "door/cql/schema/system.h"

/* A table that is being created. */
struct creating {
	struct run *run;
	const struct cql_create_table *s;
	struct str keyspace;
	const struct cql_type **types; /* of the statement's columns, resolved */
	struct table_column *columns;  /* in the order of the schema */
	size_t count;
};

#define FAIL(run, ...) request_fail((run)->r, CQL_CODE_INVALID, __VA_ARGS__)

static enum status
find_type(void *arg, struct cql *q, struct str keyspace, struct str name,
	  const struct cql_type **ret)
{
	return schema_type_find(arg, q, keyspace, name, ret);
}

static size_t
column_named(const struct creating *c, struct str name)
{
	size_t i = 0;

	while (i < c->s->column_count && !str_eq(c->s->columns[i].name, name))
		i++;
	return i;
}

/* ---- CREATE ---- */

static enum status
resolve_types(struct creating *c)
{
	struct run *run = c->run;

	c->types = arena_alloc(run->r->arena, (c->s->column_count + 1) * sizeof(*c->types));
	c->columns = arena_alloc(run->r->arena, (c->s->column_count + 1) * sizeof(*c->columns));
	if (!c->types || !c->columns)
		return STATUS_LIMIT;
	for (size_t i = 0; i < c->s->column_count; i++) {
		const struct cql_column *column = &c->s->columns[i];

		if (column_named(c, column->name) != i)
			return FAIL(run,
				    "Duplicate column '%.*s' declaration for table '%.*s.%.*s'",
				    STR_ARG(column->name), STR_ARG(c->keyspace),
				    STR_ARG(c->s->table.name));
		TRY(cql_type_resolve(run->q, c->keyspace, column->type, find_type, &run->types,
				     &c->types[i]));
		TRY(cql_type_check(run->q, c->types[i]));
	}
	return STATUS_OK;
}

/* The store keeps a type as a text that system_schema has, too. */
static enum status
column_add(struct creating *c, size_t at, enum table_column_kind kind, bool descending)
{
	struct table_column *column = &c->columns[c->count++];

	*column = (struct table_column){
		.name = c->s->columns[at].name,
		.type = cql_type_text(c->run->q, c->types[at]),
		.kind = kind,
		.storage = value_storage(c->types[at], kind == TABLE_HASH || kind == TABLE_RANGE),
		.descending = descending,
	};
	return STATUS_OK;
}

static enum status
check_key_type(struct run *run, const struct cql_type *type, struct str name)
{
	if (type->kind == CQL_TYPE_COUNTER)
		return FAIL(run, "counter type is not supported for PRIMARY KEY column '%.*s'",
			    STR_ARG(name));
	if (cql_type_is_multicell(type))
		return FAIL(run, "Invalid non-frozen %s type %.*s for PRIMARY KEY column '%.*s'",
			    type->kind == CQL_TYPE_UDT ? "user-defined" : "collection",
			    STR_ARG(cql_type_text(run->q, type)), STR_ARG(name));
	if (cql_type_has(type, CQL_TYPE_DURATION))
		return FAIL(run, "duration type is not supported for PRIMARY KEY column '%.*s'",
			    STR_ARG(name));
	if (!cql_type_can_be_key(type))
		return FAIL(run, "the type %.*s is not supported for PRIMARY KEY column '%.*s'",
			    STR_ARG(cql_type_text(run->q, type)), STR_ARG(name));
	return STATUS_OK;
}

static enum status
key_column_add(struct creating *c, struct str name, enum table_column_kind kind, bool descending)
{
	struct run *run = c->run;
	size_t at = column_named(c, name);

	if (at == c->s->column_count)
		return FAIL(run,
			    "Unknown column '%.*s' referenced in PRIMARY KEY for table '%.*s.%.*s'",
			    STR_ARG(name), STR_ARG(c->keyspace), STR_ARG(c->s->table.name));
	for (size_t i = 0; i < c->count; i++)
		if (str_eq(c->columns[i].name, name))
			return FAIL(run,
				    "Duplicate column '%.*s' in PRIMARY KEY clause for table "
				    "'%.*s.%.*s'",
				    STR_ARG(name), STR_ARG(c->keyspace), STR_ARG(c->s->table.name));
	if (c->s->columns[at].is_static)
		return FAIL(run, "Static column '%.*s' cannot be part of the PRIMARY KEY",
			    STR_ARG(name));
	TRY(check_key_type(run, c->types[at], name));
	return column_add(c, at, kind, descending);
}

/* CLUSTERING ORDER BY names the first clustering columns in their order, and nothing else. */
static enum status
check_clustering_order(struct creating *c)
{
	const struct cql_create_table *s = c->s;

	if (!s->order_count)
		return STATUS_OK;
	if (s->order_count > s->clustering_count)
		return FAIL(c->run, "Only clustering columns can be defined in CLUSTERING ORDER "
				    "directive");
	for (size_t i = 0; i < s->order_count; i++) {
		bool known = false;

		for (size_t j = 0; j < s->clustering_count; j++)
			known |= str_eq(s->clustering[j], s->clustering_order[i].column);
		if (!known)
			return FAIL(c->run,
				    "Only clustering columns can be defined in CLUSTERING ORDER "
				    "directive: %.*s are not clustering columns",
				    STR_ARG(s->clustering_order[i].column));
		if (!str_eq(s->clustering[i], s->clustering_order[i].column))
			return FAIL(c->run,
				    "The order of columns in the CLUSTERING ORDER directive must "
				    "match that of the clustering columns (%.*s)",
				    STR_ARG(s->clustering_order[i].column));
	}
	return STATUS_OK;
}

static enum status
others_add(struct creating *c)
{
	const struct cql_create_table *s = c->s;
	size_t counters = 0, others = 0, key = c->count;

	for (size_t i = 0; i < s->column_count; i++) {
		bool in_key = false;

		for (size_t j = 0; j < key; j++)
			in_key |= str_eq(c->columns[j].name, s->columns[i].name);
		if (in_key)
			continue;
		if (s->columns[i].is_static && !s->clustering_count)
			return FAIL(c->run, "Static columns are only useful (and thus allowed) if "
					    "the table has at least one clustering column");
		counters += c->types[i]->kind == CQL_TYPE_COUNTER;
		others += c->types[i]->kind != CQL_TYPE_COUNTER;
		TRY(column_add(c, i, s->columns[i].is_static ? TABLE_STATIC : TABLE_REGULAR,
			       false));
	}
	if (counters && others)
		return FAIL(c->run, "Cannot mix counter and non counter columns in the same table");
	return STATUS_OK;
}

static enum status
make_columns(struct creating *c)
{
	const struct cql_create_table *s = c->s;

	if (s->key_clauses == 0)
		return FAIL(c->run,
			    "No PRIMARY KEY specifed for table '%.*s.%.*s' (exactly one "
			    "required)",
			    STR_ARG(c->keyspace), STR_ARG(s->table.name));
	if (s->key_clauses > 1)
		return FAIL(c->run,
			    "Multiple PRIMARY KEYs specifed for table '%.*s.%.*s' (exactly "
			    "one required)",
			    STR_ARG(c->keyspace), STR_ARG(s->table.name));
	TRY(resolve_types(c));
	for (size_t i = 0; i < s->partition_count; i++)
		TRY(key_column_add(c, s->partition[i], TABLE_HASH, false));
	TRY(check_clustering_order(c));
	for (size_t i = 0; i < s->clustering_count; i++)
		TRY(key_column_add(c, s->clustering[i], TABLE_RANGE,
				   i < s->order_count && s->clustering_order[i].descending));
	return others_add(c);
}

/* ---- History ---- */

/* Sets how many seconds of a table's past are kept. A bound by bytes that it has stays. */
static enum status
history_set(struct run *run, const struct catalog_db *db, uint64_t seconds, struct ddl_outcome *ret)
{
	struct timed_history_bounds bounds;
	struct timed t;

	timed_init(&t, run->tx, db, NULL, &run->r->err);
	TRY(timed_history_bounds_get(&t, &bounds));
	if (bounds.seconds == seconds)
		return STATUS_OK;
	if (!bounds.seconds)
		TRY(arena_copy(run->r->arena, db->name, &ret->history_of));
	bounds.seconds = seconds;
	if (!seconds)
		bounds.bytes = 0;
	return timed_history_set(&t, bounds);
}

static enum status
history_set_created(struct run *run, struct str name, uint64_t seconds, struct ddl_outcome *ret)
{
	struct catalog_db *db;
	enum status status;

	TRY(catalog_open(run->tx, NULL, CATALOG_SPACE_TABLE, name, &db, &run->r->err));
	status = history_set(run, db, seconds, ret);
	catalog_db_unref(db);
	return status;
}

enum status
ddl_begin_history(struct kv_tx *tx, struct str name, struct err *err)
{
	struct catalog_db *db;
	enum status status;
	struct timed t;

	TRY(catalog_open(tx, NULL, CATALOG_SPACE_TABLE, name, &db, err));
	timed_init(&t, tx, db, NULL, err);
	status = timed_history_seconds(db) ? timed_history_begin(&t) : STATUS_OK;
	catalog_db_unref(db);
	return status;
}

/* What Cassandra's older form of a table cannot have. */
static enum status
check_compact(const struct creating *c)
{
	const struct cql_create_table *s = c->s;
	size_t others = c->count - s->partition_count - s->clustering_count;

	for (size_t i = 0; i < s->column_count; i++) {
		if (cql_type_is_multicell(c->types[i]))
			return FAIL(c->run, "Non-frozen collections and UDTs are not supported "
					    "with COMPACT STORAGE");
		if (s->columns[i].is_static)
			return FAIL(c->run, "Static columns are not supported in COMPACT STORAGE "
					    "tables");
	}
	if (!s->clustering_count && !others)
		return FAIL(c->run, "No definition found that is not part of the PRIMARY KEY");
	if (s->clustering_count && others > 1)
		return FAIL(c->run,
			    "COMPACT STORAGE with composite PRIMARY KEY allows no more than one "
			    "column not part of the PRIMARY KEY (got: %zu)",
			    others);
	return STATUS_OK;
}

static bool
has_counters(const struct creating *c)
{
	for (size_t i = 0; i < c->count; i++)
		if (c->columns[i].storage == TABLE_COUNTER)
			return true;
	return false;
}

enum status
ddl_create_table(struct run *run, struct ddl_outcome *ret)
{
	const struct cql_create_table *s = &run->statement->create_table;
	struct creating c = { .run = run, .s = s };
	struct table_schema schema = { 0 };
	struct options_said said;
	enum status status;
	struct str name;

	TRY(ddl_keyspace(run, GRANT_CREATE, &s->table, &c.keyspace));
	TRY(make_columns(&c));
	if (s->compact_storage)
		TRY(check_compact(&c));
	TRY(options_check_table(run->q, &s->with, &said));
	if (s->compact_storage)
		said.properties[said.count++] = (struct table_property){ STR(OPTIONS_COMPACT),
									 STR("true") };
	else if (!has_counters(&c))
		options_set_defaults(&said);
	schema.properties = said.properties;
	schema.property_count = said.count;
	schema.columns = c.columns;
	schema.column_count = c.count;
	schema.hash_count = s->partition_count;
	schema.key_count = s->partition_count + s->clustering_count;
	rand_bytes(schema.id, sizeof(schema.id));
	schema.id[6] = (uint8_t)((schema.id[6] & 0x0f) | 0x40);
	schema.id[8] = (uint8_t)((schema.id[8] & 0x3f) | 0x80);
	TRY(ddl_table_name(run, c.keyspace, s->table.name, &name));
	status = table_create(run->tx, name, &schema, said.ttl_s * 1000, &run->r->err);
	if (status == STATUS_EXISTS && s->if_not_exists)
		return ddl_nothing(run);
	if (status == STATUS_EXISTS) {
		run->r->more.keyspace = c.keyspace;
		run->r->more.table = s->table.name;
		return request_fail(run->r, CQL_CODE_EXISTS,
				    "Cannot add already existing table \"%.*s\" to keyspace "
				    "\"%.*s\"",
				    STR_ARG(s->table.name), STR_ARG(c.keyspace));
	}
	TRY(status);
	TRY(ddl_done(run, ret, "CREATED", "TABLE", c.keyspace, s->table.name));
	return said.history_s ? history_set_created(run, name, said.history_s, ret) : STATUS_OK;
}

/* ---- ALTER ---- */

static enum status
fail_no_table(struct run *run, struct str keyspace, struct str name)
{
	return FAIL(run, "Table '%.*s.%.*s' doesn't exist", STR_ARG(keyspace), STR_ARG(name));
}

/* Opens the table that is altered, which the caller closes. */
static enum status
open_altered(struct run *run, struct str keyspace, struct str name, struct schema_table **ret)
{
	/* Without a cache: what is altered is what the store has now. */
	return schema_table_open(run->q, &run->types, NULL, keyspace, name, ret);
}

static enum status
alter_add(struct run *run, const struct schema_table *t, const struct cql_alter_table *s,
	  struct table_alteration *a)
{
	struct table_column *columns = arena_alloc(run->r->arena,
						   (s->column_count + 1) * sizeof(*columns));

	if (!columns)
		return STATUS_LIMIT;
	for (size_t i = 0; i < s->column_count; i++) {
		const struct cql_column *c = &s->columns[i];
		const struct cql_type *type;

		if (schema_column_find(t, c->name)) {
			if (s->if_not_exists)
				continue;
			return FAIL(run, "Column with name '%.*s' already exists",
				    STR_ARG(c->name));
		}
		if (c->is_static && t->key_count == t->partition_count)
			return FAIL(run, "Static columns are only useful (and thus allowed) if "
					 "the table has at least one clustering column");
		TRY(cql_type_resolve(run->q, t->keyspace, c->type, find_type, &run->types, &type));
		TRY(cql_type_check(run->q, type));
		if (t->count > t->key_count && (type->kind == CQL_TYPE_COUNTER) != t->counters)
			return FAIL(run, "Cannot mix counter and non counter columns in the same "
					 "table");
		columns[a->add_count++] = (struct table_column){
			.name = c->name,
			.type = cql_type_text(run->q, type),
			.kind = c->is_static ? TABLE_STATIC : TABLE_REGULAR,
			.storage = value_storage(type, false),
		};
	}
	a->add = columns;
	return STATUS_OK;
}

static enum status
alter_drop(struct run *run, const struct schema_table *t, const struct cql_alter_table *s,
	   struct table_alteration *a)
{
	struct str *names = arena_alloc(run->r->arena, (s->column_count + 1) * sizeof(*names));

	if (!names)
		return STATUS_LIMIT;
	for (size_t i = 0; i < s->column_count; i++) {
		const struct schema_column *c = schema_column_find(t, s->columns[i].name);

		if (!c && s->if_column_exists)
			continue;
		if (!c)
			return FAIL(run, "Column %.*s was not found in table '%.*s.%.*s'",
				    STR_ARG(s->columns[i].name), STR_ARG(t->keyspace),
				    STR_ARG(t->name));
		if (c->kind <= SCHEMA_CLUSTERING)
			return FAIL(run, "Cannot drop PRIMARY KEY column %.*s", STR_ARG(c->name));
		names[a->drop_count++] = c->name;
	}
	a->drop = names;
	return STATUS_OK;
}

static enum status
alter_rename(struct run *run, const struct schema_table *t, const struct cql_alter_table *s,
	     struct table_alteration *a)
{
	struct table_rename *renames = arena_alloc(run->r->arena,
						   (s->rename_count + 1) * sizeof(*renames));

	if (!renames)
		return STATUS_LIMIT;
	for (size_t i = 0; i < s->rename_count; i++) {
		const struct cql_rename *r = &s->renames[i];
		const struct schema_column *c = schema_column_find(t, r->from);

		if (!c && s->if_column_exists)
			continue;
		if (!c)
			return FAIL(run, "Column %.*s was not found in table %.*s.%.*s",
				    STR_ARG(r->from), STR_ARG(t->keyspace), STR_ARG(t->name));
		if (c->kind > SCHEMA_CLUSTERING)
			return FAIL(run, "Cannot rename non PRIMARY KEY column %.*s",
				    STR_ARG(r->from));
		if (schema_column_find(t, r->to))
			return FAIL(run,
				    "Cannot rename column %.*s to %.*s in table '%.*s.%.*s'; "
				    "another column with that name already exists",
				    STR_ARG(r->from), STR_ARG(r->to), STR_ARG(t->keyspace),
				    STR_ARG(t->name));
		renames[a->rename_count++] = (struct table_rename){ r->from, r->to };
	}
	a->rename = renames;
	return STATUS_OK;
}

static enum status
alter_with(struct run *run, const struct cql_alter_table *s, struct options_said *said,
	   struct table_alteration *a)
{
	if (!s->with.count)
		return request_fail(run->r, CQL_CODE_SYNTAX,
				    "ALTER TABLE WITH invoked, but no parameters found");
	TRY(options_check_table(run->q, &s->with, said));
	a->properties = said->properties;
	a->property_count = said->count;
	a->sets_ttl = said->sets_ttl;
	a->ttl_ms = said->ttl_s * 1000;
	return STATUS_OK;
}

static enum status
alteration_make(struct run *run, const struct schema_table *t, struct options_said *said,
		struct table_alteration *a)
{
	const struct cql_alter_table *s = &run->statement->alter_table;

	switch (s->kind) {
	case CQL_ALTER_ADD:
		if (t->compact)
			return FAIL(run, "Cannot add new column to a COMPACT STORAGE table");
		return alter_add(run, t, s, a);
	case CQL_ALTER_DROP:
		if (t->compact)
			return FAIL(run, "Cannot drop columns from a COMPACT STORAGE table");
		return alter_drop(run, t, s, a);
	case CQL_ALTER_RENAME:
		return alter_rename(run, t, s, a);
	case CQL_ALTER_WITH:
		return alter_with(run, s, said, a);
	case CQL_ALTER_COLUMN_TYPE:
		return FAIL(run, "Altering column types is no longer supported");
	case CQL_ALTER_DROP_COMPACT:
		break;
	}
	return FAIL(run, "DROP COMPACT STORAGE is not supported");
}

enum status
ddl_alter_table(struct run *run, struct ddl_outcome *ret)
{
	const struct cql_alter_table *s = &run->statement->alter_table;
	struct table_alteration a = { 0 };
	struct options_said said = { 0 };
	struct ddl_outcome history = { 0 };
	struct schema_table *t;
	enum status status;
	struct timed timed;
	struct str keyspace;

	TRY(ddl_keyspace(run, GRANT_ALTER, &s->table, &keyspace));
	status = open_altered(run, keyspace, s->table.name, &t);
	if (status == STATUS_NOT_FOUND)
		return s->if_exists ? ddl_nothing(run)
				    : fail_no_table(run, keyspace, s->table.name);
	TRY(status);
	status = alteration_make(run, t, &said, &a);
	if (status == STATUS_OK) {
		timed_init(&timed, run->tx, t->db, NULL, &run->r->err);
		status = table_alter(&timed, &a);
	}
	if (status == STATUS_OK && said.sets_history)
		status = history_set(run, t->db, said.history_s, &history);
	schema_table_close(t);
	TRY(status);
	TRY(ddl_done(run, ret, "UPDATED", "TABLE", keyspace, s->table.name));
	ret->history_of = history.history_of;
	return STATUS_OK;
}

/* ---- DROP, TRUNCATE ---- */

enum status
ddl_drop_table(struct run *run, struct ddl_outcome *ret)
{
	const struct cql_drop *s = &run->statement->drop;
	enum status status;
	struct str keyspace, name;

	status = ddl_keyspace(run, GRANT_DROP, &s->name, &keyspace);
	if (status == STATUS_INVALID && s->if_exists && keyspace.len &&
	    run->r->q.code == CQL_CODE_INVALID) {
		run->r->q.code = (enum cql_code)0;
		return ddl_nothing(run);
	}
	TRY(status);
	TRY(ddl_table_name(run, keyspace, s->name.name, &name));
	status = table_drop(run->tx, name, &run->r->err);
	if (status == STATUS_NOT_FOUND)
		return s->if_exists ? ddl_nothing(run) : fail_no_table(run, keyspace, s->name.name);
	TRY(status);
	return ddl_done(run, ret, "DROPPED", "TABLE", keyspace, s->name.name);
}

enum status
ddl_truncate(struct run *run, struct ddl_outcome *ret)
{
	const struct cql_name *s = &run->statement->truncate;
	enum status status;
	struct str keyspace, name;

	TRY(run_keyspace_of(run, s->keyspace, &keyspace));
	run->r->keyspace = keyspace;
	run->r->table = s->name;
	if (schema_keyspace_is_system(keyspace))
		return request_fail(run->r, CQL_CODE_UNAUTHORIZED,
				    "%.*s keyspace is not user-modifiable.", STR_ARG(keyspace));
	TRY(request_allow(run->r, GRANT_MODIFY, keyspace, s->name));
	if (ddl_table_name(run, keyspace, s->name, &name) != STATUS_OK)
		return run_no_table(run, keyspace, s->name);
	status = table_truncate(run->tx, name, NULL, &run->r->err);
	if (status == STATUS_NOT_FOUND)
		return run_no_table(run, keyspace, s->name);
	TRY(status);
	/* One that keeps no history has nothing to begin. */
	ret->history_of = name;
	return ddl_nothing(run);
}
