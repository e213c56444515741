/* Indexes: told, created, built, dropped, found by their names. */
#include "door/rows/data/index.h"

#include "door/rows/data/rows.h"
#include "door/rows/data/schema.h"
#include "loop/step.h"

enum {
	TABLES_PAGE = 1000, /* tables that are looked through at once for an index */
	BUILD_STEPS = 4,    /* of a build, in one request */
};

/* ---- What entries say ---- */

static const struct column *
column_of(const struct table *t, uint64_t id)
{
	const struct table_column *stored = table_column_by_id(t->schema, id);
	size_t at = stored ? (size_t)(stored - t->schema->columns) : 0;

	return stored && at >= t->hidden ? &t->columns[at] : NULL;
}

static bool
is_key(const struct table *t, const struct column *c)
{
	return (size_t)(c - t->columns) < t->schema->key_count;
}

/* Of a column outside of the key whose values are bytes as messages have them. */
static enum index_use
use_of_own(enum rows_kind kind)
{
	switch ((int)kind) {
	case ROWS_TIME:
	case ROWS_UUID:
	case ROWS_MACADDR:
	case ROWS_MACADDR8:
		return INDEX_USE_ORDERED;
	case ROWS_TIMETZ:
	case ROWS_TIMESTAMP:
	case ROWS_TIMESTAMPTZ:
	case ROWS_INET:
	case ROWS_BITS:
		return INDEX_USE_EQUAL;
	default:
		return INDEX_USE_NONE;
	}
}

struct str
rows_index_order(const struct table *t, const struct column *c)
{
	if (is_key(t, c) || c->stored->kind == TABLE_STATIC)
		return STR("");
	if (c->kind == ROWS_FLOAT4 || c->kind == ROWS_FLOAT8)
		return STR("float");
	if (c->form != FORM_OWN)
		return STR("");
	return c->kind == ROWS_NUMERIC    ? STR("numeric")
	       : c->kind == ROWS_INTERVAL ? STR("interval")
					  : STR("");
}

enum index_use
rows_index_use(const struct table *t, const struct column *c)
{
	if (!rows_kind_is_key(c->kind) || c->stored->kind == TABLE_STATIC)
		return INDEX_USE_NONE;
	if (is_key(t, c) || c->form == FORM_ORDERED)
		return c->ordered ? INDEX_USE_ORDERED : INDEX_USE_EQUAL;
	if (rows_index_order(t, c).len)
		return INDEX_USE_NONE;
	if (c->form == FORM_OWN)
		return use_of_own(c->kind);
	return c->ordered ? INDEX_USE_ORDERED : INDEX_USE_EQUAL;
}

enum index_use
rows_index_column_use(const struct table *t, const struct table_index_column *column)
{
	const struct column *c = column_of(t, column->column);

	if (!c)
		return INDEX_USE_NONE;
	if (column->part == INDEX_TYPED_COLUMN)
		return rows_index_use(t, c);
	return column->part == INDEX_TYPED_ORDER && str_eq(column->steps[0], rows_index_order(t, c))
		       ? INDEX_USE_ORDERED
		       : INDEX_USE_NONE;
}

/* Whether a condition compares values as PostgreSQL does. */
static bool
condition_is_known(const struct table *t, const struct index_typed_condition *condition)
{
	const struct column *c = column_of(t, condition->column);
	enum index_use use = c ? rows_index_use(t, c) : INDEX_USE_NONE;

	switch (condition->op) {
	case INDEX_TYPED_NOT_NULL:
		return c != NULL;
	case INDEX_TYPED_EQ:
	case INDEX_TYPED_NE:
		return use != INDEX_USE_NONE;
	case INDEX_TYPED_LT:
	case INDEX_TYPED_LE:
	case INDEX_TYPED_GT:
	case INDEX_TYPED_GE:
		break;
	}
	return use == INDEX_USE_ORDERED;
}

bool
rows_index_is_known(const struct table *t, const struct table_index *index)
{
	bool known = !index->of_statics;

	for (size_t i = 0; i < index->column_count && known; i++)
		known = rows_index_column_use(t, &index->columns[i]) != INDEX_USE_NONE;
	for (size_t i = 0; i < index->condition_count && known; i++)
		known = condition_is_known(t, &index->conditions[i]);
	return known;
}

