/* INSERT, UPDATE and DELETE as trees with types. */
#include "cql/json.h"
#include "door/cql/run/modify.h"
#include "door/cql/schema/options.h"
#include "loop/sort.h"

#define NOT_ALL_OF_KEY                                                                             \
	"DELETE statements must restrict all PRIMARY KEY columns with equality relations in "      \
	"order to delete non static columns"

enum {
	OPERATION_SHOWN_BYTES = 4096,
};

static const char *
verb(const struct modify *m)
{
	return m->kind == CQL_DELETE ? "DELETE" : m->kind == CQL_UPDATE ? "UPDATE" : "INSERT";
}

static enum status
fail_name(struct run *run, const char *before, struct str name, const char *after)
{
	return request_fail(run->r, CQL_CODE_INVALID, "%s%.*s%s", before, STR_ARG(name), after);
}

static const struct cql_if *
condition_of(const struct cql_statement *s)
{
	switch ((int)s->kind) {
	case CQL_INSERT:
		return &s->insert.condition;
	case CQL_UPDATE:
		return &s->update.condition;
	default:
		return &s->remove.condition;
	}
}

static const struct cql_using *
using_of(const struct cql_statement *s)
{
	switch ((int)s->kind) {
	case CQL_INSERT:
		return &s->insert.using;
	case CQL_UPDATE:
		return &s->update.using;
	default:
		return &s->remove.using;
	}
}

bool
modify_is_conditional(const struct cql_statement *s)
{
	const struct cql_if *c;

	if (s->kind != CQL_INSERT && s->kind != CQL_UPDATE && s->kind != CQL_DELETE)
		return false;
	c = condition_of(s);
	return c->exists || c->not_exists || c->conditions.count > 0;
}

static enum status
receiver_name(struct run *run, const char *what, struct str column, struct str *ret)
{
	*ret = arena_printf(run->r->arena, "%s(%.*s)", what, STR_ARG(column));
	return ret->ptr ? STATUS_OK : STATUS_LIMIT;
}

/* ---- Changes ---- */

/* "Invalid operation (a = a + 1) for non counter column a". */
static enum status
fail_operation(struct run *run, const struct cql_assignment *a, const char *what)
{
	AUTO(buf_release) struct buf shown = BUF_SHORT(OPERATION_SHOWN_BYTES);
	struct str value = cql_term_text(run->q, a->value);

	buf_append_str(&shown, a->column);
	if (a->kind == CQL_ASSIGN_FIELD)
		buf_printf(&shown, ".%.*s", STR_ARG(a->field));
	if (a->kind == CQL_ASSIGN_ELEMENT)
		buf_printf(&shown, "[%.*s]", STR_ARG(cql_term_text(run->q, a->key)));
	buf_append_cstr(&shown, " = ");
	if (a->kind == CQL_ASSIGN_ADD || a->kind == CQL_ASSIGN_SUBTRACT)
		buf_printf(&shown, "%.*s %c ", STR_ARG(a->column),
			   a->kind == CQL_ASSIGN_ADD ? '+' : '-');
	buf_append_str(&shown, value);
	if (a->kind == CQL_ASSIGN_PREPEND)
		buf_printf(&shown, " + %.*s", STR_ARG(a->column));
	return request_fail(run->r, CQL_CODE_INVALID, "Invalid operation (%.*s) for %s %.*s",
			    STR_ARG(buf_str(&shown)), what, STR_ARG(a->column));
}

/* The number of a field; without `a` it is for a deletion. */
static enum status
field_find(struct run *run, const struct cql_assignment *a, const struct schema_column *c,
	   struct str field, size_t *ret)
{
	if (c->type->kind != CQL_TYPE_UDT)
		return a ? fail_operation(run, a, "non-UDT column")
			 : fail_name(run, "Invalid deletion operation for non-UDT column ", c->name,
				     "");
	if (!cql_type_is_multicell(c->type))
		return a ? fail_operation(run, a, "frozen UDT column")
			 : fail_name(run, "Frozen UDT column ", c->name,
				     " does not support field deletion");
	for (size_t i = 0; i < c->type->count; i++) {
		if (str_eq(c->type->fields[i], field)) {
			*ret = i;
			return STATUS_OK;
		}
	}
	return request_fail(run->r, CQL_CODE_INVALID,
			    "UDT column %.*s does not have a field named %.*s", STR_ARG(c->name),
			    STR_ARG(field));
}

