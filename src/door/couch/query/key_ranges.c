#include "door/couch/query/key_ranges.h"

/* The combinations of values, while they are turned into ranges. */
struct ranges_making {
	const struct catalog_db *db;
	const struct index_def *def;
	const struct value_set *columns;
	size_t used;               /* columns that narrow the ranges */
	bool *sure[INDEX_COLUMNS]; /* of each interval of these columns: it has matches only */
	/* Whatever the values of the columns from this one on are, they match. */
	size_t sure_from;
	struct index_work *w;
	struct index_interval interval;
	struct leaf_value equal[INDEX_COLUMNS];
	struct key_ranges *ret;
};

static size_t
set_count_points(const struct value_set *set)
{
	size_t points = 0;

	for (size_t i = 0; i < set->count; i++)
		points += set->items[i].point;
	return points;
}

/* How many columns are used, so that there are not too many ranges; `*ret_most` is how many. */
static size_t
ranges_choose_columns(const struct index_def *def, const struct value_set *columns,
		      size_t *ret_most)
{
	size_t points = 1, others = 0, used = 0;

	while (used < def->column_count && points) {
		const struct value_set *set = &columns[used];
		size_t next = set_count_points(set);

		if (value_set_is_all(set) || points * set->count + others > KEY_RANGES)
			break;
		others += points * (set->count - next);
		points *= next;
		used++;
	}
	*ret_most = points + others;
	return used;
}

/* Appends the range of the interval. Bounds that were cut may have made it meet the last one. */
static enum status
ranges_add(struct ranges_making *m, size_t equal_count, bool sure)
{
	struct key_ranges *ret = m->ret;
	struct index_range range;

	m->interval.equal = m->equal;
	m->interval.equal_count = equal_count;
	TRY(index_count(m->w, 1));
	TRY(index_range_make(m->db, m->def, &m->interval, m->w, &range));
	if (ret->count && str_cmp(range.begin, ret->items[ret->count - 1].end) < 0) {
		ret->items[ret->count - 1].cut = true;
		if (str_cmp(range.end, ret->items[ret->count - 1].end) > 0)
			ret->items[ret->count - 1].end = range.end;
		return STATUS_OK;
	}
	if (ret->sure)
		ret->sure[ret->count] = sure;
	ret->items[ret->count++] = range;
	return STATUS_OK;
}

static enum status
ranges_add_column(struct ranges_making *m, size_t column, bool sure)
{
	if (column == m->used)
		return ranges_add(m, column, sure && m->sure_from <= column);
	for (size_t i = 0; i < m->columns[column].count; i++) {
		const struct value_interval *values = &m->columns[column].items[i];
		bool both = sure && m->ret->sure && m->sure[column][i];

		if (values->point) {
			m->equal[column] = values->low.value;
			TRY(ranges_add_column(m, column + 1, both));
			continue;
		}
		m->interval.low = values->low.given ? &values->low.value : NULL;
		m->interval.low_exclusive = values->low.exclusive;
		m->interval.high = values->high.given ? &values->high.value : NULL;
		m->interval.high_exclusive = values->high.exclusive;
		TRY(ranges_add(m, column, both && m->sure_from <= column + 1));
		m->interval.low = m->interval.high = NULL;
	}
	return STATUS_OK;
}

/* Finds out which intervals have matches only. */
static enum status
ranges_mark(struct ranges_making *m, const struct value_set *certain, size_t most)
{
	struct arena *arena = m->w->arena;

	for (size_t i = 0; i < m->used; i++) {
		m->sure[i] = arena_alloc(arena, (m->columns[i].count + 1) * sizeof(*m->sure[i]));
		if (!m->sure[i])
			return STATUS_LIMIT;
		TRY(value_set_mark(&certain[i], &m->columns[i], m->w, m->sure[i]));
	}
	m->sure_from = m->def->column_count;
	while (m->sure_from && value_set_is_all(&certain[m->sure_from - 1]))
		m->sure_from--;
	m->ret->sure = arena_alloc(arena, (most + 1) * sizeof(*m->ret->sure));
	return m->ret->sure ? STATUS_OK : STATUS_LIMIT;
}

enum status
key_ranges_make(const struct catalog_db *db, const struct index_def *def,
		const struct key_columns *columns, struct str partition, struct index_work *w,
		struct key_ranges *ret)
{
	const struct value_set *allowed = columns->allowed;
	struct ranges_making m = { .db = db, .def = def, .columns = allowed, .w = w, .ret = ret };
	size_t most;

	*ret = (struct key_ranges){ 0 };
	m.interval.partition = partition;
	m.used = ranges_choose_columns(def, allowed, &most);
	if (columns->certain)
		TRY(ranges_mark(&m, columns->certain, most));
	for (size_t i = 0; i < def->column_count; i++) {
		if (allowed[i].count == 0)
			return STATUS_OK;
	}
	ret->items = arena_alloc(w->arena, (most + 1) * sizeof(*ret->items));
	if (!ret->items)
		return STATUS_LIMIT;
	return ranges_add_column(&m, 0, true);
}
