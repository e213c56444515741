/* CREATE INDEX and DROP INDEX. */
#include "base/buf.h"
#include "door/cql/run/ddl.h"
#include "door/cql/run/json_path.h"
#include "door/cql/run/value.h"
#include "door/cql/schema/system.h"
#include "model/timed/tables/index.h"

#define FAIL(run, ...) request_fail((run)->r, CQL_CODE_INVALID, __VA_ARGS__)

enum {
	NAME_BYTES = 2 * TABLE_COLUMN_BYTES + 32, /* of a name that is made */
};

/* An index that is being created. */
struct creating {
	struct run *run;
	const struct cql_create_index *s;
	const struct schema_table *t;
	const struct schema_column *first;
	struct table_index terms;
	struct table_index_column *columns;
	struct index_typed_condition *conditions;
};

/* ---- What can be indexed ---- */

static enum status
check_duration(struct run *run, const struct cql_type *type)
{
	if (!cql_type_has(type, CQL_TYPE_DURATION))
		return STATUS_OK;
	if (cql_type_is_collection(type))
		return FAIL(run, "Secondary indexes are not supported on collections containing "
				 "durations");
	if (type->kind == CQL_TYPE_TUPLE)
		return FAIL(run,
			    "Secondary indexes are not supported on tuples containing durations");
	if (type->kind == CQL_TYPE_UDT)
		return FAIL(run,
			    "Secondary indexes are not supported on UDTs containing durations");
	return FAIL(run, "Secondary indexes are not supported on duration columns");
}

static const char *
part_name(enum cql_index_part part)
{
	static const char *const names[] = {
		[CQL_INDEX_PLAIN] = "simple", [CQL_INDEX_VALUES] = "values",
		[CQL_INDEX_KEYS] = "keys",    [CQL_INDEX_ENTRIES] = "keys_and_values",
		[CQL_INDEX_FULL] = "full",
	};

	return names[part];
}

/* Whether the part that is said is one that the column has, with Cassandra's texts. */
static enum status
check_part(struct run *run, const struct cql_index_target *target, const struct schema_column *c)
{
	bool collection = cql_type_is_collection(c->type);
	bool frozen = collection && !cql_type_is_multicell(c->type);
	enum cql_index_part part = target->part;

	if (frozen && part != CQL_INDEX_FULL)
		return FAIL(run,
			    "Cannot create %s() index on frozen column %.*s. Frozen collections "
			    "are immutable and must be fully indexed by using the 'full(%.*s)' "
			    "modifier",
			    part == CQL_INDEX_PLAIN ? "values" : part_name(part), STR_ARG(c->name),
			    STR_ARG(c->name));
	if (!frozen && part == CQL_INDEX_FULL)
		return FAIL(run, "full() indexes can only be created on frozen collections");
	if (!collection && part != CQL_INDEX_PLAIN)
		return FAIL(run,
			    "Cannot create %s() index on %.*s. Non-collection columns only support "
			    "simple indexes",
			    part_name(part), STR_ARG(c->name));
	if (c->type->kind != CQL_TYPE_MAP && (part == CQL_INDEX_KEYS || part == CQL_INDEX_ENTRIES))
		return FAIL(run, "Cannot create index on %s of column %.*s with non-map type",
			    part_name(part), STR_ARG(c->name));
	if (c->type->kind == CQL_TYPE_UDT && cql_type_is_multicell(c->type))
		return FAIL(run, "Cannot create index on non-frozen UDT column %.*s",
			    STR_ARG(c->name));
	return STATUS_OK;
}

static enum index_typed_part
part_of(enum cql_index_part part, const struct cql_type *type)
{
	if (!cql_type_is_multicell(type))
		return INDEX_TYPED_COLUMN;
	if (part == CQL_INDEX_ENTRIES)
		return INDEX_TYPED_ENTRIES;
	return part == CQL_INDEX_KEYS || type->kind == CQL_TYPE_SET ? INDEX_TYPED_KEYS
								    : INDEX_TYPED_VALUES;
}