/* The key of an element of a map or a list. */
static enum status
compile_key(struct run *run, const struct cql_assignment *a, struct modify_change *change,
	    const struct cql_term *key)
{
	const struct schema_column *c = change->column;
	struct str name;

	if (!cql_type_is_collection(c->type))
		return a ? fail_operation(run, a, "non collection column")
			 : fail_name(run, "Invalid deletion operation for non collection column ",
				     c->name, "");
	if (!cql_type_is_multicell(c->type))
		return a ? fail_operation(run, a, "frozen collection column")
			 : fail_name(run,
				     "Invalid deletion operation for frozen collection column ",
				     c->name, "");
	if (c->type->kind == CQL_TYPE_LIST) {
		TRY(receiver_name(run, "idx", c->name, &name));
		return run_compile(run, key, CQL_NATIVE(INT), name, &change->key);
	}
	TRY(receiver_name(run, c->type->kind == CQL_TYPE_SET ? "value" : "key", c->name, &name));
	return run_compile(run, key, c->type->args[0], name, &change->key);
}

/* `c = c - value` of a map takes a set of keys. */
static enum status
subtrahend_type(struct run *run, const struct schema_column *c, const struct cql_type **ret)
{
	const struct cql_type *args[1];

	*ret = c->type;
	if (c->type->kind != CQL_TYPE_MAP)
		return STATUS_OK;
	args[0] = c->type->args[0];
	*ret = cql_type_of(run->q, CQL_TYPE_SET, false, args, 1);
	return *ret ? STATUS_OK : STATUS_LIMIT;
}

static enum status
check_operation(struct run *run, const struct schema_column *c, const struct cql_assignment *a)
{
	bool counter = c->type->kind == CQL_TYPE_COUNTER;
	enum cql_assign_kind kind = a->kind;

	if (kind == CQL_ASSIGN_SET && counter)
		return fail_name(run, "Cannot set the value of counter column ", c->name,
				 " (counters can only be incremented/decremented, not set)");
	if (kind == CQL_ASSIGN_SET || counter)
		return kind == CQL_ASSIGN_PREPEND ? fail_operation(run, a, "counter column")
						  : STATUS_OK;
	if (kind != CQL_ASSIGN_ADD && kind != CQL_ASSIGN_SUBTRACT && kind != CQL_ASSIGN_PREPEND)
		return STATUS_OK;
	if (c->type->kind == CQL_TYPE_TUPLE)
		return fail_operation(run, a, "tuple column");
	if (!cql_type_is_collection(c->type))
		return fail_operation(run, a, "non counter column");
	if (!cql_type_is_multicell(c->type))
		return fail_operation(run, a, "frozen collection column");
	if (kind == CQL_ASSIGN_PREPEND && c->type->kind != CQL_TYPE_LIST)
		return fail_operation(run, a, "non list column");
	return STATUS_OK;
}

static enum status
compile_assignment(struct run *run, const struct cql_assignment *a, struct modify_change *change)
{
	const struct schema_column *c;
	const struct cql_type *type;
	struct str name;

	*change = (struct modify_change){ .kind = a->kind };
	TRY(run_column(run, a->column, &c));
	change->column = c;
	if (c->kind <= SCHEMA_CLUSTERING)
		return fail_name(run, "PRIMARY KEY part ", c->name, " found in SET part");
	TRY(check_operation(run, c, a));
	type = c->type;
	name = c->name;
	switch (a->kind) {
	case CQL_ASSIGN_SET:
	case CQL_ASSIGN_ADD:
	case CQL_ASSIGN_PREPEND:
		break;
	case CQL_ASSIGN_SUBTRACT:
		TRY(subtrahend_type(run, c, &type));
		break;
	case CQL_ASSIGN_ELEMENT:
		if (c->type->kind == CQL_TYPE_SET)
			return fail_operation(run, a, "set column");
		TRY(compile_key(run, a, change, a->key));
		type = c->type->args[c->type->kind == CQL_TYPE_MAP];
		TRY(receiver_name(run, "value", c->name, &name));
		break;
	case CQL_ASSIGN_FIELD:
		TRY(field_find(run, a, c, a->field, &change->field));
		type = c->type->args[change->field];
		name = a->field;
		break;
	case CQL_ASSIGN_JSON:
		TRY(json_path_compile(run, c, a->path, a->path_count, false, &change->path, &type));
		break;
	}
	return run_compile(run, a->value, type, name, &change->value);
}

static enum status
compile_deletion(struct run *run, const struct cql_deletion *d, struct modify_change *change)
{
	const struct schema_column *c;

	*change = (struct modify_change){ .kind = CQL_ASSIGN_SET };
	TRY(run_column(run, d->column, &c));
	change->column = c;
	if (c->kind <= SCHEMA_CLUSTERING)
		return fail_name(run, "Invalid identifier ", c->name,
				 " for deletion (should not be a PRIMARY KEY part)");
	if (d->field.ptr) {
		change->kind = CQL_ASSIGN_FIELD;
		return field_find(run, NULL, c, d->field, &change->field);
	}
	if (!d->key)
		return STATUS_OK;
	change->kind = CQL_ASSIGN_ELEMENT;
	return compile_key(run, NULL, change, d->key);
}

