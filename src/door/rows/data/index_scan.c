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

static enum status
value_make(struct making *m, size_t at, struct rows_value value, struct index_typed_value **ret)
{
	struct index_typed_value *v = arena_zalloc(m->r->arena, sizeof(*v));

	if (!v)
		return STATUS_LIMIT;
	*ret = v;
	return rows_index_value(m->r, m->t, column_at(m, at), value, &v->first);
}

static enum status
equal_make(struct making *m, struct table_index_interval *ret)
{
	size_t count = m->scan->equal_count;
	struct index_typed_value *values = arena_zalloc(m->r->arena, (count + 1) * sizeof(*values));

	if (!values)
		return STATUS_LIMIT;
	for (size_t i = 0; i < count; i++) {
		TRY(rows_index_value(m->r, m->t, column_at(m, i), m->scan->equal[i],
				     &values[i].first));
		m->filters[m->filter_count++] = (struct rows_filter){
			.column = (uint32_t)column_at(m, i)->stored->id,
			.test = ROWS_TEST_INTERVAL,
			.from_kind = ROWS_BOUND_INCLUSIVE,
			.to_kind = ROWS_BOUND_INCLUSIVE,
			.from = m->scan->equal[i],
			.to = m->scan->equal[i],
		};
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
	if (rows_index_use(m->t, column_at(m, at)) != INDEX_USE_ORDERED)
		return rows_fail(m->r, ROWS_STATE_UNSUPPORTED,
				 "entries are not in the order of the values of \"%.*s\"",
				 STR_ARG(column_at(m, at)->stored->name));
	TRY(value_make(m, at, edge->values[0], &v));
	f = &m->filters[m->filter_count++];
	*f = (struct rows_filter){ .column = (uint32_t)column_at(m, at)->stored->id,
				   .test = ROWS_TEST_INTERVAL };
	if (smaller) {
		ret->low = v;
		ret->low_exclusive = exclusive;
		f->from_kind = edge->kind;
		f->from = edge->values[0];
	} else {
		ret->high = v;
		ret->high_exclusive = exclusive;
		f->to_kind = edge->kind;
		f->to = edge->values[0];
	}
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
	for (size_t i = 0; i < scan->filter_count; i++)
		m.filters[m.filter_count++] = scan->filters[i];
	*ret = m.index;
	*ret_filters = m.filters;
	*ret_filter_count = m.filter_count;
	return STATUS_OK;
}
