/* What a SELECT asks for. */
#include "door/cql/run/select.h"

#include "loop/sort.h"

#define MOMENT_MOST_MS (INT64_MAX / 2000)

/* ---- Selectors ---- */

/* SELECT *: every column. */
static enum status
compile_all(struct select *s)
{
	const struct schema_table *t = s->run->table;

	for (size_t i = 0; i < t->count; i++) {
		struct cql_term *term = arena_zalloc(s->run->r->arena, sizeof(*term));

		if (!term)
			return STATUS_LIMIT;
		term->kind = CQL_TERM_COLUMN;
		term->text = t->columns[i].name;
		TRY(cql_compile_selector(s->run->q, &s->run->scope, term, &s->exprs[i]));
		s->asked[i] = (struct result_column){ t->columns[i].name, t->columns[i].type };
	}
	s->count = t->count;
	return STATUS_OK;
}

/* The term that names the result: a CAST to the type that a column has already is that column. */
static const struct cql_term *
shown(const struct cql_term *term, const struct cql_expr *e)
{
	unsigned at;

	while (term->kind == CQL_TERM_CAST && cql_expr_is_column(e, &at))
		term = term->args[0];
	return term;
}

static enum status
compile_some(struct select *s)
{
	for (size_t i = 0; i < s->s->selector_count; i++) {
		const struct cql_selector *one = &s->s->selectors[i];

		TRY(cql_compile_selector(s->run->q, &s->run->scope, one->term, &s->exprs[i]));
		s->asked[i] = (struct result_column){
			.name = one->alias.ptr
					? one->alias
					: cql_term_text(s->run->q, shown(one->term, s->exprs[i])),
			.type = cql_expr_type(s->exprs[i]),
		};
	}
	s->count = s->s->selector_count;
	return STATUS_OK;
}

static enum status
compile_selectors(struct select *s)
{
	const struct schema_table *t = s->run->table;
	size_t most = s->s->selector_count ? s->s->selector_count : t->count;
	enum status status;

	s->exprs = arena_alloc(s->run->r->arena, (most + 1) * sizeof(struct cql_expr *));
	s->asked = arena_alloc(s->run->r->arena, (most + 1) * sizeof(*s->asked));
	if (!s->exprs || !s->asked)
		return STATUS_LIMIT;
	s->run->scope.allows_aggregates = true;
	status = s->s->selector_count ? compile_some(s) : compile_all(s);
	s->run->scope.allows_aggregates = false;
	TRY(status);
	s->groups = s->run->scope.aggregate_count > 0 || s->s->group_count > 0;
	s->result = (struct result_columns){
		.keyspace = t->keyspace, .table = t->name, .columns = s->asked, .count = s->count
	};
	if (s->s->json) {
		struct result_column *json = arena_alloc(s->run->r->arena, sizeof(*json));

		if (!json)
			return STATUS_LIMIT;
		*json = (struct result_column){ STR("[json]"), CQL_NATIVE(TEXT) };
		s->result.columns = json;
		s->result.count = 1;
	}
	return STATUS_OK;
}

/* DISTINCT is about partitions: of them it may ask for what they have once. */
static enum status
check_distinct(struct select *s)
{
	const struct schema_table *t = s->run->table;
	bool *seen;

	if (!s->s->distinct)
		return STATUS_OK;
	for (size_t i = 0; i < s->where.count; i++) {
		const struct where_term *term = &s->where.terms[i];

		if (term->columns[0]->kind == SCHEMA_CLUSTERING ||
		    term->columns[0]->kind == SCHEMA_REGULAR)
			return request_fail(s->run->r, CQL_CODE_INVALID,
					    "SELECT DISTINCT with WHERE clause only supports "
					    "restriction by partition key and/or static columns.");
	}
	seen = arena_zalloc(s->run->r->arena, t->count + 1);
	if (!seen)
		return STATUS_LIMIT;
	for (size_t i = 0; i < s->count; i++) {
		unsigned at;

		if (!cql_expr_is_column(s->exprs[i], &at))
			continue;
		seen[at] = true;
		if (t->columns[at].kind == SCHEMA_CLUSTERING ||
		    t->columns[at].kind == SCHEMA_REGULAR)
			return request_fail(s->run->r, CQL_CODE_INVALID,
					    "SELECT DISTINCT queries must only request partition "
					    "key columns and/or static columns (not %.*s)",
					    STR_ARG(t->columns[at].name));
	}
	for (size_t i = t->partition_count; i-- > 0;)
		if (!seen[i] && !s->groups)
			s->missing = &t->columns[i];
	return STATUS_OK;
}