/* ---- INSERT ---- */

static enum status
insert_column(struct modify *m, const struct schema_column *c, const struct cql_term *term)
{
	struct run *run = m->run;
	size_t at = schema_column_at(run->table, c);
	struct cql_expr *e;

	if (c->type->kind == CQL_TYPE_COUNTER)
		return request_fail(run->r, CQL_CODE_INVALID,
				    "INSERT statements are not allowed on counter tables, use "
				    "UPDATE instead");
	TRY(run_compile(run, term, c->type, c->name, &e));
	if (c->kind <= SCHEMA_CLUSTERING) {
		m->key[at] = e;
		return STATUS_OK;
	}
	m->changes[m->change_count++] = (struct modify_change){ .kind = CQL_ASSIGN_SET,
								.column = c,
								.value = e };
	return STATUS_OK;
}

static enum status
insert_columns(struct modify *m, const struct cql_insert *s)
{
	struct run *run = m->run;
	const struct schema_column *c;
	bool *seen = arena_zalloc(run->r->arena, run->table->count + 1);

	if (!seen)
		return STATUS_LIMIT;
	for (size_t i = 0; i < s->count; i++) {
		TRY(run_column(run, s->columns[i], &c));
		if (seen[schema_column_at(run->table, c)])
			return request_fail(run->r, CQL_CODE_INVALID,
					    "The column names contains duplicates");
		seen[schema_column_at(run->table, c)] = true;
		TRY(insert_column(m, c, s->values[i]));
	}
	return STATUS_OK;
}

/*
 * In a compact table the last clustering columns may be missing, but not all of them: they are
 * empty then. Its only column may not be missing.
 */
static enum status
check_compact_key(struct modify *m, bool regulars)
{
	const struct schema_table *t = m->run->table;
	size_t missing = t->key_count; /* the first one */

	for (size_t i = t->partition_count; i < t->key_count; i++) {
		if (!m->key[i])
			missing = missing < i ? missing : i;
		else if (missing < i)
			return request_fail(
				m->run->r, CQL_CODE_INVALID,
				"PRIMARY KEY column \"%.*s\" cannot be restricted as preceding "
				"column \"%.*s\" is not restricted",
				STR_ARG(t->columns[i].name), STR_ARG(t->columns[missing].name));
	}
	if (missing == t->partition_count && missing < t->key_count)
		return fail_name(
			m->run, "Some clustering keys are missing: ", t->columns[missing].name, "");
	if (t->key_count > t->partition_count && t->count > t->key_count && !regulars)
		return fail_name(m->run, "Column ", t->columns[t->key_count].name,
				 " is mandatory for this COMPACT STORAGE table");
	return STATUS_OK;
}

/* Which parts of the key are missing; those of the clustering key may be where only statics are. */
static enum status
check_insert_key(struct modify *m)
{
	struct run *run = m->run;
	const struct schema_table *t = run->table;
	bool statics = false, regulars = false, clustering = false;

	for (size_t i = 0; i < m->change_count; i++) {
		statics |= m->changes[i].column->kind == SCHEMA_STATIC;
		regulars |= m->changes[i].column->kind == SCHEMA_REGULAR;
	}
	for (size_t i = 0; i < t->partition_count; i++)
		if (!m->key[i])
			return fail_name(run, "Some partition key parts are missing: ",
					 t->columns[i].name, "");
	for (size_t i = t->partition_count; i < t->key_count; i++)
		clustering |= m->key[i] != NULL;
	m->of_statics = statics && !regulars && !clustering;
	if (t->compact)
		return check_compact_key(m, regulars);
	for (size_t i = t->partition_count; i < t->key_count && !m->of_statics; i++)
		if (!m->key[i])
			return fail_name(
				run, "Some clustering keys are missing: ", t->columns[i].name, "");
	return STATUS_OK;
}

static enum status
compile_insert(struct modify *m, const struct cql_insert *s)
{
	struct run *run = m->run;
	size_t most = run->table->count + s->count + 1;

	m->key = arena_zalloc(run->r->arena, most * sizeof(struct cql_expr *));
	m->changes = arena_alloc(run->r->arena, most * sizeof(*m->changes));
	if (!m->key || !m->changes)
		return STATUS_LIMIT;
	if (run->table->counters)
		return request_fail(run->r, CQL_CODE_INVALID,
				    "INSERT statements are not allowed on counter tables, use "
				    "UPDATE instead");
	if (s->json) {
		m->json_default_unset = s->default_unset;
		return run_compile(run, s->json, CQL_NATIVE(TEXT), STR("[json]"), &m->json);
	}
	TRY(insert_columns(m, s));
	return check_insert_key(m);
}

