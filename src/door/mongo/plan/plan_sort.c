/*
 * Tells whether a walk through an index gives the order that a sort asks for. It does if the sort's
 * paths are columns of the index in the same sequence, all in the columns' directions or all
 * against them. Columns in between do no harm if the filter demands one value of them. If it
 * demands one of several values, their ranges are merged: all columns that the ranges differ in lie
 * then in front of those that give the order.
 */
#include "door/mongo/index/index.h"
#include "door/mongo/plan/plan_int.h"

enum {
	/* Of a value whose range is merged: longer ones may be cut in keys of many columns. */
	PLAN_MERGED_TEXT_BYTES = 64,
};

/* A sort along the columns of a candidate. */
struct sorting {
	const struct choosing *x;
	const struct candidate *one;
	struct str names[INDEX_COLUMNS];
	uint32_t used; /* columns that something is asked of */
	size_t at;     /* the next column */
	bool merges;   /* columns of several values were passed over */
	bool several;  /* one of them gives the order, so none may be */
	bool any;      /* the direction is known: */
	bool reverse;
};

static bool
column_is_fixed(const struct candidate *one, size_t column)
{
	return column < one->points && one->columns[column].count == 1;
}

/* True if no key cuts the value. */
static bool
point_can_merge(const struct bson_value *v)
{
	switch ((int)v->type) {
	case BSON_NULL:
	case BSON_BOOL:
	case BSON_INT32:
	case BSON_INT64:
	case BSON_DOUBLE:
	case BSON_DECIMAL:
	case BSON_DATE:
	case BSON_TIMESTAMP:
	case BSON_OBJECT_ID:
		return true;
	case BSON_STRING:
	case BSON_SYMBOL:
	case BSON_BINARY:
		return bson_text(v).len <= PLAN_MERGED_TEXT_BYTES;
	default:
		return false;
	}
}

/*
 * True if the ranges of several values of a column can be merged. Values that are cut have ranges
 * in common, and a document with an array may have entries in more than one.
 */
static bool
column_can_merge(const struct sorting *s, size_t column)
{
	const struct candidate *one = s->one;
	const struct value_set *asked = &one->columns[column];

	if (column >= one->points || one->ranges > PLAN_MERGED || one->def->hashed ||
	    s->x->ask->changes || plan_arrays_of(s->x, one->def) ||
	    (plan_cuts_of(s->x, one->def) & UINT32_C(1) << column))
		return false;
	for (size_t i = 0; i < asked->count; i++)
		if (!point_can_merge(asked->items[i].low.value))
			return false;
	return true;
}

/* True if the next column has nothing to do with the order. */
static bool
sorting_passes(struct sorting *s)
{
	if (column_is_fixed(s->one, s->at))
		return true;
	if (s->several || !column_can_merge(s, s->at))
		return false;
	s->merges = true;
	return true;
}

static bool
sorting_turn(struct sorting *s, bool reverse)
{
	if (s->any && s->reverse != reverse)
		return false;
	s->any = true;
	s->reverse = reverse;
	return true;
}

/*
 * True if the next column of the candidate gives the order of its path. A document with an array is
 * sorted by the array's least element, or by its greatest where the order descends. This is the
 * document's first entry on the walk only if the walk passes all of its entries, so the filter may
 * not bound a column with arrays.
 */
static bool
sorting_column(struct sorting *s, bool descending)
{
	const struct index_def *def = s->one->def;
	uint32_t bit = UINT32_C(1) << s->at, arrays = plan_arrays_of(s->x, def);

	if (def->hashed == s->at + 1 || ((arrays & bit) && (arrays & s->used)))
		return false;
	if (column_is_fixed(s->one, s->at))
		return true;
	s->several = s->several || s->at < s->one->points;
	return !(s->merges && s->at < s->one->points) && !(plan_cuts_of(s->x, def) & bit) &&
	       sorting_turn(s, def->columns[s->at].descending != descending);
}

/* True if all documents that are found have the same value there. */
static bool
sorting_is_constant(const struct sorting *s, struct str path)
{
	uint32_t arrays = plan_arrays_of(s->x, s->one->def);

	for (size_t i = 0; i < s->at; i++)
		if (str_eq(s->names[i], path) && column_is_fixed(s->one, i))
			return !(arrays & (UINT32_C(1) << i));
	return false;
}

/* Takes the next path of the sort. `*ret_ended`: no path behind it decides anything. */
static bool
sorting_step(struct sorting *s, struct str path, bool descending, bool *ret_ended)
{
	size_t count = s->one->def->column_count;

	if (plan_path_has_number(path))
		return false;
	while (s->at < count && !str_eq(s->names[s->at], path) && sorting_passes(s))
		s->at++;
	if (s->at < count && str_eq(s->names[s->at], path)) {
		if (!sorting_column(s, descending))
			return false;
		s->at++;
		return true;
	}
	if (sorting_is_constant(s, path))
		return true;
	/* Entries with the same values are in the order of `_id`, by the bytes of texts. */
	*ret_ended = s->at == count && str_eq(path, STR("_id")) && !s->x->ask->texts;
	return *ret_ended && sorting_turn(s, descending);
}

void
plan_sort_look(const struct choosing *x, struct candidate *one)
{
	const struct mql_sort_by *by = x->ask->sort;
	struct sorting s = { .x = x, .one = one };
	struct bson_element e;
	struct bson_iter i;
	bool ended = false;
	size_t at = 0;

	one->sorts = one->merges = false;
	if (!by || one->foreign)
		return;
	for (bson_iter_begin(&i, index_key_of(one->def)); bson_iter_read(&i, &e); at++) {
		s.names[at] = e.name;
		if (at < one->points + one->bounded || one->between)
			s.used |= UINT32_C(1) << at;
	}
	for (size_t k = 0; k < mql_sort_by_count(by) && !ended; k++) {
		bool descending;
		struct str path = mql_sort_by_path(by, k, &descending);

		if (!sorting_step(&s, path, descending, &ended))
			return;
	}
	one->sorts = true;
	one->merges = s.merges;
	one->sorts_reverse = s.reverse;
}