/* ---- GROUP BY, ORDER BY ---- */

/* True if the column has one value in all rows, by the relations. */
static bool
is_fixed(const struct select *s, const struct schema_column *c)
{
	for (size_t i = 0; i < s->where.count; i++) {
		const struct where_term *t = &s->where.terms[i];
		const struct cql_relation *r = t->relation;

		if ((r->left != CQL_LEFT_COLUMN && r->left != CQL_LEFT_TUPLE) ||
		    (r->op != CQL_OP_EQ &&
		     !(r->op == CQL_OP_IN && r->is_list && r->value_count == 1)))
			continue;
		for (size_t j = 0; j < t->column_count; j++)
			if (t->columns[j] == c)
				return true;
	}
	return false;
}

static enum status
compile_group_by(struct select *s)
{
	const struct schema_table *t = s->run->table;
	size_t next = 0;

	s->group_by = arena_alloc(s->run->r->arena, (s->s->group_count + 1) * sizeof(*s->group_by));
	if (!s->group_by)
		return STATUS_LIMIT;
	for (size_t i = 0; i < s->s->group_count; i++) {
		const struct cql_term *term = s->s->group_by[i];
		const struct schema_column *c;
		size_t at;

		if (term->kind != CQL_TERM_COLUMN)
			return request_fail(s->run->r, CQL_CODE_INVALID,
					    "Group by is supported on columns alone");
		TRY(run_column(s->run, term->text, &c));
		at = schema_column_at(t, c);
		if (at >= t->key_count)
			return request_fail(
				s->run->r, CQL_CODE_INVALID,
				"Group by is currently only supported on the columns of "
				"the PRIMARY KEY, got %.*s",
				STR_ARG(c->name));
		if (s->s->distinct && c->kind == SCHEMA_CLUSTERING)
			return request_fail(s->run->r, CQL_CODE_INVALID,
					    "Grouping on clustering columns is not allowed for "
					    "SELECT DISTINCT queries");
		while (next < at && is_fixed(s, &t->columns[next]))
			next++;
		if (next != at)
			return request_fail(s->run->r, CQL_CODE_INVALID,
					    "Group by currently only support groups of columns "
					    "following their declared order in the PRIMARY KEY");
		s->group_by[s->group_count++] = c;
		next = at + 1;
	}
	if (s->group_count && next < t->partition_count)
		return request_fail(
			s->run->r, CQL_CODE_INVALID,
			"Group by is not supported on only a part of the partition key");
	return STATUS_OK;
}

/*
 * The last order that is said of a column counts, in the place of the first. False: an earlier one
 * stands there already.
 */
static bool
order_of(const struct cql_select *s, size_t at, bool *ret_descending)
{
	for (size_t i = 0; i < at; i++)
		if (str_eq(s->order_by[i].column, s->order_by[at].column))
			return false;
	*ret_descending = s->order_by[at].descending;
	for (size_t i = at + 1; i < s->order_count; i++)
		if (str_eq(s->order_by[i].column, s->order_by[at].column))
			*ret_descending = s->order_by[i].descending;
	return true;
}

