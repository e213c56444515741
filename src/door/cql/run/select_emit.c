/* What becomes of each row: cells of an answer, parts of a group, rows to be sorted. */
#include "cql/json.h"
#include "door/cql/run/select.h"
#include "loop/sort.h"
#include "loop/step.h"

enum {
	SPARE_ROWS_BYTES = 16 * 1024, /* of the buffer that is kept for the next answer */
};

/* ---- Cells ---- */

static struct cql_env
env_of(struct select *s, struct row *row, const struct cql_value *aggregates)
{
	struct cql_env env = s->run->env;

	env.get = row_get;
	env.cell = row_cell;
	env.arg = row;
	env.aggregates = aggregates;
	return env;
}

static enum status
put_cells(struct select *s, struct cql_env *env, struct buf *out)
{
	struct cql_value v;

	for (size_t i = 0; i < s->count; i++) {
		unsigned column;

		if (cql_expr_is_column(s->exprs[i], &column))
			TRY(env->get(env->arg, s->run->q, column, &v));
		else
			TRY(cql_run(s->exprs[i], s->run->q, env, &v));
		cql_element_put(out, v);
	}
	return STATUS_OK;
}

/* One text with all of it. */
static enum status
put_json(struct select *s, struct cql_env *env, struct buf *out)
{
	AUTO(buf_release) struct buf json = cql_buf(s->run->q, CQL_REPLY_BYTES);
	struct cql_value v;

	buf_append_byte(&json, '{');
	for (size_t i = 0; i < s->count; i++) {
		if (i)
			buf_append_cstr(&json, ", ");
		cql_json_print_name(&json, s->asked[i].name);
		buf_append_cstr(&json, ": ");
		TRY(cql_run(s->exprs[i], s->run->q, env, &v));
		cql_json_print(&json, s->asked[i].type, v);
	}
	buf_append_byte(&json, '}');
	TRY(buf_status(&json));
	cql_element_put(out, CQL_VALUE(buf_str(&json)));
	return STATUS_OK;
}

static enum status
put_row(struct select *s, struct row *row, const struct cql_value *aggregates, struct buf *out)
{
	struct cql_env env = env_of(s, row, aggregates);

	return s->s->json ? put_json(s, &env, out) : put_cells(s, &env, out);
}

/* Room for the first row, so that the buffer need not grow by doubling up to its length. */
static void
reserve_row(struct select *s)
{
	const struct schema_table *t = s->run->table;
	size_t bytes = 0;

	for (size_t i = 0; i < t->count; i++)
		if (s->selected[i])
			bytes += sizeof(int32_t) + s->row.values[i].bytes.len;
	(void)buf_reserve(&s->rows, bytes);
}

/* ---- Groups ---- */

static bool sorts(const struct select *s);
static enum status sort_add(struct select *s, struct row *row, const struct cql_value *aggregates);

static enum status
group_end(struct select *s)
{
	size_t count = s->run->scope.aggregate_count;
	struct cql_value *results = arena_alloc(s->run->r->arena, (count + 1) * sizeof(*results));
	struct row row = s->row;

	if (!results)
		return STATUS_LIMIT;
	row.values = s->first;
	s->has_group = false;
	if (s->skip && !sorts(s)) {
		s->skip--;
		return STATUS_OK;
	}
	for (size_t i = 0; i < count; i++)
		TRY(cql_aggregate_result(s->run->scope.aggregates[i], &s->states[i], s->run->q,
					 &results[i]));
	/* A group is sorted by its first row. */
	if (sorts(s))
		return sort_add(s, &row, results);
	TRY(put_row(s, &row, results, &s->rows));
	s->row_count++;
	if (s->left != UINT64_MAX)
		s->left--;
	return STATUS_OK;
}

static void
states_begin(struct select *s)
{
	for (size_t i = 0; i < s->run->scope.aggregate_count; i++) {
		cql_aggregate_release(&s->states[i]);
		cql_aggregate_init(&s->states[i], s->run->scope.aggregates[i], s->run->q);
	}
}

/* The row begins a group: its values are kept. `row` NULL: a group of no rows. */
static enum status
group_begin(struct select *s, const struct row *row)
{
	const struct schema_table *t = s->run->table;
	struct arena *arena = s->run->r->arena;

	if (!s->states) {
		s->states = arena_zalloc(arena,
					 (s->run->scope.aggregate_count + 1) * sizeof(*s->states));
		if (!s->states)
			return STATUS_LIMIT;
	}
	states_begin(s);
	s->first = arena_alloc(arena, (t->count + 1) * sizeof(*s->first));
	if (!s->first)
		return STATUS_LIMIT;
	for (size_t i = 0; i < t->count; i++) {
		s->first[i] = row ? row->values[i] : CQL_VALUE_NULL;
		if (s->first[i].presence == CQL_SET)
			TRY(arena_copy(arena, s->first[i].bytes, &s->first[i].bytes));
	}
	s->has_group = true;
	s->mark = arena_mark(arena);
	return STATUS_OK;
}

static bool
same_group(const struct select *s)
{
	const struct schema_table *t = s->run->table;

	for (size_t i = 0; i < s->group_count; i++) {
		size_t at = schema_column_at(t, s->group_by[i]);
		const struct cql_value *a = &s->first[at], *b = &s->row.values[at];

		if (a->presence != b->presence || !str_eq(a->bytes, b->bytes))
			return false;
	}
	return true;
}