bool
rows_index_has_groups(const struct table *t, const struct table_index *index)
{
	bool has = rows_index_is_known(t, index);

	for (size_t i = 0; i < index->column_count && has; i++)
		has = index->columns[i].part == INDEX_TYPED_COLUMN;
	return has;
}

const struct table_index *
rows_index_numbered(const struct table *t, uint64_t number)
{
	size_t count;
	const struct table_index *all = table_indexes_of(t->db, &count);

	for (size_t i = 0; i < count; i++)
		if (all[i].number == number)
			return &all[i];
	return NULL;
}

enum status
rows_index_value(struct rows_request *r, const struct table *t, const struct column *c,
		 struct rows_value value, struct doc_scalar *ret)
{
	struct str order = rows_index_order(t, c);
	struct doc_scalar stored;
	bool is_there;

	if (is_key(t, c))
		return rows_key_parts(r, t, (size_t)(c - t->columns) - t->hidden, &value, 1, ret);
	if (!order.len)
		return rows_column_to_scalar(r, c, value.bytes, ret);
	TRY(rows_column_to_scalar(r, c, value.bytes, &stored));
	/* Any value that was checked has its place. */
	TRY(index_typed_order(order, &stored, r->arena, ret, &is_there));
	return is_there ? STATUS_OK : STATUS_CORRUPT;
}

/* ---- INDEXES ---- */

static enum status
put_condition(struct rows_request *r, const struct table *t,
	      const struct index_typed_condition *condition)
{
	const struct column *c = column_of(t, condition->column);

	rows_put_u32(r->out, (uint32_t)condition->column);
	rows_put_u8(r->out, condition->op);
	if (condition->op == INDEX_TYPED_NOT_NULL) {
		rows_put_null(r->out);
		return buf_status(r->out);
	}
	if (is_key(t, c))
		return rows_column_put_part(r, c, &condition->value, r->out);
	return rows_column_put_scalar(r, c, &condition->value, r->out);
}

/* The columns and conditions of an index that is known; of any other one none. */
static enum status
put_parts(struct rows_request *r, const struct table *t, const struct table_index *index,
	  bool known)
{
	rows_put_u8(r->out, known ? (unsigned)index->column_count : 0);
	for (size_t i = 0; i < index->column_count && known; i++) {
		bool ordered = rows_index_column_use(t, &index->columns[i]) == INDEX_USE_ORDERED;

		rows_put_u32(r->out, (uint32_t)index->columns[i].column);
		rows_put_u8(r->out, (index->columns[i].descending ? ROWS_COLUMN_DESCENDING : 0) |
					    (ordered ? ROWS_COLUMN_ORDERED : 0));
	}
	rows_put_u8(r->out, known ? (unsigned)index->carried_count : 0);
	for (size_t i = 0; i < index->carried_count && known; i++)
		rows_put_u32(r->out, (uint32_t)index->carried[i]);
	rows_put_u8(r->out, known ? (unsigned)index->condition_count : 0);
	for (size_t i = 0; i < index->condition_count && known; i++)
		TRY(put_condition(r, t, &index->conditions[i]));
	return buf_status(r->out);
}

static enum status
put_index(struct rows_request *r, const struct table *t, const struct table_index *index)
{
	bool known = rows_index_is_known(t, index);

	rows_put_u32(r->out, (uint32_t)index->number);
	rows_put_str(r->out, index->name);
	rows_put_u8(r->out, (index->is_unique ? ROWS_INDEX_UNIQUE : 0) |
				    (index->is_ready ? ROWS_INDEX_READY : 0) |
				    (index->has_failed ? ROWS_INDEX_FAILED : 0) |
				    (known ? ROWS_INDEX_KNOWN : 0) |
				    (rows_index_has_groups(t, index) ? ROWS_INDEX_GROUPS : 0));
	return put_parts(r, t, index, known);
}

static enum status
put_indexes(struct rows_request *r, const struct table *t)
{
	size_t count;
	const struct table_index *all = table_indexes_of(t->db, &count);

	rows_put_u16(r->out, (unsigned)count);
	for (size_t i = 0; i < count; i++)
		TRY(put_index(r, t, &all[i]));
	return buf_status(r->out);
}