/* ---- WHERE of UPDATE and DELETE ---- */

static const struct where_term *
term_on(const struct modify *m, const struct schema_column *c)
{
	for (size_t i = 0; i < m->where.count; i++) {
		const struct where_term *t = &m->where.terms[i];

		for (size_t j = 0; j < t->column_count; j++)
			if (t->columns[j] == c)
				return t;
	}
	return NULL;
}

static bool
is_exact(const struct where_term *t)
{
	return t->relation->op == CQL_OP_EQ || t->relation->op == CQL_OP_IN;
}

static enum status
check_where_partition(struct modify *m)
{
	const struct schema_table *t = m->run->table;

	for (size_t i = 0; i < m->where.count; i++) {
		const struct where_term *term = &m->where.terms[i];

		if (term->relation->left == CQL_LEFT_TOKEN)
			return request_fail(
				m->run->r, CQL_CODE_INVALID,
				"The token function cannot be used in WHERE clauses for "
				"%s statements",
				verb(m));
		if (term->relation->op == CQL_OP_CONTAINS ||
		    term->relation->op == CQL_OP_CONTAINS_KEY)
			return request_fail(m->run->r, CQL_CODE_INVALID, "Cannot use %s with %.*s",
					    verb(m),
					    STR_ARG(cql_operator_text(term->relation->op)));
		if (term->columns[0]->kind > SCHEMA_CLUSTERING)
			return fail_name(m->run, "Non PRIMARY KEY columns found in where clause: ",
					 term->columns[0]->name, " ");
	}
	for (size_t i = 0; i < t->partition_count; i++) {
		const struct where_term *term = term_on(m, &t->columns[i]);

		if (!term)
			return fail_name(m->run, "Some partition key parts are missing: ",
					 t->columns[i].name, "");
		if (!is_exact(term))
			return request_fail(
				m->run->r, CQL_CODE_INVALID,
				"Only EQ and IN relation are supported on the partition "
				"key (unless you use the token() function) for %s "
				"statements",
				verb(m));
	}
	return STATUS_OK;
}

static enum status
check_where_clustering(struct modify *m)
{
	const struct schema_table *t = m->run->table;
	size_t exact = 0, restricted = 0;
	const struct schema_column *missing = NULL;

	for (size_t i = t->partition_count; i < t->key_count; i++) {
		const struct where_term *term = term_on(m, &t->columns[i]);

		restricted += term != NULL;
		exact += term && is_exact(term);
		if (!term && !missing)
			missing = &t->columns[i];
		if (term && !is_exact(term) && m->kind == CQL_UPDATE)
			return request_fail(
				m->run->r, CQL_CODE_INVALID,
				"Slice restrictions are not supported on the clustering "
				"columns in %s statements",
				verb(m));
	}
	if (m->of_statics) {
		if (!restricted)
			return STATUS_OK;
		return request_fail(m->run->r, CQL_CODE_INVALID,
				    "Invalid restrictions on clustering columns since the %s "
				    "statement modifies only static columns",
				    verb(m));
	}
	m->ranged = exact < t->key_count - t->partition_count;
	if (t->compact && m->kind == CQL_UPDATE && exact) {
		/* What is missing is empty, as in an INSERT; where_plan() tells of gaps. */
		m->ranged = false;
		return STATUS_OK;
	}
	if (!m->ranged)
		return STATUS_OK;
	if (m->kind == CQL_UPDATE || (missing && m->change_count && exact))
		return fail_name(m->run, "Some clustering keys are missing: ",
				 missing ? missing->name : STR(""), "");
	if (modify_is_conditional(m->run->statement))
		return request_fail(m->run->r, CQL_CODE_INVALID, NOT_ALL_OF_KEY);
	if (m->change_count)
		return request_fail(m->run->r, CQL_CODE_INVALID,
				    "Range deletions are not supported for specific columns");
	return STATUS_OK;
}

/* Whether only static columns are changed. */
static bool
changes_statics(const struct modify *m)
{
	for (size_t i = 0; i < m->change_count; i++)
		if (m->changes[i].column->kind != SCHEMA_STATIC)
			return false;
	return m->change_count > 0;
}

