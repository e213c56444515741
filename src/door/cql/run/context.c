#include "door/cql/run/context.h"

#include "base/steady.h"
#include "door/cql/schema/system.h"

static bool
scope_column(void *arg, struct str name, struct cql_known_column *ret)
{
	struct run *run = arg;
	const struct schema_column *c = schema_column_find(run->table, name);

	if (!c)
		return false;
	run->named[schema_column_at(run->table, c)] = true;
	*ret = (struct cql_known_column){ .index = (unsigned)schema_column_at(run->table, c),
					  .type = c->type,
					  .is_key = c->kind <= SCHEMA_CLUSTERING };
	return true;
}

static enum status
scope_find_type(void *arg, struct cql *q, struct str keyspace, struct str name,
		const struct cql_type **ret)
{
	struct run *run = arg;

	return schema_type_find(&run->types, q, keyspace, name, ret);
}

enum status
run_begin(struct run *run, struct cql_request *r, struct kv_tx *tx,
	  const struct cql_statement *statement, const struct cql_statement *outer,
	  struct str keyspace)
{
	outer = outer ? outer : statement;
	*run = (struct run){ .r = r,
			     .q = &r->q,
			     .tx = tx,
			     .types = { .tx = tx, .arena = r->arena },
			     .statement = statement,
			     .outer = outer,
			     .keyspace = keyspace,
			     .now_us = (int64_t)(steady_date_ms() * 1000) };
	run->scope = (struct cql_scope){ .find_type = scope_find_type,
					 .arg = run,
					 .marker_count = outer->marker_count };
	run->scope.markers = arena_zalloc(r->arena,
					  (outer->marker_count + 1) * sizeof(*run->scope.markers));
	run->markers = arena_zalloc(r->arena, (outer->marker_count + 1) * sizeof(*run->markers));
	return run->scope.markers && run->markers ? STATUS_OK : STATUS_LIMIT;
}

enum status
run_keyspace_of(struct run *run, struct str said, struct str *ret)
{
	*ret = said.ptr ? said : run->keyspace;
	if (ret->len)
		return STATUS_OK;
	return request_fail(run->r, CQL_CODE_INVALID,
			    "No keyspace has been specified. USE a keyspace, or explicitly specify "
			    "keyspace.tablename");
}

enum status
run_no_table(struct run *run, struct str keyspace, struct str name)
{
	struct table_keyspace stored;
	enum status status = schema_keyspace_is_system(keyspace)
				     ? STATUS_OK
				     : table_keyspace_read(run->tx, keyspace, run->r->arena,
							   &stored, NULL);

	if (status == STATUS_NOT_FOUND || status == STATUS_INVALID)
		return request_fail(run->r, CQL_CODE_INVALID, "keyspace %.*s does not exist",
				    STR_ARG(keyspace));
	TRY(status);
	return request_fail(run->r, CQL_CODE_INVALID, "table %.*s does not exist", STR_ARG(name));
}

enum status
run_set_scope(struct run *run)
{
	const struct schema_table *t = run->table;
	const struct cql_type **types = arena_alloc(run->r->arena,
						    (t->partition_count + 1) * sizeof(*types));

	run->named = arena_zalloc(run->r->arena, t->count + 1);
	if (!run->named || !types)
		return STATUS_LIMIT;
	run->scope.keyspace = t->keyspace;
	run->scope.table = t->name;
	run->scope.column = scope_column;
	run->scope.partition_count = t->partition_count;
	for (size_t i = 0; i < t->partition_count; i++)
		types[i] = t->columns[i].type;
	run->scope.partition = types;
	return STATUS_OK;
}

enum status
run_open_table(struct run *run, const struct cql_name *name)
{
	struct cql_door *door = run->r->door;
	struct catalog_cache *cache;
	enum status status;
	struct str keyspace;

	TRY(run_keyspace_of(run, name->keyspace, &keyspace));
	run->r->keyspace = keyspace;
	run->r->table = name->name;
	cache = catalog_caches_take(&door->caches);
	status = schema_table_open(run->q, &run->types, cache, keyspace, name->name, &run->table);
	catalog_caches_give(&door->caches, cache);
	if (status == STATUS_NOT_FOUND)
		return run_no_table(run, keyspace, name->name);
	TRY(status);
	status = run_set_scope(run);
	if (status != STATUS_OK)
		run_close_table(run);
	return status;
}

/* Takes the table and the scope as compiled. The reference to `db` becomes the table's. */
static enum status
take_compiled(struct run *run, const struct compiled *c, struct catalog_db *db)
{
	struct schema_table *t = arena_alloc(run->r->arena, sizeof(*t));

	if (!t) {
		catalog_db_unref(db);
		return STATUS_LIMIT;
	}
	*t = *c->table;
	t->db = db;
	t->schema = table_schema_of(db);
	run->table = t;
	run->named = c->named;
	run->scope = c->scope;
	run->scope.arg = run;
	run->compiled = c;
	return STATUS_OK;
}

enum status
run_take_compiled(struct run *run, const struct compiled *c)
{
	struct catalog_db *db = run->table->db;

	run->table = NULL;
	return take_compiled(run, c, db);
}