/* The column that the target is, or that its path begins at. */
static enum status
column_of_target(struct creating *c, const struct cql_index_target *target,
		 const struct schema_column **ret)
{
	struct str name = target->column;

	for (const struct cql_term *t = target->term; t; t = t->args[0]) {
		if (t->kind == CQL_TERM_COLUMN) {
			name = t->text;
			break;
		}
		if (t->kind != CQL_TERM_JSON && t->kind != CQL_TERM_JSON_TEXT)
			return FAIL(c->run, "A path into jsonb begins at a column");
	}
	*ret = schema_column_find(c->t, name);
	return *ret ? STATUS_OK : FAIL(c->run, "Column '%.*s' doesn't exist", STR_ARG(name));
}

/* The steps of a path, which are constants. */
static enum status
take_path(struct creating *c, const struct cql_term *term, const struct schema_column *column,
	  struct table_index_column *ret)
{
	bool is_text = term->kind == CQL_TERM_JSON_TEXT;
	const struct cql_type *type;
	const struct cql_term **path;
	struct json_path found;
	size_t count = 0, at;

	for (const struct cql_term *t = term; t->kind != CQL_TERM_COLUMN; t = t->args[0])
		count++;
	path = arena_alloc(c->run->r->arena, (count + 1) * sizeof(struct cql_term *));
	if (!path)
		return STATUS_LIMIT;
	at = count;
	for (const struct cql_term *t = term; t->kind != CQL_TERM_COLUMN; t = t->args[0])
		path[--at] = t->args[1];
	if (c->run->statement->marker_count)
		return FAIL(c->run, "Bind variables are not allowed in CREATE INDEX");
	TRY(json_path_compile(c->run, column, path, count, is_text, &found, &type));
	TRY(json_path_compute(c->run, &found));
	ret->part = is_text ? INDEX_TYPED_JSON_TEXT : INDEX_TYPED_JSON;
	ret->steps = found.keys;
	ret->step_count = count;
	return STATUS_OK;
}

static enum status
take_target(struct creating *c, size_t at)
{
	const struct cql_index_target *target = &c->s->targets[at];
	const struct schema_table *t = c->t;
	const struct schema_column *column;

	TRY(column_of_target(c, target, &column));
	TRY(check_duration(c->run, column->type));
	if (column->kind == SCHEMA_PARTITION && t->partition_count == 1)
		return FAIL(c->run,
			    "Cannot create secondary index on the only partition key column %.*s",
			    STR_ARG(column->name));
	TRY(check_part(c->run, target, column));
	if (!at)
		c->first = column;
	c->columns[at] = (struct table_index_column){
		.column = column->stored->id,
		.part = part_of(target->part, column->type),
	};
	return target->term ? take_path(c, target->term, column, &c->columns[at]) : STATUS_OK;
}

/* WITH CLUSTERING ORDER BY: of the columns behind the first. */
static enum status
take_orders(struct creating *c)
{
	for (size_t i = 0; i < c->s->order_count; i++) {
		const struct cql_order *order = &c->s->clustering_order[i];
		size_t at = 0;

		while (at < c->s->target_count && !str_eq(c->s->targets[at].column, order->column))
			at++;
		if (order->term || at == c->s->target_count)
			return FAIL(c->run, "Only columns of the index can have an order in it");
		c->columns[at].descending = order->descending;
	}
	return STATUS_OK;
}

/* INCLUDE: what can be included the table says. */
static enum status
take_includes(struct creating *c)
{
	uint64_t *ids = arena_alloc(c->run->r->arena, (c->s->include_count + 1) * sizeof(*ids));

	if (!ids)
		return STATUS_LIMIT;
	for (size_t i = 0; i < c->s->include_count; i++) {
		const struct schema_column *column = schema_column_find(c->t, c->s->include[i]);

		if (!column)
			return FAIL(c->run, "Column '%.*s' doesn't exist",
				    STR_ARG(c->s->include[i]));
		ids[i] = column->stored->id;
	}
	c->terms.carried = ids;
	c->terms.carried_count = c->s->include_count;
	return STATUS_OK;
}

/* ---- WHERE ---- */