static enum status
indexes_body(struct kv_tx *tx, void *arg)
{
	struct rows_request *r = arg;
	const struct rows_table wanted = { .schema = r->schema, .name = r->table };
	enum status status;
	struct table *t;

	rows_schema_restart(r);
	TRY(rows_table_open(r, tx, NULL, &wanted, r->arena, &t));
	status = put_indexes(r, t);
	rows_table_close(t);
	return status;
}

enum status
rows_serve_indexes(struct rows_request *r)
{
	TRY(rows_names_read(r->body, &r->schema, &r->table, &r->err));
	if (!rows_rights_allow(&r->client->rights, ROWS_RIGHTS_KNOWN, r->schema, r->table))
		return rows_request_allow(r, GRANT_SELECT, r->schema, r->table);
	return rows_schema_read(r, indexes_body, r);
}

/* ---- Finding one in a schema ---- */

struct finding {
	struct rows_request *r;
	struct str name;
	struct str table; /* whose index it is, in the arena; ptr NULL: there is none */
};

/* Looks for the index in the table that is called so. */
static enum status
find_in(struct kv_tx *tx, struct finding *f, struct str full)
{
	struct catalog_db *db;
	enum status status = catalog_open(tx, NULL, CATALOG_SPACE_TABLE, full, &db, &f->r->err);

	/* One that is gone by now, or cannot be read, is no reason to fail here. */
	if (status == STATUS_NOT_FOUND || status == STATUS_CORRUPT || status == STATUS_NEWER)
		return STATUS_OK;
	TRY(status);
	if (table_index_named(db, f->name))
		status = arena_copy(f->r->arena, str_skip(full, f->r->schema.len + 1), &f->table);
	catalog_db_unref(db);
	return status;
}

static enum status
find_index(struct kv_tx *tx, struct finding *f)
{
	struct str after = STR("");
	struct name_page page;

	f->table = (struct str){ NULL, 0 };
	do {
		TRY(table_list(tx, f->r->schema, after, TABLES_PAGE, f->r->arena, &page));
		for (size_t i = 0; i < page.count && !f->table.ptr; i++) {
			TRY(step_count(1));
			TRY(find_in(tx, f, page.names[i]));
		}
		if (page.count)
			after = page.names[page.count - 1];
	} while (page.count == TABLES_PAGE && !f->table.ptr);
	return STATUS_OK;
}

static enum status
fail_no_index(struct rows_request *r, struct str name)
{
	return rows_fail(r, ROWS_STATE_INDEX, "the schema \"%.*s\" has no index \"%.*s\"",
			 STR_ARG(r->schema), STR_ARG(name));
}

static enum status
find_body(struct kv_tx *tx, void *arg)
{
	struct finding *f = arg;

	rows_schema_restart(f->r);
	TRY(find_index(tx, f));
	if (!f->table.ptr ||
	    !rows_rights_allow(&f->r->client->rights, ROWS_RIGHTS_KNOWN, f->r->schema, f->table))
		return fail_no_index(f->r, f->name);
	rows_put_str(f->r->out, f->table);
	return buf_status(f->r->out);
}

enum status
rows_serve_index_find(struct rows_request *r)
{
	struct finding f = { .r = r };

	TRY(rows_names_read(r->body, &r->schema, &f.name, &r->err));
	if (!rows_rights_see(&r->client->rights, r->schema))
		return rows_request_allow(r, GRANT_SELECT, r->schema, STR(""));
	return rows_schema_read(r, find_body, &f);
}

/* ---- INDEX_CREATE ---- */

struct creating {
	struct rows_request *r;
	struct rows_index_create create;
};

static enum status
fail_use(struct rows_request *r, const struct column *c)
{
	return rows_fail(r, ROWS_STATE_UNSUPPORTED,
			 "the column \"%.*s\" cannot be in an index in this way: equal values "
			 "of %s are not always stored alike",
			 STR_ARG(c->stored->name), rows_kind_name(c->kind));
}

/* Of a column whose values have entries by what they equal. */
static enum status
take_order(struct rows_request *r, const struct table *t, const struct column *c,
	   struct table_index_column *ret)
{
	struct str order = rows_index_order(t, c), *steps;

	if (!order.len)
		return STATUS_OK;
	steps = arena_alloc(r->arena, sizeof(*steps));
	if (!steps)
		return STATUS_LIMIT;
	*steps = order;
	ret->part = INDEX_TYPED_ORDER;
	ret->steps = steps;
	ret->step_count = 1;
	return STATUS_OK;
}