static enum status
compile_where(struct modify *m, const struct cql_relations *relations)
{
	const struct cql_if *c = m->condition;
	bool statics = changes_statics(m);

	/* Conditions on columns of a row want that row. */
	for (size_t i = 0; i < m->condition_count; i++)
		statics &= m->conditions[i].column->kind == SCHEMA_STATIC;
	m->of_statics = statics &&
			!(c->exists && relations->count > m->run->table->partition_count);
	TRY(where_compile(m->run, relations, &m->where));
	TRY(check_where_partition(m));
	return check_where_clustering(m);
}

/* ---- IF ---- */

/* What CONTAINS and CONTAINS KEY look for. */
static enum status
contained_operand(struct run *run, struct modify_condition *c, struct str *name)
{
	const struct cql_type *type = c->column->type;
	bool keys = c->relation->op == CQL_OP_CONTAINS_KEY;

	if (!cql_type_is_collection(type))
		return fail_name(run, "Cannot use CONTAINS on non-collection column ",
				 c->column->name, "");
	if (keys && type->kind != CQL_TYPE_MAP)
		return fail_name(run, "Cannot use CONTAINS KEY on non-map column ", c->column->name,
				 "");
	c->type = type->args[type->kind == CQL_TYPE_MAP && !keys];
	return receiver_name(run, keys ? "key" : "value", c->column->name, name);
}

static enum status
condition_operand(struct run *run, struct modify_condition *c, struct str *name)
{
	const struct cql_relation *r = c->relation;
	const struct cql_type *type = c->column->type;

	c->type = type;
	*name = c->column->name;
	if (r->left == CQL_LEFT_FIELD) {
		if (type->kind != CQL_TYPE_UDT)
			return fail_name(run, "Invalid field access for non-UDT column ",
					 c->column->name, "");
		for (c->field = 0; c->field < type->count; c->field++)
			if (str_eq(type->fields[c->field], r->field))
				break;
		if (c->field == type->count)
			return fail_name(run, "No field named ", r->field, " in the type");
		c->type = type->args[c->field];
		*name = r->field;
		return STATUS_OK;
	}
	if (r->left == CQL_LEFT_JSON)
		return json_path_compile(run, c->column, r->path, r->path_count, r->is_text,
					 &c->path, &c->type);
	if (r->op == CQL_OP_CONTAINS || r->op == CQL_OP_CONTAINS_KEY)
		return contained_operand(run, c, name);
	if (r->left != CQL_LEFT_ELEMENT)
		return STATUS_OK;
	if (type->kind == CQL_TYPE_LIST) {
		c->type = type->args[0];
		return run_compile(run, r->key, CQL_NATIVE(INT), STR("idx"), &c->key);
	}
	if (type->kind != CQL_TYPE_MAP)
		return fail_name(run, "Invalid element access syntax for non-collection column ",
				 c->column->name, "");
	c->type = type->args[1];
	return run_compile(run, r->key, type->args[0], STR("key"), &c->key);
}

static enum status
compile_condition(struct run *run, const struct cql_relation *r, struct modify_condition *c)
{
	const struct cql_type *type;
	struct str name;

	*c = (struct modify_condition){ .relation = r };
	if (r->left != CQL_LEFT_COLUMN && r->left != CQL_LEFT_ELEMENT &&
	    r->left != CQL_LEFT_FIELD && r->left != CQL_LEFT_JSON)
		return request_fail(run->r, CQL_CODE_INVALID, "Unsupported condition of IF");
	if (r->op == CQL_OP_LIKE || r->op == CQL_OP_NOT_IN || r->op == CQL_OP_IS_NOT_NULL)
		return request_fail(run->r, CQL_CODE_INVALID, "Unsupported operator of IF: %.*s",
				    STR_ARG(cql_operator_text(r->op)));
	TRY(run_column(run, r->columns[0], &c->column));
	if (c->column->kind <= SCHEMA_CLUSTERING)
		return fail_name(run, "PRIMARY KEY column '", c->column->name,
				 "' cannot have IF conditions");
	TRY(condition_operand(run, c, &name));
	if (c->type->kind == CQL_TYPE_DURATION && r->op != CQL_OP_EQ && r->op != CQL_OP_NE &&
	    r->op != CQL_OP_IN)
		return request_fail(run->r, CQL_CODE_INVALID,
				    "Slice conditions are not supported on durations");
	type = c->type;
	if (r->op == CQL_OP_IN && !r->is_list) {
		const struct cql_type *args[] = { c->type };

		type = cql_type_of(run->q, CQL_TYPE_LIST, true, args, 1);
		TRY(receiver_name(run, "in", name, &name));
		if (!type)
			return STATUS_LIMIT;
	}
	c->exprs = arena_alloc(run->r->arena, (r->value_count + 1) * sizeof(*c->exprs));
	if (!c->exprs)
		return STATUS_LIMIT;
	for (size_t i = 0; i < r->value_count; i++)
		TRY(run_compile(run, r->values[i], type, name, &c->exprs[i]));
	c->count = r->value_count;
	return STATUS_OK;
}

