/* What a scan by an index reads, and which rows may pass. */
#include "door/rows/data/index.h"

struct making {
	struct rows_request *r;
	const struct table *t;
	const struct rows_scan *scan;
	const struct table_index *index;
	struct rows_filter *filters;
	size_t filter_count;
};

static const struct column *
column_at(const struct making *m, size_t at)
{
	return &m->t->columns[table_column_by_id(m->t->schema, m->index->columns[at].column) -
			      m->t->schema->columns];
}

static enum status
scan_index_find(struct making *m)
{
	m->index = rows_index_numbered(m->t, m->scan->index);
	if (!m->index || !m->index->is_ready)
		return rows_fail(m->r, ROWS_STATE_INDEX,
				 "the table has no index with the number %u that is ready",
				 (unsigned)m->scan->index);
	if (!rows_index_is_known(m->t, m->index))
		return rows_fail(m->r, ROWS_STATE_UNSUPPORTED,
				 "rows cannot be found by the index \"%.*s\" here",
				 STR_ARG(m->index->name));
	return STATUS_OK;
}

/* A value of a column of the index; what entries have where it is null. */
static enum status
value_make(struct making *m, size_t at, struct rows_value value, struct index_typed_value *ret)
{
	if (value.presence == ROWS_VALUE)
		return rows_index_value(m->r, m->t, column_at(m, at), value, &ret->first);
	ret->first = (struct doc_scalar){ .kind = DOC_UNDEFINED };
	return STATUS_OK;
}

static struct rows_filter *
filter_add(struct making *m, size_t at, enum rows_test test)
{
	struct rows_filter *f = &m->filters[m->filter_count++];

	*f = (struct rows_filter){ .column = (uint32_t)column_at(m, at)->stored->id, .test = test };
	return f;
}

static enum status
equal_make(struct making *m, struct table_index_interval *ret)
{
	size_t count = m->scan->equal_count;
	struct index_typed_value *values = arena_zalloc(m->r->arena, (count + 1) * sizeof(*values));

	if (!values)
		return STATUS_LIMIT;
	for (size_t i = 0; i < count; i++) {
		struct rows_value value = m->scan->equal[i];
		struct rows_filter *f;

		TRY(value_make(m, i, value, &values[i]));
		f = filter_add(m, i,
			       value.presence == ROWS_VALUE ? ROWS_TEST_INTERVAL : ROWS_TEST_NULL);
		if (value.presence != ROWS_VALUE)
			continue;
		f->from_kind = f->to_kind = ROWS_BOUND_INCLUSIVE;
		f->from = f->to = value;
	}
	ret->equal = values;
	ret->equal_count = count;
	return STATUS_OK;
}

/* One end: `smaller` if it is that of the smaller values. */
static enum status
bound_make(struct making *m, const struct rows_edge *edge, bool smaller,
	   struct table_index_interval *ret)
{
	size_t at = m->scan->equal_count;
	bool exclusive = edge->kind == ROWS_BOUND_EXCLUSIVE;
	struct index_typed_value *v;
	struct rows_filter *f;

	if (edge->kind == ROWS_BOUND_NONE)
		return STATUS_OK;
	if (edge->count != 1 || at == m->index->column_count)
		return rows_fail(m->r, ROWS_STATE_DEFINITION,
				 "a range of the index is of its next column alone");
	if (rows_index_column_use(m->t, &m->index->columns[at]) != INDEX_USE_ORDERED)
		return rows_fail(m->r, ROWS_STATE_UNSUPPORTED,
				 "entries are not in the order of the values of \"%.*s\"",
				 STR_ARG(column_at(m, at)->stored->name));
	v = arena_zalloc(m->r->arena, sizeof(*v));
	if (!v)
		return STATUS_LIMIT;
	TRY(value_make(m, at, edge->values[0], v));
	if (smaller) {
		ret->low = v;
		ret->low_exclusive = exclusive;
	} else {
		ret->high = v;
		ret->high_exclusive = exclusive;
	}
	if (edge->values[0].presence != ROWS_VALUE) {
		(void)filter_add(m, at, ROWS_TEST_NOT_NULL);
		return STATUS_OK;
	}
	f = filter_add(m, at, ROWS_TEST_INTERVAL);
	if (smaller) {
		f->from_kind = edge->kind;
		f->from = edge->values[0];
	} else {
		f->to_kind = edge->kind;
		f->to = edge->values[0];
	}
	return STATUS_OK;
}

/* Null is before all values, and no comparison asks for it. */
static enum status
low_complete(struct making *m, struct table_index_interval *ret)
{
	struct index_typed_value *null;

	if (ret->low || !ret->high)
		return STATUS_OK;
	null = arena_zalloc(m->r->arena, sizeof(*null));
	if (!null)
		return STATUS_LIMIT;
	null->first.kind = DOC_UNDEFINED;
	ret->low = null;
	ret->low_exclusive = true;
	return STATUS_OK;
}

enum status
rows_index_scan_make(struct rows_request *r, const struct table *t, const struct rows_scan *scan,
		     const struct table_index **ret, struct table_index_interval *ret_interval,
		     const struct rows_filter **ret_filters, size_t *ret_filter_count)
{
	struct making m = { .r = r, .t = t, .scan = scan };
	size_t most = scan->filter_count + scan->equal_count + 2;
	bool descending;

	TRY(scan_index_find(&m));
	if (scan->equal_count > m.index->column_count)
		return rows_fail(r, ROWS_STATE_DEFINITION, "the index has %zu columns",
				 m.index->column_count);
	m.filters = arena_alloc(r->arena, most * sizeof(*m.filters));
	if (!m.filters)
		return STATUS_LIMIT;
	*ret_interval = (struct table_index_interval){ 0 };
	TRY(equal_make(&m, ret_interval));
	descending = scan->equal_count < m.index->column_count &&
		     m.index->columns[scan->equal_count].descending;
	TRY(bound_make(&m, &scan->from, !descending, ret_interval));
	TRY(bound_make(&m, &scan->to, descending, ret_interval));
	TRY(low_complete(&m, ret_interval));
	for (size_t i = 0; i < scan->filter_count; i++)
		m.filters[m.filter_count++] = scan->filters[i];
	*ret = m.index;
	*ret_filters = m.filters;
	*ret_filter_count = m.filter_count;
	return STATUS_OK;
}