static enum status
compile_order_by(struct select *s)
{
	const struct schema_table *t = s->run->table;
	size_t next = t->partition_count;
	bool any = false;

	s->order_by = arena_alloc(s->run->r->arena, (s->s->order_count + 1) * sizeof(*s->order_by));
	if (!s->order_by)
		return STATUS_LIMIT;
	for (size_t i = 0; i < s->s->order_count; i++) {
		const struct cql_order *o = &s->s->order_by[i];
		const struct schema_column *c;
		bool descending = o->descending;
		size_t at;

		if (o->term)
			return request_fail(s->run->r, CQL_CODE_INVALID,
					    "ORDER BY is supported on columns alone");
		if (!order_of(s->s, i, &descending))
			continue;
		TRY(run_column(s->run, o->column, &c));
		at = schema_column_at(t, c);
		if (c->kind != SCHEMA_CLUSTERING)
			return request_fail(s->run->r, CQL_CODE_INVALID,
					    "Order by is currently only supported on the clustered "
					    "columns of the PRIMARY KEY, got %.*s",
					    STR_ARG(c->name));
		while (next < at && is_fixed(s, &t->columns[next]))
			next++;
		if (next != at)
			return request_fail(s->run->r, CQL_CODE_INVALID,
					    "Order by currently only supports the ordering of "
					    "columns following their declared order in the PRIMARY "
					    "KEY");
		next = at + 1;
		if (any && s->reverse != (descending != c->descending))
			return request_fail(s->run->r, CQL_CODE_INVALID,
					    "Unsupported order by relation");
		s->reverse = descending != c->descending;
		any = true;
		s->order_by[s->order_count++] = c;
	}
	return STATUS_OK;
}

static enum status
note_selected(struct select *s)
{
	size_t bytes = s->run->table->count * sizeof(*s->selected);

	s->selected = arena_alloc(s->run->r->arena, bytes + 1);
	if (!s->selected)
		return STATUS_LIMIT;
	memcpy(s->selected, s->run->named, bytes);
	return STATUS_OK;
}

static enum status
compile_limits(struct select *s)
{
	struct run *run = s->run;

	if (s->groups && !s->s->group_count && s->s->per_partition_limit)
		return request_fail(run->r, CQL_CODE_INVALID,
				    "PER PARTITION LIMIT is not allowed with aggregate queries.");
	if (s->s->distinct && s->s->per_partition_limit)
		return request_fail(run->r, CQL_CODE_INVALID,
				    "PER PARTITION LIMIT is not allowed with SELECT DISTINCT "
				    "queries");
	if (s->s->per_partition_limit)
		TRY(run_compile(run, s->s->per_partition_limit, CQL_NATIVE(INT),
				STR("[per_partition_limit]"), &s->part_limit));
	if (s->s->limit)
		TRY(run_compile(run, s->s->limit, CQL_NATIVE(INT), STR("[limit]"), &s->limit));
	if (s->s->offset)
		TRY(run_compile(run, s->s->offset, CQL_NATIVE(INT), STR("[offset]"), &s->offset));
	if (s->s->as_of)
		TRY(run_compile(run, s->s->as_of, CQL_NATIVE(TIMESTAMP), STR("[as of]"),
				&s->as_of));
	return STATUS_OK;
}