/* True if the row is of the partition that the last group was of. */
static bool
same_partition(const struct select *s)
{
	if (!s->first)
		return false;
	for (size_t i = 0; i < s->run->table->partition_count; i++)
		if (!str_eq(s->first[i].bytes, s->row.values[i].bytes))
			return false;
	return true;
}

static enum status
group_add(struct select *s, bool *ret_more)
{
	struct cql_env env;

	if (s->has_group && !same_group(s)) {
		TRY(group_end(s));
		if (!s->left) {
			*ret_more = false;
			return STATUS_OK;
		}
	}
	if (!s->has_group) {
		if (!same_partition(s))
			s->part_groups = 0;
		if (s->group_count && s->part_groups == s->part_most)
			return STATUS_OK;
		s->part_groups++;
		TRY(group_begin(s, &s->row));
	}
	env = env_of(s, &s->row, NULL);
	for (size_t i = 0; i < s->run->scope.aggregate_count; i++)
		TRY(cql_aggregate_add(s->run->scope.aggregates[i], &s->states[i], s->run->q, &env));
	return STATUS_OK;
}

/* ---- Sorting: ORDER BY over several partitions ---- */

static bool
sorts(const struct select *s)
{
	return s->order_count && s->plan.in_partition;
}

static enum status
sort_add(struct select *s, struct row *from, const struct cql_value *aggregates)
{
	struct arena *arena = s->run->r->arena;
	AUTO(buf_release) struct buf cells = cql_buf(s->run->q, CQL_REPLY_BYTES);
	struct select_sorted *row;

	if (s->sorted_count == SELECT_SORT_ROWS)
		return request_fail(s->run->r, CQL_CODE_INVALID,
				    "ORDER BY of several partitions sorts %d rows at most "
				    "(SELECT_SORT_ROWS)",
				    SELECT_SORT_ROWS);
	TRY(put_row(s, from, aggregates, &cells));
	TRY(arena_room(arena, &s->sorted, s->sorted_count, &s->sorted_cap, sizeof(*s->sorted)));
	row = &s->sorted[s->sorted_count];
	TRY(buf_copy(&cells, arena, &row->cells));
	row->by = arena_alloc(arena, s->order_count * sizeof(*row->by));
	if (!row->by)
		return STATUS_LIMIT;
	for (size_t i = 0; i < s->order_count; i++) {
		row->by[i] = from->values[schema_column_at(s->run->table, s->order_by[i])];
		if (row->by[i].presence == CQL_SET)
			TRY(arena_copy(arena, row->by[i].bytes, &row->by[i].bytes));
	}
	s->sorted_count++;
	s->mark = arena_mark(arena);
	return STATUS_OK;
}

static enum status
compare_sorted(const void *arg, const void *a, const void *b, int *ret)
{
	const struct select *s = arg;
	const struct select_sorted *x = a, *y = b;

	*ret = 0;
	for (size_t i = 0; i < s->order_count && !*ret; i++) {
		*ret = cql_value_compare(s->order_by[i]->type, x->by[i].bytes, y->by[i].bytes);
		if (s->order_by[i]->descending != s->reverse)
			*ret = -*ret;
	}
	return STATUS_OK;
}

/* ---- Rows ---- */

enum status
select_emit(struct select *s, bool *ret_more)
{
	*ret_more = true;
	TRY(step_count(1));
	if (s->groups)
		return group_add(s, ret_more);
	if (sorts(s))
		return sort_add(s, &s->row, NULL);
	if (s->skip) {
		s->skip--;
		return STATUS_OK;
	}
	if (!s->rows.len)
		reserve_row(s);
	TRY(put_row(s, &s->row, NULL, &s->rows));
	TRY(buf_status(&s->rows));
	s->row_count++;
	if (s->left != UINT64_MAX)
		s->left--;
	*ret_more = s->left > 0;
	return STATUS_OK;
}

enum status
select_finish(struct select *s)
{
	/* Aggregates over no rows are one row, but for groups by columns. */
	if (s->groups && !s->has_group && !s->row_count && !s->sorted_count && !s->group_count)
		TRY(group_begin(s, NULL));
	if (s->has_group && s->left)
		TRY(group_end(s));
	if (!sorts(s))
		return STATUS_OK;
	TRY(sort_items(s->sorted, s->sorted_count, sizeof(*s->sorted), compare_sorted, s,
		       s->run->r->arena));
	for (size_t i = (size_t)s->skip; i < s->sorted_count && s->row_count < s->left; i++) {
		buf_append_str(&s->rows, s->sorted[i].cells);
		s->row_count++;
	}
	return STATUS_OK;
}

void
select_release(struct select *s)
{
	for (size_t i = 0; s->states && i < s->run->scope.aggregate_count; i++)
		cql_aggregate_release(&s->states[i]);
	s->states = NULL;
	if (!s->run->spare_rows || s->rows.cap > SPARE_ROWS_BYTES) {
		buf_release(&s->rows);
		return;
	}
	buf_clear(&s->rows);
	*s->run->spare_rows = s->rows;
}