static bool
operator_of(enum cql_operator op, enum index_typed_operator *ret)
{
	static const struct {
		enum cql_operator from;
		enum index_typed_operator to;
	} operators[] = {
		{ CQL_OP_EQ, INDEX_TYPED_EQ },
		{ CQL_OP_NE, INDEX_TYPED_NE },
		{ CQL_OP_LT, INDEX_TYPED_LT },
		{ CQL_OP_LE, INDEX_TYPED_LE },
		{ CQL_OP_GT, INDEX_TYPED_GT },
		{ CQL_OP_GE, INDEX_TYPED_GE },
		{ CQL_OP_IS_NOT_NULL, INDEX_TYPED_NOT_NULL },
	};

	for (size_t i = 0; i < sizeof(operators) / sizeof(operators[0]); i++) {
		*ret = operators[i].to;
		if (operators[i].from == op)
			return true;
	}
	return false;
}

/* The constant that a column is compared with, as its cells have it. */
static enum status
take_constant(struct creating *c, const struct schema_column *column, const struct cql_term *term,
	      struct doc_scalar *ret)
{
	struct run *run = c->run;
	struct cql_expr *expr;
	struct cql_value v;

	TRY(run_compile(run, term, column->type, column->name, &expr));
	TRY(run_value(run, expr, &v));
	if (v.presence != CQL_SET)
		return FAIL(run, "Unsupported null value for column %.*s", STR_ARG(column->name));
	if (column->kind <= SCHEMA_CLUSTERING)
		return value_to_key(run->q, column->type, v.bytes, ret);
	return cql_value_to_scalar(run->q, column->type, v.bytes, ret);
}

static enum status
take_condition(struct creating *c, const struct cql_relation *r,
	       struct index_typed_condition *condition)
{
	const struct schema_column *column = r->left == CQL_LEFT_COLUMN
						     ? schema_column_find(c->t, r->columns[0])
						     : NULL;

	if (r->left == CQL_LEFT_COLUMN && !column)
		return FAIL(c->run, "Column '%.*s' doesn't exist", STR_ARG(r->columns[0]));
	if (!column || !operator_of(r->op, &condition->op) ||
	    (column->type->kind >= CQL_NATIVE_COUNT && r->op != CQL_OP_IS_NOT_NULL))
		return FAIL(c->run, "Rows of an index are chosen by comparing columns of native "
				    "types with constants");
	if (c->run->statement->marker_count)
		return FAIL(c->run, "Bind variables are not allowed in CREATE INDEX");
	condition->column = column->stored->id;
	condition->value.kind = DOC_NULL;
	if (r->op == CQL_OP_IS_NOT_NULL)
		return STATUS_OK;
	return take_constant(c, column, r->values[0], &condition->value);
}

/* The conditions, and their text for DESCRIBE. */
static enum status
take_where(struct creating *c)
{
	const struct cql_relations *where = &c->s->where;
	AUTO(buf_release) struct buf text = cql_buf(c->run->q, CQL_STATEMENT_BYTES);

	c->conditions = arena_zalloc(c->run->r->arena, (where->count + 1) * sizeof(*c->conditions));
	if (!c->conditions)
		return STATUS_LIMIT;
	for (size_t i = 0; i < where->count; i++) {
		TRY(take_condition(c, &where->list[i], &c->conditions[i]));
		if (i)
			buf_append_cstr(&text, " AND ");
		cql_relation_print(&text, &where->list[i]);
	}
	c->terms.conditions = c->conditions;
	c->terms.condition_count = where->count;
	return buf_copy(&text, c->run->r->arena, &c->terms.spec);
}

static enum status
check_statement(struct run *run, const struct cql_create_index *s)
{
	if (s->custom && !s->using_class.ptr)
		return FAIL(run, "CUSTOM index requires specifying the index class");
	if (!s->custom && s->using_class.ptr)
		return FAIL(run, "Cannot specify index class for a non-CUSTOM index");
	if (s->custom)
		return FAIL(run, "Unable to find custom indexer class '%.*s'",
			    STR_ARG(s->using_class));
	if (!s->target_count)
		return FAIL(run, "Only CUSTOM indexes can be created without specifying a target "
				 "column");
	if (s->target_count > TABLE_INDEX_COLUMNS)
		return FAIL(run, "An index has at most %d columns (TABLE_INDEX_COLUMNS)",
			    TABLE_INDEX_COLUMNS);
	if (s->name.len > TABLE_NAME_BYTES)
		return FAIL(run,
			    "Index name '%.*s' is longer than %d characters (TABLE_NAME_BYTES)",
			    STR_ARG(s->name), TABLE_NAME_BYTES);
	return STATUS_OK;
}