static int
id_compare(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

/* Columns behind the key, by flags at their places. */
static enum status
wanted_make(struct select *s, const bool *flags, struct table_wanted *ret)
{
	const struct schema_table *t = s->run->table;
	uint64_t *ids = arena_alloc(s->run->r->arena, (t->count + 1) * sizeof(*ids));
	size_t count = 0;

	if (!ids)
		return STATUS_LIMIT;
	for (size_t i = t->key_count; i < t->count; i++)
		if (flags[i])
			ids[count++] = t->columns[i].stored->id;
	*ret = (struct table_wanted){ .some = count < t->count - t->key_count,
				      .ids = ids,
				      .count = count };
	return sort_items_by(ids, count, sizeof(*ids), id_compare, s->run->r->arena);
}

/* All that it computes with is compiled: other columns need not be read. */
static enum status
find_wanted(struct select *s)
{
	const struct schema_table *t = s->run->table;

	for (size_t i = t->key_count; i < t->count; i++)
		s->statics |= s->run->named[i] && t->columns[i].kind == SCHEMA_STATIC;
	return wanted_make(s, s->run->named, &s->wanted);
}

enum status
select_compile(struct select *s, struct run *run)
{
	*s = (struct select){ .run = run, .s = &run->statement->select };
	TRY(compile_selectors(s));
	TRY(note_selected(s));
	TRY(where_compile(run, &s->s->where, &s->where));
	TRY(check_distinct(s));
	TRY(compile_group_by(s));
	TRY(compile_order_by(s));
	TRY(compile_limits(s));
	return run->table->system ? STATUS_OK : find_wanted(s);
}

static bool
has_index(const struct schema_table *t)
{
	size_t count = 0;

	if (t->db)
		(void)table_indexes_of(t->db, &count);
	return count > 0;
}

enum status
select_check(struct select *s, bool goes_on)
{
	return where_check(s->run, &s->where,
			   s->s->allow_filtering || has_index(s->run->table) || goes_on);
}

enum status
select_begin(struct select *s, struct run *run)
{
	enum status status;

	if (run->compiled) {
		*s = *run->compiled->select;
		s->run = run;
		status = where_copy(run, &s->where);
	} else {
		status = select_compile(s, run);
	}
	s->rows = BUF_INIT_OF(CQL_REPLY_BYTES, run->r->out->part);
	if (run->spare_rows) {
		s->rows.ptr = run->spare_rows->ptr;
		s->rows.cap = run->spare_rows->cap;
		*run->spare_rows = (struct buf){ 0 };
	}
	return status;
}

/* ---- Behind the values ---- */

static enum status
compute_limit(struct select *s, const struct cql_expr *e, const char *name, uint64_t *ret)
{
	struct cql_value v;

	*ret = UINT64_MAX;
	if (!e)
		return STATUS_OK;
	TRY(run_value(s->run, e, &v));
	if (v.presence == CQL_UNSET)
		return STATUS_OK;
	if (v.presence == CQL_NULL)
		return request_fail(s->run->r, CQL_CODE_INVALID, "Invalid null value of %s", name);
	if (cql_int_read(v.bytes) <= 0)
		return request_fail(s->run->r, CQL_CODE_INVALID, "%s must be strictly positive",
				    name);
	*ret = (uint64_t)cql_int_read(v.bytes);
	return STATUS_OK;
}

static enum status
compute_offset(struct select *s)
{
	struct cql_value v = CQL_VALUE_UNSET;

	s->skip = 0;
	if (s->offset)
		TRY(run_value(s->run, s->offset, &v));
	if (v.presence == CQL_UNSET)
		return STATUS_OK;
	if (v.presence == CQL_NULL)
		return request_fail(s->run->r, CQL_CODE_INVALID, "Invalid null value of OFFSET");
	if (cql_int_read(v.bytes) < 0)
		return request_fail(s->run->r, CQL_CODE_INVALID, "OFFSET must not be negative");
	s->skip = (uint64_t)cql_int_read(v.bytes);
	return STATUS_OK;
}

static enum status
compute_as_of(struct select *s)
{
	struct cql_value v = CQL_VALUE_UNSET;
	int64_t ms;

	s->at_us = 0;
	if (s->as_of)
		TRY(run_value(s->run, s->as_of, &v));
	if (v.presence == CQL_UNSET)
		return STATUS_OK;
	if (v.presence == CQL_NULL || !v.bytes.len)
		return request_fail(s->run->r, CQL_CODE_INVALID, "Invalid null value of AS OF");
	if (s->run->table->system)
		return request_fail(s->run->r, CQL_CODE_INVALID, "the table %.*s.%.*s has no past",
				    STR_ARG(s->run->table->keyspace), STR_ARG(s->run->table->name));
	ms = cql_int_read(v.bytes);
	/* All of the millisecond. No table has a past from before 1970, or knows a later one. */
	ms = ms < 0 ? 0 : ms > MOMENT_MOST_MS ? MOMENT_MOST_MS : ms;
	s->at_us = (uint64_t)ms * 1000 + 999;
	return STATUS_OK;
}

static enum status
check_order(struct select *s)
{
	if (!s->order_count)
		return STATUS_OK;
	if (s->plan.index)
		return request_fail(s->run->r, CQL_CODE_INVALID,
				    "ORDER BY with 2ndary indexes is not supported.");
	if (!s->plan.by_partitions)
		return request_fail(s->run->r, CQL_CODE_INVALID,
				    "ORDER BY is only supported when the partition key is "
				    "restricted by an EQ or an IN.");
	if (s->plan.in_partition && s->most)
		return request_fail(
			s->run->r, CQL_CODE_INVALID,
			"Cannot page queries with both ORDER BY and a IN restriction on "
			"the partition key; you must either remove the ORDER BY or the "
			"IN and sort client side, or disable paging for this query");
	return STATUS_OK;
}

/*
 * Chooses an index, or none, and plans. A page that goes on reads what the one before has read,
 * whatever indexes there are by now.
 */
static enum status
choose_way(struct select *s, const struct params *p)
{
	bool allows = s->s->allow_filtering;
	uint64_t number = 0;
	bool goes_on = p->paging_state.len && page_read_index(p->paging_state, &number);

	/* An index knows nothing of the past. */
	if (!s->s->as_of && (!goes_on || number))
		TRY(where_index_choose(s->run, &s->where, allows, number, &s->index));
	if (number && !s->index.index)
		return request_fail(s->run->r, CQL_CODE_INVALID,
				    "The secondary index that the page before has read is not "
				    "there any more: begin anew");
	/* A page before has read without an index, so nobody has to allow it now. */
	return where_plan(s->run, &s->where, s->index.index ? &s->index : NULL,
			  allows || (goes_on && !number), &s->plan);
}

/* Entries tell neither write times nor lives of cells. */
static bool
asks_for_times(const struct cql_term *term)
{
	bool asks = term->kind == CQL_TERM_FUNCTION &&
		    (str_eq(term->text, STR("ttl")) || str_eq(term->text, STR("writetime")));

	for (size_t i = 0; !asks && i < term->count; i++)
		asks = term->args[i] && asks_for_times(term->args[i]);
	return asks;
}

/* What a path leads to need not be looked at again in a row that the index has found by it. */
bool
select_is_settled(const struct select *s, size_t term)
{
	return s->index.served[term] && s->where.terms[term].relation->left == CQL_LEFT_JSON;
}

/* Of a row that an index has found: what is asked for, and what WHERE says besides. */
static enum status
find_of_entry(struct select *s)
{
	const struct schema_table *t = s->run->table;
	bool *wanted = arena_alloc(s->run->r->arena, t->count + 1);

	if (!wanted)
		return STATUS_LIMIT;
	memcpy(wanted, s->selected, t->count);
	for (size_t i = 0; i < s->s->selector_count; i++)
		if (asks_for_times(s->s->selectors[i].term))
			return STATUS_OK;
	for (size_t i = 0; i < s->where.count; i++) {
		const struct where_term *term = &s->where.terms[i];

		for (size_t j = 0; !select_is_settled(s, i) && j < term->column_count; j++)
			wanted[schema_column_at(t, term->columns[j])] = true;
	}
	TRY(wanted_make(s, wanted, &s->of_entry));
	s->of_entry.some = true;
	return STATUS_OK;
}

enum status
select_prepare(struct select *s, const struct params *p)
{
	uint64_t number;

	s->most = p->page_size > 0 && !s->groups ? (size_t)p->page_size : 0;
	/* What an index answers shows with the values, or with the page before. */
	if (!s->checked)
		TRY(select_check(s, page_read_index(p->paging_state, &number)));
	TRY(where_compute(s->run, &s->where));
	TRY(choose_way(s, p));
	/* Of partitions that are named one may ask for less. */
	if (s->missing && !s->plan.by_partitions)
		return request_fail(s->run->r, CQL_CODE_INVALID,
				    "SELECT DISTINCT queries must request all the partition key "
				    "columns (missing %.*s)",
				    STR_ARG(s->missing->name));
	TRY(compute_limit(s, s->limit, "LIMIT", &s->left));
	TRY(compute_offset(s));
	TRY(compute_as_of(s));
	TRY(compute_limit(s, s->part_limit, "PER PARTITION LIMIT", &s->part_most));
	TRY(check_order(s));
	if (s->s->distinct)
		s->part_most = 1;
	s->part_left = s->part_most;
	if (s->index.index)
		TRY(find_of_entry(s));
	return row_init(s->run->q, s->run->table, &s->row);
}