static enum status
take_columns(struct creating *k, const struct table *t, struct table_index *terms)
{
	struct rows_request *r = k->r;
	struct table_index_column *columns = arena_zalloc(r->arena,
							  (k->create.count + 1) * sizeof(*columns));
	uint64_t *carried = arena_alloc(r->arena,
					(k->create.included_count + 1) * sizeof(*carried));
	const struct column *c;

	if (!columns || !carried)
		return STATUS_LIMIT;
	for (size_t i = 0; i < k->create.count; i++) {
		TRY(rows_table_column_find(r, t, k->create.columns[i].id, &c));
		if (!rows_kind_is_key(c->kind))
			return rows_fail(r, ROWS_STATE_UNSUPPORTED,
					 "the column \"%.*s\" cannot be in an index: values of %s "
					 "have no order",
					 STR_ARG(c->stored->name), rows_kind_name(c->kind));
		columns[i].column = c->stored->id;
		TRY(take_order(r, t, c, &columns[i]));
		if (rows_index_column_use(t, &columns[i]) == INDEX_USE_NONE)
			return fail_use(r, c);
		columns[i].descending = k->create.columns[i].descending;
	}
	for (size_t i = 0; i < k->create.included_count; i++) {
		TRY(rows_table_column_find(r, t, k->create.included[i], &c));
		carried[i] = c->stored->id;
	}
	terms->columns = columns;
	terms->column_count = k->create.count;
	terms->carried = carried;
	terms->carried_count = k->create.included_count;
	return STATUS_OK;
}

static enum status
take_conditions(struct creating *k, const struct table *t, struct table_index *terms)
{
	static const enum index_typed_operator operators[] = {
		[ROWS_CONDITION_EQ] = INDEX_TYPED_EQ,
		[ROWS_CONDITION_NE] = INDEX_TYPED_NE,
		[ROWS_CONDITION_LT] = INDEX_TYPED_LT,
		[ROWS_CONDITION_LE] = INDEX_TYPED_LE,
		[ROWS_CONDITION_GT] = INDEX_TYPED_GT,
		[ROWS_CONDITION_GE] = INDEX_TYPED_GE,
		[ROWS_CONDITION_NOT_NULL] = INDEX_TYPED_NOT_NULL,
	};
	struct rows_request *r = k->r;
	size_t count = k->create.condition_count;
	struct index_typed_condition *all = arena_zalloc(r->arena, (count + 1) * sizeof(*all));
	const struct column *c;

	if (!all)
		return STATUS_LIMIT;
	for (size_t i = 0; i < count; i++) {
		const struct rows_condition *from = &k->create.conditions[i];

		TRY(rows_table_column_find(r, t, from->column, &c));
		all[i] = (struct index_typed_condition){ .column = c->stored->id,
							 .op = operators[from->op],
							 .value = { .kind = DOC_NULL } };
		if (!condition_is_known(t, &all[i]))
			return fail_use(r, c);
		if (from->op != ROWS_CONDITION_NOT_NULL)
			TRY(rows_index_value(r, t, c, from->value, &all[i].value));
	}
	terms->conditions = all;
	terms->condition_count = count;
	return STATUS_OK;
}

static enum status
create_on(struct creating *k, struct kv_tx *tx, const struct table *t)
{
	struct table_index terms = { .name = k->create.name,
				     .spec = k->create.spec,
				     .is_unique = k->create.unique };
	struct rows_request *r = k->r;
	struct timed timed;
	enum status status;
	uint64_t number;

	TRY(take_columns(k, t, &terms));
	TRY(take_conditions(k, t, &terms));
	timed_init(&timed, tx, t->db, NULL, &r->err);
	status = table_index_create(&timed, &terms, &number);
	if (status == STATUS_INVALID)
		r->state = ROWS_STATE_DEFINITION;
	if (status == STATUS_LIMIT && r->err.text[0])
		r->state = ROWS_STATE_TOO_LARGE;
	TRY(status);
	rows_put_u32(r->out, (uint32_t)number);
	return buf_status(r->out);
}