/* True if the catalog says in this transaction what it said when the statement was compiled. */
static bool
holds(const struct run *run, const struct compiled *c)
{
	uint8_t version[KV_VERSIONSTAMP_TX_BYTES];

	return kv_get_metadata_version(run->tx, version) == STATUS_OK &&
	       memcmp(version, c->version, sizeof(version)) == 0;
}

enum status
run_open_compiled(struct run *run, const struct cql_name *name, const struct compiled *c)
{
	struct cql_door *door = run->r->door;
	struct catalog_cache *cache;
	struct catalog_db *db;
	enum status status;
	struct str keyspace;

	if (!c || !holds(run, c))
		return run_open_table(run, name);
	TRY(run_keyspace_of(run, name->keyspace, &keyspace));
	run->r->keyspace = keyspace;
	run->r->table = name->name;
	cache = catalog_caches_take(&door->caches);
	status = catalog_open(run->tx, cache, CATALOG_SPACE_TABLE, c->name, &db, NULL);
	catalog_caches_give(&door->caches, cache);
	if (status == STATUS_NOT_FOUND)
		return run_no_table(run, keyspace, name->name);
	TRY(status);
	return take_compiled(run, c, db);
}

enum status
run_open_again(struct run *run, const struct cql_name *name, const struct compiled *c,
	       struct catalog_db *db)
{
	TRY(run_keyspace_of(run, name->keyspace, &run->r->keyspace));
	run->r->table = name->name;
	return take_compiled(run, c, catalog_db_ref(db));
}

void
run_close_table(struct run *run)
{
	schema_table_close(run->table);
	run->table = NULL;
}

enum status
run_column(struct run *run, struct str name, const struct schema_column **ret)
{
	AUTO(buf_release) struct buf full = BUF_SHORT(2 * TABLE_NAME_BYTES + 1);

	*ret = schema_column_find(run->table, name);
	if (*ret) {
		run->named[schema_column_at(run->table, *ret)] = true;
		return STATUS_OK;
	}
	buf_append_str(&full, run->table->keyspace);
	buf_append_byte(&full, '.');
	buf_append_str(&full, run->table->name);
	return cql_fail(run->q, CQL_E_UNDEFINED_COLUMN, name, buf_str(&full));
}

enum status
run_compile(struct run *run, const struct cql_term *term, const struct cql_type *receiver,
	    struct str name, struct cql_expr **ret)
{
	if (term->kind == CQL_TERM_FUNCTION && str_eq(term->text, STR("tojson")))
		return cql_fail(run->q, CQL_E_TO_JSON_HERE);
	return cql_compile(run->q, &run->scope, term, receiver, name, ret);
}

/* ---- Markers ---- */

/* The value of a marker; values may come by names. */
static enum status
value_of_marker(struct run *run, size_t at, const struct params_value **ret)
{
	struct str name = run->outer->marker_names[at];
	bool named = run->value_count && run->values[0].name.len;

	if (!named) {
		*ret = &run->values[at];
		return STATUS_OK;
	}
	if (!name.ptr)
		name = run->scope.markers[at].name;
	for (size_t i = 0; i < run->value_count; i++) {
		if (str_eq(run->values[i].name, name)) {
			*ret = &run->values[i];
			return STATUS_OK;
		}
	}
	return request_fail(run->r, CQL_CODE_INVALID, "Invalid amount of bind variables");
}

static enum status
bind_one(struct run *run, size_t at)
{
	const struct cql_marker *m = &run->scope.markers[at];
	const struct params_value *v;
	struct str bytes;

	TRY(value_of_marker(run, at, &v));
	switch (v->kind) {
	case FRAME_BYTES_NULL:
		run->markers[at] = CQL_VALUE_NULL;
		return STATUS_OK;
	case FRAME_BYTES_UNSET:
		run->markers[at] = CQL_VALUE_UNSET;
		return STATUS_OK;
	case FRAME_BYTES_VALUE:
		break;
	}
	/* A marker that nothing has given a type is not looked at either. */
	if (!m->type)
		return STATUS_OK;
	TRY(cql_value_check(run->q, m->type, v->bytes));
	TRY(cql_value_normalize(run->q, m->type, v->bytes, &bytes));
	run->markers[at] = CQL_VALUE(bytes);
	return STATUS_OK;
}

enum status
run_bind(struct run *run)
{
	size_t count = run->outer->marker_count;

	if (run->describes)
		return STATUS_OK;
	if (run->value_count != count && !(run->value_count && run->values[0].name.len))
		return request_fail(run->r, CQL_CODE_INVALID,
				    "there were %zu markers(?) in CQL but %zu bound variables",
				    count, run->value_count);
	for (size_t i = 0; i < count; i++)
		TRY(bind_one(run, i));
	run->env = (struct cql_env){ .markers = run->markers,
				     .marker_count = count,
				     .now_us = run->now_us };
	return STATUS_OK;
}

enum status
run_value(struct run *run, const struct cql_expr *e, struct cql_value *ret)
{
	return cql_run(e, run->q, &run->env, ret);
}