static int
compare_ids(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static enum status
find_wanted(struct modify *m)
{
	uint64_t *ids = arena_alloc(m->run->r->arena, (m->condition_count + 1) * sizeof(*ids));

	if (!ids)
		return STATUS_LIMIT;
	for (size_t i = 0; i < m->condition_count; i++)
		ids[i] = m->conditions[i].column->stored->id;
	m->wanted = (struct table_wanted){ .some = true, .ids = ids, .count = m->condition_count };
	return sort_items_by(ids, m->wanted.count, sizeof(*ids), compare_ids, m->run->r->arena);
}

static enum status
compile_conditions(struct modify *m)
{
	const struct cql_relations *all = &m->condition->conditions;

	m->conditions = arena_alloc(m->run->r->arena, (all->count + 1) * sizeof(*m->conditions));
	if (!m->conditions)
		return STATUS_LIMIT;
	if (m->run->table->counters && modify_is_conditional(m->run->statement))
		return request_fail(m->run->r, CQL_CODE_INVALID,
				    "Conditional updates are not supported on counter tables");
	if (modify_is_conditional(m->run->statement) && m->using->timestamp)
		return request_fail(m->run->r, CQL_CODE_INVALID,
				    "Cannot provide custom timestamp for conditional updates");
	for (size_t i = 0; i < all->count; i++)
		TRY(compile_condition(m->run, &all->list[i], &m->conditions[i]));
	m->condition_count = all->count;
	return find_wanted(m);
}

/* ---- All of it ---- */

/* What a BATCH says for all its statements; NULL: it is none. */
static const struct cql_using *
using_of_batch(const struct run *run)
{
	return run->outer && run->outer->kind == CQL_BATCH ? &run->outer->batch.using : NULL;
}

static bool
batch_is_conditional(const struct cql_batch *b)
{
	for (size_t i = 0; i < b->count; i++)
		if (modify_is_conditional(b->statements[i]))
			return true;
	return false;
}

/* The timestamp of the BATCH, which each of its statements has. */
static enum status
compile_batch_using(struct modify *m)
{
	const struct cql_using *using = using_of_batch(m->run);
	struct cql_request *r = m->run->r;

	if (!using)
		return STATUS_OK;
	if (using->ttl)
		return request_fail(r, CQL_CODE_INVALID,
				    "Global TTL on the BATCH statement is not supported.");
	if (!using->timestamp)
		return STATUS_OK;
	if (batch_is_conditional(&m->run->outer->batch))
		return request_fail(r, CQL_CODE_INVALID,
				    "Cannot provide custom timestamp for conditional BATCH");
	if (m->run->table->counters)
		return request_fail(r, CQL_CODE_INVALID,
				    "Cannot provide custom timestamp for counter BATCH");
	if (m->using->timestamp)
		return request_fail(
			r, CQL_CODE_INVALID,
			"Timestamp must be set either on BATCH or individual statements");
	return run_compile(m->run, using->timestamp, CQL_NATIVE(BIGINT), STR("[timestamp]"),
			   &m->timestamp);
}

static enum status
compile_using(struct modify *m)
{
	struct run *run = m->run;

	TRY(compile_batch_using(m));
	if (run->table->counters && m->using->timestamp)
		return request_fail(run->r, CQL_CODE_INVALID,
				    "Cannot provide custom timestamp for counter updates");
	if (run->table->counters && m->using->ttl)
		return request_fail(run->r, CQL_CODE_INVALID,
				    "Cannot provide custom TTL for counter updates");
	if (m->using->timestamp)
		TRY(run_compile(run, m->using->timestamp, CQL_NATIVE(BIGINT), STR("[timestamp]"),
				&m->timestamp));
	if (m->using->ttl)
		TRY(run_compile(run, m->using->ttl, CQL_NATIVE(INT), STR("[ttl]"), &m->ttl));
	return STATUS_OK;
}

static enum status
compile_update(struct modify *m, const struct cql_update *s)
{
	m->changes = arena_alloc(m->run->r->arena, (s->count + 1) * sizeof(*m->changes));
	if (!m->changes)
		return STATUS_LIMIT;
	for (size_t i = 0; i < s->count; i++)
		TRY(compile_assignment(m->run, &s->assignments[i], &m->changes[i]));
	m->change_count = s->count;
	TRY(compile_conditions(m));
	return compile_where(m, &s->where);
}

static enum status
compile_delete(struct modify *m, const struct cql_delete *s)
{
	m->changes = arena_alloc(m->run->r->arena, (s->count + 1) * sizeof(*m->changes));
	if (!m->changes)
		return STATUS_LIMIT;
	for (size_t i = 0; i < s->count; i++)
		TRY(compile_deletion(m->run, &s->what[i], &m->changes[i]));
	m->change_count = s->count;
	TRY(compile_conditions(m));
	return compile_where(m, &s->where);
}

enum status
modify_compile(struct modify *m, struct run *run)
{
	const struct cql_statement *s = run->statement;

	*m = (struct modify){
		.run = run, .kind = s->kind, .condition = condition_of(s), .using = using_of(s)
	};
	if (run->table->system)
		return request_fail(run->r, CQL_CODE_UNAUTHORIZED,
				    "system keyspace is not user-modifiable.");
	/* Markers are counted as they stand in the text, whatever is compiled first. */
	TRY(compile_using(m));
	switch ((int)s->kind) {
	case CQL_INSERT:
		TRY(compile_insert(m, &s->insert));
		return compile_conditions(m);
	case CQL_UPDATE:
		return compile_update(m, &s->update);
	default:
		return compile_delete(m, &s->remove);
	}
}

/* INSERT JSON finds out with its text which columns it changes: at most all of them. */
static size_t
changes_most(const struct modify *m)
{
	return m->json ? m->run->table->count : m->change_count;
}

enum status
modify_begin(struct modify *m, struct run *run)
{
	struct modify_condition *conditions;
	struct modify_change *changes;

	if (!run->compiled)
		return modify_compile(m, run);
	*m = *run->compiled->modify;
	m->run = run;
	/* These get values, as the terms of WHERE do. */
	changes = arena_alloc(run->r->arena, (changes_most(m) + 1) * sizeof(*changes));
	conditions = arena_alloc(run->r->arena, (m->condition_count + 1) * sizeof(*conditions));
	if (!changes || !conditions)
		return STATUS_LIMIT;
	memcpy(changes, m->changes, m->change_count * sizeof(*changes));
	memcpy(conditions, m->conditions, m->condition_count * sizeof(*conditions));
	m->changes = changes;
	m->conditions = conditions;
	return m->kind == CQL_INSERT ? STATUS_OK : where_copy(run, &m->where);
}

/* ---- Behind the values ---- */

static enum status
prepare_ttl(struct modify *m)
{
	struct cql_value v;
	int64_t ttl;

	m->expiry = (struct timed_expiry){ .kind = TIMED_EXPIRY_DEFAULT };
	if (!m->ttl)
		return STATUS_OK;
	TRY(run_value(m->run, m->ttl, &v));
	if (v.presence == CQL_UNSET)
		return STATUS_OK;
	ttl = v.presence == CQL_SET ? cql_int_read(v.bytes) : 0;
	if (ttl < 0)
		return request_fail(m->run->r, CQL_CODE_INVALID,
				    "A TTL must be greater or equal to 0, but was %lld",
				    (long long)ttl);
	if (ttl > MODIFY_TTL_MOST_S)
		return request_fail(m->run->r, CQL_CODE_INVALID,
				    "ttl is too large. requested (%lld) maximum (%d)",
				    (long long)ttl, MODIFY_TTL_MOST_S);
	m->expiry.kind = ttl ? TIMED_EXPIRY_AFTER : TIMED_EXPIRY_NEVER;
	m->expiry.ms = (uint64_t)ttl * 1000;
	return STATUS_OK;
}

/*
 * What the client says that orders the writes: by USING, or by the driver's timestamp if the table
 * honours these. Counters and statements with conditions have none.
 */
static enum status
prepare_timestamp(struct modify *m)
{
	const struct cql_request *r = m->run->r;
	struct cql_value v = CQL_VALUE_UNSET;

	if (m->timestamp)
		TRY(run_value(m->run, m->timestamp, &v));
	if (v.presence == CQL_NULL)
		return request_fail(m->run->r, CQL_CODE_INVALID, "Invalid null value of timestamp");
	m->stamp_is_said = v.presence == CQL_SET;
	m->has_stamp = m->stamp_is_said || (r->has_timestamp && !m->run->table->counters &&
					    !modify_is_conditional(m->run->statement) &&
					    options_honour_timestamps(m->run->table));
	m->stamp = m->stamp_is_said ? cql_int_read(v.bytes) : r->timestamp;
	return STATUS_OK;
}

static enum status
json_column(struct modify *m, const struct schema_column *c, struct str json, bool given)
{
	struct cql_value v = given ? CQL_VALUE_NULL : CQL_VALUE_UNSET;
	size_t at = schema_column_at(m->run->table, c);

	if (given && json.ptr)
		TRY(cql_json_read(m->run->q, c->type, json, &v));
	if (c->kind <= SCHEMA_CLUSTERING) {
		m->key_values[at] = v;
		return STATUS_OK;
	}
	m->changes[m->change_count++] = (struct modify_change){
		.kind = CQL_ASSIGN_SET, .column = c, .json = v, .is_json = true
	};
	return STATUS_OK;
}

/* INSERT JSON: what its text says of each column. */
static enum status
prepare_json(struct modify *m)
{
	struct run *run = m->run;
	const struct schema_table *t = run->table;
	struct cql_json_member *members;
	struct cql_value text;
	size_t count;

	TRY(run_value(run, m->json, &text));
	if (text.presence != CQL_SET)
		return request_fail(run->r, CQL_CODE_INVALID, "Got null for INSERT JSON values");
	if (str_eq(str_trim(text.bytes), STR("null")))
		return request_fail(run->r, CQL_CODE_INVALID, "Got null for INSERT JSON values");
	TRY(cql_json_members(run->q, text.bytes, &members, &count));
	for (size_t i = 0; i < count; i++)
		if (!schema_column_find(t, members[i].name))
			return cql_fail(run->q, CQL_E_JSON_UNKNOWN, members[i].name);
	for (size_t i = 0; i < t->count; i++) {
		const struct cql_json_member *found = NULL;

		for (size_t j = 0; j < count; j++)
			if (str_eq(members[j].name, t->columns[i].name))
				found = &members[j];
		TRY(json_column(m, &t->columns[i], found ? found->json : (struct str){ 0 },
				found || !m->json_default_unset));
	}
	return STATUS_OK;
}

/* The only clustering column of a compact table, which may not be empty. */
static bool
is_whole_name(const struct schema_table *t, size_t column)
{
	return t->compact && column == t->partition_count && t->key_count == column + 1;
}

static enum status
prepare_insert(struct modify *m)
{
	const struct schema_table *t = m->run->table;
	size_t count;

	m->key_values = arena_zalloc(m->run->r->arena, (t->count + 1) * sizeof(*m->key_values));
	if (!m->key_values)
		return STATUS_LIMIT;
	if (m->json)
		TRY(prepare_json(m));
	count = m->of_statics ? t->partition_count : t->key_count;
	for (size_t i = 0; i < count; i++) {
		if (!m->json && m->key[i])
			TRY(run_value(m->run, m->key[i], &m->key_values[i]));
		else if (!m->json)
			m->key_values[i] = CQL_VALUE(STR(""));
		if (m->key_values[i].presence == CQL_UNSET)
			return fail_name(m->run, "Invalid unset value for column ",
					 t->columns[i].name, "");
		if (m->key_values[i].presence == CQL_NULL)
			return fail_name(m->run, "Invalid null value in condition for column ",
					 t->columns[i].name, "");
		if (is_whole_name(t, i) && !m->key_values[i].bytes.len)
			return fail_name(m->run, "Invalid empty or null value for column ",
					 t->columns[i].name, "");
	}
	return STATUS_OK;
}

static bool
has_in(const struct modify *m, enum schema_kind kind)
{
	for (size_t i = 0; i < m->where.count; i++) {
		const struct where_term *t = &m->where.terms[i];

		if (t->relation->op == CQL_OP_IN && t->columns[0]->kind == kind)
			return true;
	}
	return false;
}

static enum status
check_conditional_plan(struct modify *m)
{
	if (!modify_is_conditional(m->run->statement) || m->kind == CQL_INSERT)
		return STATUS_OK;
	if (has_in(m, SCHEMA_CLUSTERING))
		return request_fail(m->run->r, CQL_CODE_INVALID,
				    "IN on the clustering key columns is not supported with "
				    "conditional %s",
				    m->kind == CQL_DELETE ? "deletions" : "updates");
	/* IN of no value names no row that a condition could be about. */
	if (m->plan.in_partition || m->plan.nothing)
		return request_fail(m->run->r, CQL_CODE_INVALID,
				    "IN on the partition key is not supported with conditional %s",
				    m->kind == CQL_DELETE ? "deletions" : "updates");
	if (m->ranged)
		return request_fail(m->run->r, CQL_CODE_INVALID, NOT_ALL_OF_KEY);
	return STATUS_OK;
}

enum status
modify_prepare(struct modify *m, struct timed *timed)
{
	m->timed = timed;
	TRY(prepare_timestamp(m));
	TRY(prepare_ttl(m));
	if (m->kind == CQL_INSERT)
		return prepare_insert(m);
	TRY(where_compute(m->run, &m->where));
	TRY(where_plan(m->run, &m->where, NULL, false, &m->plan));
	return check_conditional_plan(m);
}