/* ---- Names ---- */

/* The table of the keyspace that has an index of that name; NULL: none. */
static const struct schema_table *
table_of_index(const struct schema_all *all, struct str name, const struct table_index **ret)
{
	const struct schema_keyspace *k = all->count ? &all->keyspaces[0] : NULL;

	for (size_t i = 0; k && i < k->table_count; i++) {
		*ret = table_index_named(k->tables[i]->db, name);
		if (*ret)
			return k->tables[i];
	}
	return NULL;
}

/* table_column_idx, with a number behind it if there is one already. */
static enum status
name_make(struct creating *c, const struct schema_all *all)
{
	AUTO(buf_release) struct buf name = BUF_SHORT(NAME_BYTES);
	const struct table_index *found;
	struct str column = c->first->name;
	size_t len;

	buf_append_str(&name, c->t->name);
	if (c->s->target_count == 1)
		buf_append_byte(&name, '_');
	for (size_t i = 0; c->s->target_count == 1 && i < column.len; i++) {
		char b = column.ptr[i];

		if ((b >= 'a' && b <= 'z') || (b >= 'A' && b <= 'Z') || (b >= '0' && b <= '9') ||
		    b == '_')
			buf_append_byte(&name, (uint8_t)b);
	}
	buf_append_cstr(&name, "_idx");
	len = name.len;
	for (unsigned i = 1;
	     buf_status(&name) == STATUS_OK && table_of_index(all, buf_str(&name), &found); i++) {
		name.len = len;
		buf_printf(&name, "_%u", i);
	}
	return buf_copy(&name, c->run->r->arena, &c->terms.name);
}

/* ---- CREATE ---- */

static bool
is_same(const struct table_index *a, const struct table_index *b)
{
	if (!str_eq(a->spec, b->spec) || a->column_count != b->column_count ||
	    a->carried_count != b->carried_count || a->is_unique != b->is_unique)
		return false;
	for (size_t i = 0; i < a->carried_count; i++)
		if (a->carried[i] != b->carried[i])
			return false;
	for (size_t i = 0; i < a->column_count; i++) {
		const struct table_index_column *x = &a->columns[i], *y = &b->columns[i];
		const struct index_typed_origin of = { x->column, x->part, x->steps,
						       x->step_count };
		const struct index_typed_origin other = { y->column, y->part, y->steps,
							  y->step_count };

		if (!index_typed_same_origin(&of, &other) || x->descending != y->descending)
			return false;
	}
	return true;
}

/* An index that differs in nothing but its name; NULL: there is none. */
static const struct table_index *
find_same(const struct creating *c)
{
	size_t count;
	const struct table_index *indexes = table_indexes_of(c->t->db, &count);

	for (size_t i = 0; i < count; i++)
		if (is_same(&indexes[i], &c->terms))
			return &indexes[i];
	return NULL;
}

/* Says what is there already, or gives the index its name. `*ret_there`: nothing is to be done. */
static enum status
check_others(struct creating *c, const struct schema_all *all, bool *ret_there)
{
	const struct table_index *found;

	*ret_there = c->s->name.ptr && table_of_index(all, c->s->name, &found);
	if (*ret_there && !c->s->if_not_exists)
		return FAIL(c->run, "Index '%.*s' already exists", STR_ARG(c->s->name));
	if (*ret_there)
		return STATUS_OK;
	c->terms.name = c->s->name;
	if (!c->s->name.ptr)
		TRY(name_make(c, all));
	found = find_same(c);
	*ret_there = found && c->s->if_not_exists;
	if (found && !*ret_there)
		return FAIL(c->run, "Index %.*s is a duplicate of existing index %.*s",
			    STR_ARG(c->terms.name), STR_ARG(found->name));
	return STATUS_OK;
}