static enum status
create_body(struct kv_tx *tx, void *arg)
{
	struct creating *k = arg;
	struct finding f = { .r = k->r, .name = k->create.name };
	enum status status;
	struct table *t;

	rows_schema_restart(k->r);
	TRY(find_index(tx, &f));
	if (f.table.ptr)
		return rows_fail(k->r, ROWS_STATE_INDEX_EXISTS,
				 "the schema \"%.*s\" has an index \"%.*s\" already",
				 STR_ARG(k->r->schema), STR_ARG(k->create.name));
	/* Without a cache: what is changed is what the store has now. */
	TRY(rows_table_open(k->r, tx, NULL, &k->create.table, k->r->arena, &t));
	status = create_on(k, tx, t);
	rows_table_close(t);
	return status;
}

enum status
rows_serve_index_create(struct rows_request *r)
{
	struct creating k = { .r = r };

	TRY(rows_index_create_read(r->body, r->arena, &k.create, &r->err));
	r->schema = k.create.table.schema;
	r->table = k.create.table.name;
	TRY(rows_request_allow(r, GRANT_ALTER, r->schema, r->table));
	return rows_schema_change(r, create_body, &k);
}

/* ---- INDEX_BUILD ---- */

struct building {
	struct rows_request *r;
	struct rows_table table;
	uint32_t number;
	bool done; /* it is ready, or has failed */
};

static enum status
state_body(struct kv_tx *tx, void *arg)
{
	struct building *b = arg;
	struct rows_request *r = b->r;
	const struct table_index *index;
	struct table *t;

	rows_schema_restart(r);
	TRY(rows_table_open(r, tx, NULL, &b->table, r->arena, &t));
	index = rows_index_numbered(t, b->number);
	if (index) {
		b->done = index->is_ready || index->has_failed;
		rows_put_u8(r->out, (index->is_ready ? ROWS_INDEX_READY : 0) |
					    (index->has_failed ? ROWS_INDEX_FAILED : 0));
		rows_put_str(r->out, index->failure);
	}
	rows_table_close(t);
	if (!index)
		return rows_fail(r, ROWS_STATE_INDEX, "the table has no index with the number %u",
				 (unsigned)b->number);
	return buf_status(r->out);
}

enum status
rows_serve_index_build(struct rows_request *r)
{
	AUTO(buf_release) struct buf full = BUF_SHORT(CATALOG_NAME_BYTES);
	struct building b = { .r = r };
	struct err ignored = { 0 };

	TRY(rows_index_build_read(r->body, &b.table, &b.number, &r->err));
	r->schema = b.table.schema;
	r->table = b.table.name;
	TRY(rows_request_allow(r, GRANT_ALTER, r->schema, r->table));
	TRY(rows_txn_check_none(r));
	TRY(rows_schema_read(r, state_body, &b));
	if (b.done)
		return STATUS_OK;
	TRY(table_name(r->schema, r->table, &full, &r->err));
	/* What fails here is the background's to do again. */
	(void)!table_index_build(r->door->config.store, buf_str(&full), b.number, BUILD_STEPS,
				 &ignored);
	return rows_schema_read(r, state_body, &b);
}

/* ---- INDEX_DROP ---- */

static enum status
drop_body(struct kv_tx *tx, void *arg)
{
	struct finding *f = arg;
	struct rows_request *r = f->r;
	const struct table_index *index;
	struct rows_table wanted;
	struct timed timed;
	enum status status;
	struct table *t;

	rows_schema_restart(r);
	TRY(find_index(tx, f));
	if (!f->table.ptr)
		return fail_no_index(r, f->name);
	TRY(rows_request_allow(r, GRANT_ALTER, r->schema, f->table));
	wanted = (struct rows_table){ .schema = r->schema, .name = f->table };
	TRY(rows_table_open(r, tx, NULL, &wanted, r->arena, &t));
	timed_init(&timed, tx, t->db, NULL, &r->err);
	index = table_index_named(t->db, f->name);
	status = index ? table_index_drop(&timed, index) : fail_no_index(r, f->name);
	rows_table_close(t);
	return status;
}

enum status
rows_serve_index_drop(struct rows_request *r)
{
	struct finding f = { .r = r };

	TRY(rows_names_read(r->body, &r->schema, &f.name, &r->err));
	if (!rows_rights_see(&r->client->rights, r->schema))
		return rows_request_allow(r, GRANT_ALTER, r->schema, STR(""));
	return rows_schema_change(r, drop_body, &f);
}
