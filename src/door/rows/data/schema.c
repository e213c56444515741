/* Schemas, which are CQL's keyspaces, and tables: told, made, changed, deleted. */
#include "base/rand.h"
#include "door/rows/data/rows.h"
#include "door/rows/data/schema.h"
#include "loop/step.h"
#include "model/timed/tables/estimate.h"
#include "model/timed/tables/keyspaces.h"

enum {
	TABLES_PAGE = 1000, /* names that one answer has at most */
};

static enum status
names(struct rows_request *r, struct str *schema, struct str *table)
{
	TRY(rows_names_read(r->body, schema, table, &r->err));
	r->schema = *schema;
	r->table = table ? *table : STR("");
	return STATUS_OK;
}

/* The name of the table in the catalog, in the request's arena. */
static enum status
full_name(struct rows_request *r, struct str schema, struct str table, struct str *ret)
{
	AUTO(buf_release) struct buf full = BUF_SHORT(CATALOG_NAME_BYTES);

	TRY(table_name(schema, table, &full, &r->err));
	return buf_copy(&full, r->arena, ret);
}

void
rows_schema_restart(struct rows_request *r)
{
	r->out->failed = STATUS_OK;
	r->out->len = r->out_from;
	arena_reset(r->arena, r->mark);
	r->state = NULL;
	r->unique = STR("");
	r->err.text[0] = '\0';
}

enum status
rows_schema_read(struct rows_request *r, kv_body *body, void *arg)
{
	r->mark = arena_mark(r->arena);
	if (rows_txn_has_defined(r->client))
		return rows_txn_define(r, body, arg, false);
	return kv_run_read(r->door->config.store, body, arg, &r->err);
}

enum status
rows_schema_change(struct rows_request *r, kv_body *body, void *arg)
{
	r->mark = arena_mark(r->arena);
	if (r->client->txn)
		return rows_txn_define(r, body, arg, true);
	return kv_run(r->door->config.store, body, arg, NULL, &r->err);
}

/* ---- Schemas ---- */

static enum status
schemas_body(struct kv_tx *tx, void *arg)
{
	struct rows_request *r = arg;
	struct table_keyspaces all;
	size_t at = r->out_from;
	uint32_t count = 0;

	rows_schema_restart(r);
	TRY(table_keyspace_list(tx, r->arena, &all, &r->err));
	rows_put_u32(r->out, 0);
	for (size_t i = 0; i < all.count; i++) {
		if (!rows_rights_see(&r->client->rights, all.keyspaces[i].name))
			continue;
		rows_put_str(r->out, all.keyspaces[i].name);
		count++;
	}
	rows_set_u32(r->out, at, count);
	return buf_status(r->out);
}

enum status
rows_serve_schemas(struct rows_request *r)
{
	if (r->body.len)
		return rows_fail(r, ROWS_STATE_PROTOCOL, "the request is malformed");
	return rows_schema_read(r, schemas_body, r);
}

static enum status
schema_create_body(struct kv_tx *tx, void *arg)
{
	struct rows_request *r = arg;
	const struct table_keyspace made = { .name = r->schema };
	enum status status;

	rows_schema_restart(r);
	status = table_keyspace_create(tx, &made, &r->err);
	if (status == STATUS_EXISTS)
		return rows_fail(r, ROWS_STATE_SCHEMA_EXISTS, "the schema \"%.*s\" exists already",
				 STR_ARG(r->schema));
	return status;
}

enum status
rows_serve_schema_create(struct rows_request *r)
{
	struct str name;

	TRY(names(r, &name, NULL));
	TRY(rows_request_allow(r, GRANT_CREATE, name, STR("")));
	return rows_schema_change(r, schema_create_body, r);
}

static enum status
fail_no_schema(struct rows_request *r)
{
	return rows_fail(r, ROWS_STATE_SCHEMA, "the schema \"%.*s\" does not exist",
			 STR_ARG(r->schema));
}

static enum status
schema_drop_body(struct kv_tx *tx, void *arg)
{
	struct rows_request *r = arg;
	enum status status;

	rows_schema_restart(r);
	status = table_keyspace_drop(tx, r->schema, &r->err);
	return status == STATUS_NOT_FOUND ? fail_no_schema(r) : status;
}

enum status
rows_serve_schema_drop(struct rows_request *r)
{
	struct str name;

	TRY(names(r, &name, NULL));
	TRY(rows_request_allow(r, GRANT_DROP, name, STR("")));
	return rows_schema_change(r, schema_drop_body, r);
}

/* ---- Tables, told ---- */

struct listing {
	struct rows_request *r;
	struct str after;
};