static enum status
take_terms(struct creating *c)
{
	c->columns = arena_zalloc(c->run->r->arena, c->s->target_count * sizeof(*c->columns));
	if (!c->columns)
		return STATUS_LIMIT;
	for (size_t i = 0; i < c->s->target_count; i++)
		TRY(take_target(c, i));
	TRY(take_orders(c));
	TRY(take_includes(c));
	TRY(take_where(c));
	c->terms.is_unique = c->s->unique;
	c->terms.columns = c->columns;
	c->terms.column_count = c->s->target_count;
	return STATUS_OK;
}

static enum status
create_on(struct run *run, const struct schema_table *t, struct ddl_outcome *ret)
{
	struct creating c = { .run = run, .s = &run->statement->create_index, .t = t };
	struct schema_all all;
	struct timed timed;
	uint64_t number;
	enum status status;
	bool there;

	if (t->counters)
		return FAIL(run, "Secondary indexes on counter tables aren't supported");
	TRY(take_terms(&c));
	TRY(schema_read(run->q, &run->types, t->keyspace, &all));
	status = check_others(&c, &all, &there);
	schema_close(&all);
	TRY(status);
	if (there)
		return ddl_nothing(run);
	timed_init(&timed, run->tx, t->db, NULL, &run->r->err);
	TRY(table_index_create(&timed, &c.terms, &number));
	TRY(ddl_done(run, ret, "UPDATED", "TABLE", t->keyspace, t->name));
	ret->index = number;
	return ddl_table_name(run, t->keyspace, t->name, &ret->table);
}

enum status
ddl_create_index(struct run *run, struct ddl_outcome *ret)
{
	const struct cql_create_index *s = &run->statement->create_index;
	struct schema_table *t;
	struct str keyspace;
	enum status status;

	TRY(ddl_keyspace(run, GRANT_ALTER, &s->table, &keyspace));
	TRY(check_statement(run, s));
	/* Without a cache: what is changed is what the store has now. */
	status = schema_table_open(run->q, &run->types, NULL, keyspace, s->table.name, &t);
	if (status == STATUS_NOT_FOUND)
		return FAIL(run, "Table '%.*s.%.*s' doesn't exist", STR_ARG(keyspace),
			    STR_ARG(s->table.name));
	TRY(status);
	status = create_on(run, t, ret);
	/* Its columns were read from texts of the request. */
	schema_table_close(t);
	return status;
}

/* ---- DROP ---- */

static enum status
drop_of(struct run *run, const struct schema_table *t, const struct table_index *index,
	struct ddl_outcome *ret)
{
	struct timed timed;

	timed_init(&timed, run->tx, t->db, NULL, &run->r->err);
	TRY(request_allow(run->r, GRANT_ALTER, t->keyspace, t->name));
	TRY(table_index_drop(&timed, index));
	return ddl_done(run, ret, "UPDATED", "TABLE", t->keyspace, t->name);
}

enum status
ddl_drop_index(struct run *run, struct ddl_outcome *ret)
{
	const struct cql_drop *s = &run->statement->drop;
	const struct table_index *index;
	const struct schema_table *t;
	struct schema_all all;
	struct str keyspace;
	enum status status;

	TRY(run_keyspace_of(run, s->name.keyspace, &keyspace));
	run->r->keyspace = keyspace;
	if (schema_keyspace_is_system(keyspace))
		return request_fail(run->r, CQL_CODE_UNAUTHORIZED,
				    "%.*s keyspace is not user-modifiable.", STR_ARG(keyspace));
	TRY(schema_read(run->q, &run->types, keyspace, &all));
	t = table_of_index(&all, s->name.name, &index);
	if (t)
		status = drop_of(run, t, index, ret);
	else if (s->if_exists)
		status = ddl_nothing(run);
	else
		status = FAIL(run, "Index '%.*s.%.*s' doesn't exist", STR_ARG(keyspace),
			      STR_ARG(s->name.name));
	schema_close(&all);
	return status;
}
