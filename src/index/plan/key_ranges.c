#include "index/plan/key_ranges.h"

#include <assert.h>

#include "loop/sort.h"

/* The combinations of values, while they are turned into ranges. */
struct ranges_making {
	const struct catalog_db *db;
	const struct index_def *def;
	const struct key_columns *asked;
	const struct value_order *order;
	bool *certain[INDEX_COLUMNS]; /* of each interval of these columns: it has matches only */
	/* Whatever the values of the columns from this one on are, they match. */
	size_t certain_from;
	struct index_interval interval;
	const void *equal[INDEX_COLUMNS];
	struct key_ranges *ret;
	size_t room;   /* for ranges, as many as the columns make */
	bool in_order; /* each range so far begins behind the end of the one before it */
};

/*
 * Counts the ranges that columns up to this one make. `*points` have a single value in each of them
 * and are narrowed by the next one; `*others` end in an interval, and are not.
 */
static void
ranges_count_column(const struct value_set *set, size_t *points, size_t *others)
{
	size_t single = 0;

	for (size_t i = 0; i < set->count; i++)
		single += set->items[i].point;
	*others += *points * (set->count - single);
	*points *= single;
}

size_t
key_columns_choose(const struct index_def *def, const struct value_set *allowed)
{
	size_t points = 1, others = 0, used = 0;

	/* Nothing is read at all if one column may have no value. */
	for (size_t i = 0; i < def->column_count; i++)
		if (!allowed[i].count)
			return i + 1;
	for (; used < def->column_count && points; used++) {
		const struct value_set *set = &allowed[used];

		if (value_set_is_all(set) || points * set->count + others > KEY_RANGES)
			break;
		ranges_count_column(set, &points, &others);
	}
	return used;
}

/* Appends the range of the interval, unless it is empty. */
static enum status
ranges_add(struct ranges_making *m, size_t equal_count, bool certain)
{
	struct key_ranges *ret = m->ret;
	struct index_range *range = &ret->items[ret->count];

	assert(ret->count < m->room && equal_count <= m->asked->used);
	m->interval.equal_count = equal_count;
	TRY(index_count(m->order->w, 1));
	TRY(index_range_make(m->db, m->def, &m->interval, m->order->w, range));
	if (str_cmp(range->begin, range->end) >= 0)
		return STATUS_OK;
	range->certain = certain && !range->cut;
	m->in_order = m->in_order && (!ret->count || str_cmp(range[-1].end, range->begin) <= 0);
	ret->count++;
	return STATUS_OK;
}

/* Goes through the values in the order of keys, but for those of a hashed column. */
static enum status
ranges_add_column(struct ranges_making *m, size_t column, bool certain)
{
	const struct value_set *set = &m->asked->allowed[column];

	assert(column <= m->asked->used && !m->interval.low && !m->interval.high);
	if (column == m->asked->used)
		return ranges_add(m, column, certain && m->certain_from <= column);
	for (size_t k = 0; k < set->count; k++) {
		size_t i = m->def->columns[column].descending ? set->count - 1 - k : k;
		const struct value_interval *values = &set->items[i];
		bool both = certain && m->certain[column][i];

		if (values->point) {
			m->equal[column] = values->low.value;
			TRY(ranges_add_column(m, column + 1, both));
			continue;
		}
		m->interval.low = values->low.value;
		m->interval.low_exclusive = values->low.exclusive;
		m->interval.high = values->high.value;
		m->interval.high_exclusive = values->high.exclusive;
		TRY(ranges_add(m, column, both && m->certain_from <= column + 1));
		m->interval.low = m->interval.high = NULL;
	}
	return STATUS_OK;
}

static enum status
ranges_compare(const void *arg, const void *a, const void *b, int *ret)
{
	(void)arg;
	return sort_compare_strs(((const struct index_range *)a)->begin,
				 ((const struct index_range *)b)->begin, ret);
}

/* Hashes are in no order, and ranges that meet because their bounds were cut become one. */
static enum status
ranges_settle(struct key_ranges *ranges, struct arena *arena)
{
	size_t kept = 0;

	TRY(sort_items(ranges->items, ranges->count, sizeof(*ranges->items), ranges_compare, NULL,
		       arena));
	for (size_t i = 0; i < ranges->count; i++) {
		const struct index_range *r = &ranges->items[i];
		struct index_range *last = kept ? &ranges->items[kept - 1] : NULL;

		if (!last || str_cmp(r->begin, last->end) >= 0) {
			ranges->items[kept++] = *r;
			continue;
		}
		/* Sorted by where they begin, so only the end of the last one can move. */
		assert(str_cmp(last->begin, r->begin) <= 0);
		last->cut = true;
		last->certain = false;
		if (str_cmp(r->end, last->end) <= 0)
			continue;
		last->end = r->end;
		last->point = false;
	}
	ranges->count = kept;
	return STATUS_OK;
}

/* Finds out which intervals have matches only. */
static enum status
ranges_mark(struct ranges_making *m)
{
	const struct value_set *allowed = m->asked->allowed, *certain = m->asked->certain;

	for (size_t i = 0; i < m->asked->used; i++) {
		m->certain[i] = arena_alloc(m->order->w->arena,
					    (allowed[i].count + 1) * sizeof(*m->certain[i]));
		if (!m->certain[i])
			return STATUS_LIMIT;
		TRY(value_set_mark(m->order, &certain[i], &allowed[i], m->certain[i]));
	}
	m->certain_from = m->def->column_count;
	while (m->certain_from && value_set_is_all(&certain[m->certain_from - 1]))
		m->certain_from--;
	return STATUS_OK;
}

enum status
key_ranges_make(const struct catalog_db *db, const struct index_def *def,
		const struct key_columns *columns, const struct value_order *o,
		struct key_ranges *ret)
{
	struct ranges_making m = {
		.db = db, .def = def, .asked = columns, .order = o, .ret = ret, .in_order = true
	};
	size_t points = 1, others = 0;

	assert(columns->used <= def->column_count);
	*ret = (struct key_ranges){ .marked = columns->certain };
	m.interval.partition = columns->partition;
	m.interval.equal = m.equal;
	for (size_t i = 0; i < columns->used; i++) {
		if (columns->allowed[i].count == 0)
			return STATUS_OK;
		ranges_count_column(&columns->allowed[i], &points, &others);
	}
	if (columns->certain)
		TRY(ranges_mark(&m));
	m.room = points + others + 1;
	ret->items = arena_alloc(o->w->arena, m.room * sizeof(*ret->items));
	if (!ret->items)
		return STATUS_LIMIT;
	TRY(ranges_add_column(&m, 0, columns->certain));
	if (!m.in_order)
		TRY(ranges_settle(ret, o->w->arena));
	return STATUS_OK;
}