static enum status
tables_body(struct kv_tx *tx, void *arg)
{
	struct listing *l = arg;
	struct rows_request *r = l->r;
	struct str after = STR("");
	struct name_page page;
	uint32_t count = 0;

	rows_schema_restart(r);
	if (l->after.len)
		TRY(full_name(r, r->schema, l->after, &after));
	TRY(table_list(tx, r->schema, after, TABLES_PAGE, r->arena, &page));
	rows_put_u32(r->out, 0);
	for (size_t i = 0; i < page.count; i++) {
		struct str name = str_skip(page.names[i], r->schema.len + 1);

		TRY(step_count(1));
		if (!rows_rights_allow(&r->client->rights, ROWS_RIGHTS_KNOWN, r->schema, name))
			continue;
		rows_put_str(r->out, name);
		count++;
	}
	rows_set_u32(r->out, r->out_from, count);
	/* Where to go on is the last name, whoever may see it. */
	rows_put_str(r->out, page.count == TABLES_PAGE
				     ? str_skip(page.names[page.count - 1], r->schema.len + 1)
				     : STR(""));
	return buf_status(r->out);
}

enum status
rows_serve_tables(struct rows_request *r)
{
	struct listing l = { .r = r };

	TRY(rows_names_read(r->body, &r->schema, &l.after, &r->err));
	if (!rows_rights_see(&r->client->rights, r->schema))
		return rows_request_allow(r, GRANT_SELECT, r->schema, STR(""));
	if (!r->schema.len)
		return fail_no_schema(r);
	return rows_schema_read(r, tables_body, &l);
}

static void
put_column(struct rows_request *r, const struct column *c)
{
	rows_put_u32(r->out, (uint32_t)c->stored->id);
	rows_put_str(r->out, c->stored->name);
	rows_put_u8(r->out, c->kind);
	rows_put_u8(r->out, c->stored->kind);
	rows_put_u8(r->out, (c->stored->descending ? ROWS_COLUMN_DESCENDING : 0) |
				    (c->ordered ? ROWS_COLUMN_ORDERED : 0));
	rows_put_str(r->out, c->stored->type);
}

static enum status
table_body(struct kv_tx *tx, void *arg)
{
	struct rows_request *r = arg;
	const struct rows_table wanted = { .schema = r->schema, .name = r->table };
	struct table *t;

	rows_schema_restart(r);
	TRY(rows_table_open(r, tx, NULL, &wanted, r->arena, &t));
	buf_append(r->out, t->schema->id, TABLE_ID_BYTES);
	rows_put_u16(r->out, (unsigned)(t->schema->column_count - t->hidden));
	for (size_t i = t->hidden; i < t->schema->column_count; i++)
		put_column(r, &t->columns[i]);
	rows_table_close(t);
	return buf_status(r->out);
}

enum status
rows_serve_table(struct rows_request *r)
{
	struct str schema, table;

	TRY(names(r, &schema, &table));
	if (!rows_rights_allow(&r->client->rights, ROWS_RIGHTS_KNOWN, schema, table))
		return rows_request_allow(r, GRANT_SELECT, schema, table);
	return rows_schema_read(r, table_body, r);
}

/* What somebody may see of the table's definition is enough: PostgreSQL tells as much to all. */
static enum status
estimate_body(struct kv_tx *tx, void *arg)
{
	struct rows_request *r = arg;
	const struct rows_table wanted = { .schema = r->schema, .name = r->table };
	struct table_estimate estimate = { 0 };
	struct timed timed;
	enum status status;
	struct table *t;

	rows_schema_restart(r);
	TRY(rows_table_open(r, tx, NULL, &wanted, r->arena, &t));
	timed_init(&timed, tx, t->db, NULL, &r->err);
	status = table_estimate_rows(&timed, r->arena, &estimate);
	rows_table_close(t);
	rows_put_u8(r->out, estimate.is_exact);
	rows_put_u64(r->out, estimate.rows);
	return status == STATUS_OK ? buf_status(r->out) : status;
}

enum status
rows_serve_estimate(struct rows_request *r)
{
	struct str schema, table;

	TRY(names(r, &schema, &table));
	if (!rows_rights_allow(&r->client->rights, ROWS_RIGHTS_KNOWN, schema, table))
		return rows_request_allow(r, GRANT_SELECT, schema, table);
	return rows_schema_read(r, estimate_body, r);
}

/* ---- CREATE TABLE ---- */

struct making {
	struct rows_request *r;
	struct rows_create create;
	struct table_column *columns;
	struct table_schema schema;
	struct str name;
};

static enum status
column_make(struct rows_request *r, const struct rows_column *from, struct table_column *ret)
{
	if (from->kind <= ROWS_NONE || from->kind >= ROWS_KINDS)
		return rows_fail(r, ROWS_STATE_UNSUPPORTED, "there is no kind %u", from->kind);
	if (str_eq(from->name, STR(HIDDEN_COLUMN)))
		return rows_fail(r, ROWS_STATE_DEFINITION,
				 "no column can be called " HIDDEN_COLUMN);
	*ret = (struct table_column){
		.name = from->name,
		.type = str_from_cstr(rows_column_type_text((enum rows_kind)from->kind,
							    from->role != ROWS_ROLE_REGULAR)),
		.descending = from->descending,
	};
	return STATUS_OK;
}

static void
columns_begin(struct making *m, bool has_hash)
{
	if (has_hash)
		return;
	m->columns[0] = (struct table_column){ .name = STR(HIDDEN_COLUMN),
					       .type = STR(HIDDEN_TYPE),
					       .kind = TABLE_HASH };
	m->schema.column_count = m->schema.hash_count = m->schema.key_count = 1;
}

static enum status
columns_make(struct making *m)
{
	struct rows_request *r = m->r;
	unsigned last = ROWS_ROLE_HASH;

	columns_begin(m, m->create.count && m->create.columns[0].role == ROWS_ROLE_HASH);
	for (size_t i = 0; i < m->create.count; i++) {
		const struct rows_column *from = &m->create.columns[i];
		struct table_column *to = &m->columns[m->schema.column_count];

		TRY(column_make(r, from, to));
		if (from->role < last || from->role == ROWS_ROLE_STATIC ||
		    from->role > ROWS_ROLE_REGULAR)
			return rows_fail(
				r, ROWS_STATE_DEFINITION,
				"hash columns come first, then range columns, then others");
		last = from->role;
		to->kind = (enum table_column_kind)from->role;
		if (from->role != ROWS_ROLE_REGULAR &&
		    !rows_kind_is_key((enum rows_kind)from->kind))
			return rows_fail(
				r, ROWS_STATE_UNSUPPORTED,
				"the column \"%.*s\" cannot be a key: values of %s have no "
				"order",
				STR_ARG(from->name), rows_kind_name((enum rows_kind)from->kind));
		m->schema.column_count++;
		m->schema.hash_count += from->role == ROWS_ROLE_HASH;
		m->schema.key_count += from->role != ROWS_ROLE_REGULAR;
	}
	if (m->schema.key_count == 1 && m->columns[0].kind == TABLE_HASH &&
	    str_eq(m->columns[0].name, STR(HIDDEN_COLUMN)))
		return rows_fail(r, ROWS_STATE_DEFINITION, "a table has a column in its key");
	return STATUS_OK;
}

static enum status
create_body(struct kv_tx *tx, void *arg)
{
	struct making *m = arg;
	struct rows_request *r = m->r;
	enum status status;

	/* An INSERT of this door reads its row anyway, and most rows are read whole. */
	const struct table_property packed = { STR(TABLE_PROPERTY_PACKED), STR("true") };

	rows_schema_restart(r);
	m->schema.properties = &packed;
	m->schema.property_count = 1;
	m->schema.counts = true;
	status = table_create(tx, m->name, &m->schema, 0, &r->err);
	m->schema.properties = NULL;
	m->schema.property_count = 0;
	if (status == STATUS_EXISTS)
		return rows_fail(r, ROWS_STATE_TABLE_EXISTS, "the table \"%.*s\" exists already",
				 STR_ARG(m->name));
	if (status == STATUS_NOT_FOUND)
		return fail_no_schema(r);
	if (status == STATUS_INVALID)
		r->state = ROWS_STATE_DEFINITION;
	TRY(status);
	buf_append(r->out, m->schema.id, TABLE_ID_BYTES);
	return buf_status(r->out);
}

enum status
rows_serve_table_create(struct rows_request *r)
{
	struct making m = { .r = r };

	TRY(rows_create_read(r->body, r->arena, &m.create, &r->err));
	r->schema = m.create.table.schema;
	r->table = m.create.table.name;
	TRY(rows_request_allow(r, GRANT_CREATE, r->schema, STR("")));
	m.columns = arena_alloc(r->arena, (m.create.count + 2) * sizeof(*m.columns));
	if (!m.columns)
		return STATUS_LIMIT;
	TRY(columns_make(&m));
	m.schema.columns = m.columns;
	rand_bytes(m.schema.id, sizeof(m.schema.id));
	/* A random UUID. */
	m.schema.id[6] = (uint8_t)((m.schema.id[6] & 0x0f) | 0x40);
	m.schema.id[8] = (uint8_t)((m.schema.id[8] & 0x3f) | 0x80);
	TRY(full_name(r, r->schema, r->table, &m.name));
	return rows_schema_change(r, create_body, &m);
}

/* ---- ALTER TABLE ---- */

struct altering {
	struct rows_request *r;
	struct rows_alter alter;
	struct table_column *add;
};

static enum status
alteration_make(struct altering *a, struct table_alteration *ret)
{
	struct table_rename *renames = arena_alloc(a->r->arena,
						   (a->alter.rename_count + 1) * sizeof(*renames));

	a->add = arena_alloc(a->r->arena, (a->alter.add_count + 1) * sizeof(*a->add));
	if (!renames || !a->add)
		return STATUS_LIMIT;
	for (size_t i = 0; i < a->alter.add_count; i++) {
		TRY(column_make(a->r, &a->alter.add[i], &a->add[i]));
		a->add[i].kind = TABLE_REGULAR;
	}
	for (size_t i = 0; i < a->alter.rename_count; i++)
		renames[i] = (struct table_rename){ a->alter.rename[i].from,
						    a->alter.rename[i].to };
	*ret = (struct table_alteration){ .add = a->add,
					  .add_count = a->alter.add_count,
					  .drop = a->alter.drop,
					  .drop_count = a->alter.drop_count,
					  .rename = renames,
					  .rename_count = a->alter.rename_count };
	return STATUS_OK;
}

/* The hidden column is nobody's to rename. */
static enum status
check_renames(const struct altering *a)
{
	for (size_t i = 0; i < a->alter.rename_count; i++)
		if (str_eq(a->alter.rename[i].from, STR(HIDDEN_COLUMN)) ||
		    str_eq(a->alter.rename[i].to, STR(HIDDEN_COLUMN)))
			return rows_fail(a->r, ROWS_STATE_COLUMN,
					 "there is no column " HIDDEN_COLUMN);
	return STATUS_OK;
}

static enum status
alter_body(struct kv_tx *tx, void *arg)
{
	struct altering *a = arg;
	struct rows_request *r = a->r;
	struct table_alteration alteration;
	enum status status;
	struct timed timed;
	struct table *t;

	rows_schema_restart(r);
	TRY(alteration_make(a, &alteration));
	/* Without a cache: what is altered is what the store has now. */
	TRY(rows_table_open(r, tx, NULL, &a->alter.table, r->arena, &t));
	timed_init(&timed, tx, t->db, NULL, &r->err);
	status = table_alter(&timed, &alteration);
	rows_table_close(t);
	if (status == STATUS_INVALID)
		r->state = ROWS_STATE_DEFINITION;
	return status;
}

enum status
rows_serve_table_alter(struct rows_request *r)
{
	struct altering a = { .r = r };

	TRY(rows_alter_read(r->body, r->arena, &a.alter, &r->err));
	r->schema = a.alter.table.schema;
	r->table = a.alter.table.name;
	TRY(rows_request_allow(r, GRANT_ALTER, r->schema, r->table));
	TRY(check_renames(&a));
	return rows_schema_change(r, alter_body, &a);
}

/* ---- DROP TABLE, TRUNCATE ---- */

typedef enum status remove_table(struct kv_tx *tx, struct str name, struct err *err);

struct removing {
	struct rows_request *r;
	remove_table *remove;
	struct str name;
};

static enum status
remove_body(struct kv_tx *tx, void *arg)
{
	struct removing *m = arg;
	enum status status;

	rows_schema_restart(m->r);
	status = m->remove(tx, m->name, &m->r->err);
	if (status != STATUS_NOT_FOUND)
		return status;
	return rows_fail(m->r, ROWS_STATE_TABLE, "the table \"%.*s\" does not exist",
			 STR_ARG(m->name));
}

static enum status
table_remove(struct rows_request *r, remove_table *remove, enum grant wanted)
{
	struct removing m = { .r = r, .remove = remove };
	struct str schema, table;

	TRY(names(r, &schema, &table));
	TRY(rows_request_allow(r, wanted, schema, table));
	TRY(full_name(r, schema, table, &m.name));
	return rows_schema_change(r, remove_body, &m);
}

enum status
rows_serve_table_drop(struct rows_request *r)
{
	return table_remove(r, table_drop, GRANT_DROP);
}

static enum status
empty(struct kv_tx *tx, struct str name, struct err *err)
{
	return table_truncate(tx, name, NULL, err);
}

enum status
rows_serve_table_empty(struct rows_request *r)
{
	return table_remove(r, empty, GRANT_MODIFY);
}
