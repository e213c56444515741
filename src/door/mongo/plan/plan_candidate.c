/* What may be asked of an index: ranges of its entries that have all that a query can find. */
#include "door/mongo/index/index.h"
#include "door/mongo/plan/plan_int.h"
#include "mql/sort_values.h"

void
plan_choosing_begin(struct choosing *x, struct plain *p, const struct plan_ask *ask, struct mql *q)
{
	struct kv_tx_stats stats = kv_tx_stats(p->tx);

	*x = (struct choosing){ .p = p, .ask = ask, .q = q, .work.arena = q->arena };
	x->order = plan_order(ask->texts, &x->work);
	x->has_written = stats.sets || stats.clears;
	mql_match_demands(ask->match, &x->demands, &x->count);
}

/* ---- Columns ---- */

enum {
	/* An array's elements have entries, not the array. Undefined stands for an empty one. */
	NO_POINTS = 1 << BSON_ARRAY | 1 << BSON_UNDEFINED | 1 << BSON_REGEX,
};

/*
 * What is asked of a column. Where documents have several entries, each demand may be met by
 * another one of them, so there only one is of use. False in `*ret_any`: nothing.
 */
static enum status
column_ask(const struct choosing *x, struct str path, bool many, bool foreign,
	   struct value_set *ret, bool *ret_any)
{
	const struct plan_points points = {
		.path = path, .foreign = foreign, .refused = NO_POINTS, .most = KEY_RANGES
	};
	struct value_interval bounds = { 0 };
	bool narrows;

	*ret_any = false;
	if (plan_path_has_number(path))
		return STATUS_OK;
	TRY(plan_points_of(x->demands, x->count, &points, &x->order, ret, ret_any));
	if (*ret_any)
		return STATUS_OK;
	for (size_t i = 0; i < x->count && !(many && *ret_any); i++) {
		if (!plan_demand_is_asked(&x->demands[i], &points))
			continue;
		TRY(plan_bounds_narrow(&x->order, &x->demands[i], &bounds, &narrows));
		*ret_any = *ret_any || narrows;
	}
	return *ret_any ? value_set_of(&x->order, &bounds, ret) : STATUS_OK;
}

enum status
plan_candidate_begin(const struct choosing *x, const struct index_def *def, struct candidate *ret)
{
	struct str *names = arena_alloc(x->q->arena, def->column_count * sizeof(*names));
	struct bson_element e;
	struct bson_iter i;
	size_t at = 0;

	if (!names)
		return STATUS_LIMIT;
	for (bson_iter_begin(&i, index_key_of(def)); bson_iter_read(&i, &e); at++)
		names[at] = e.name;
	assert(at == def->column_count);
	*ret = (struct candidate){
		.def = def,
		.names = names,
		.arrays = x->has_written ? UINT32_MAX : index_def_arrays(def),
		.cuts = x->has_written ? UINT32_MAX : index_def_cuts(def),
		.foreign = plan_is_foreign(x->ask, def),
		.ranges = 1,
	};
	return STATUS_OK;
}

enum status
plan_candidate_make(const struct choosing *x, const struct index_def *def, struct candidate *ret)
{
	uint32_t used = 0;
	bool any = true;

	TRY(plan_candidate_begin(x, def, ret));
	while (any && !ret->bounded && ret->points < def->column_count) {
		size_t at = ret->points;
		struct value_set *column = &ret->columns[at];
		bool many = ret->arrays & (1u << at);

		if (many && used & ret->arrays)
			break;
		TRY(column_ask(x, ret->names[at], many, ret->foreign, column, &any));
		if (!any)
			break;
		if (column->count * ret->ranges > KEY_RANGES)
			value_set_span(column);
		ret->bounded = column->count && !column->items[0].point;
		/* Of a hash there are only single values. */
		if (ret->bounded && def->hashed == at + 1) {
			ret->bounded = false;
			break;
		}
		used |= 1u << at;
		ret->ranges *= column->count;
		ret->points += !ret->bounded;
	}
	plan_sort_look(x, ret);
	ret->covers = !x->ask->changes && plan_covers(x, ret);
	if (ret->covers)
		ret->distinct = plan_distinct_columns(x, ret);
	return STATUS_OK;
}

/* ---- Indexes that have not all documents ---- */

/* Values that comparisons find by their order: of these kinds, and no NaN. */
static bool
is_comparable(const struct bson_value *v)
{
	const struct bson_value nan = BSON_OF_DOUBLE(__builtin_nan(""));
	struct value_interval kind;

	return plan_kind_interval(v, &kind) && !(bson_is_number(v) && bson_equals(v, &nan));
}

/* True if who fulfils the demand has something at its path. */
static bool
demand_needs_value(const struct mql_demand *d)
{
	if (d->op == MQL_DEMAND_EXISTS)
		return true;
	if (d->op == MQL_DEMAND_EQ)
		return d->value.type != BSON_NULL && d->value.type != BSON_UNDEFINED;
	if (d->op != MQL_DEMAND_IN)
		return is_comparable(&d->value);
	return !mql_value_set_has(d->set, 1 << BSON_NULL | 1 << BSON_UNDEFINED);
}

static bool demand_implies(const struct mql_demand *d, struct str op, const struct bson_value *v,
			   bool foreign, const struct bson_texts *texts);

/* Of `$in`: each of its values has to. Of a long one that is not looked at. */
static bool
each_implies(const struct mql_demand *d, struct str op, const struct bson_value *v, bool foreign,
	     const struct bson_texts *texts)
{
	struct mql_demand one = { .op = MQL_DEMAND_EQ, .path = d->path };
	struct bson_element e;
	struct bson_iter i;
	size_t left = KEY_RANGES;

	for (bson_iter_begin(&i, bson_text(&d->value)); bson_iter_read(&i, &e); left--) {
		one.value = e.value;
		if (!left || !demand_implies(&one, op, v, foreign, texts))
			return false;
	}
	return true;
}

/* Of the condition `$in`: one of its values has to be demanded. */
static bool
is_implied_of_any(const struct mql_demand *d, const struct bson_value *list, bool foreign,
		  const struct bson_texts *texts)
{
	struct bson_element e;
	struct bson_iter i;

	for (bson_iter_begin(&i, bson_text(list)); bson_iter_read(&i, &e);)
		if (demand_implies(d, STR("$eq"), &e.value, foreign, texts))
			return true;
	return false;
}

/*
 * True if all values that fulfil the demand fulfil the condition `op` of a partial index, which are
 * compared in the index's collation. That has to be the query's, unless neither has a text.
 */
static bool
demand_implies(const struct mql_demand *d, struct str op, const struct bson_value *v, bool foreign,
	       const struct bson_texts *texts)
{
	bool less = str_eq(op, STR("$lt")) || str_eq(op, STR("$lte"));
	bool strict = str_eq(op, STR("$lt")) || str_eq(op, STR("$gt"));
	bool same;
	int order;

	if (d->element)
		return false;
	if (str_eq(op, STR("$exists")))
		return demand_needs_value(d);
	if (foreign && (plan_has_text(&d->value) || plan_has_text(v)))
		return false;
	if (d->op == MQL_DEMAND_IN)
		return each_implies(d, op, v, foreign, texts);
	if (str_eq(op, STR("$in")))
		return is_implied_of_any(d, v, foreign, texts);
	if (str_eq(op, STR("$eq")))
		return d->op == MQL_DEMAND_EQ && bson_compare_values(&d->value, v, texts) == 0;
	if (!less && !str_eq(op, STR("$gt")) && !str_eq(op, STR("$gte")))
		return false;
	if (!is_comparable(v) || !is_comparable(&d->value) ||
	    bson_type_rank(v->type) != bson_type_rank(d->value.type))
		return false;
	same = d->op == MQL_DEMAND_EQ || (less ? d->op == MQL_DEMAND_LT || d->op == MQL_DEMAND_LTE
					       : d->op == MQL_DEMAND_GT || d->op == MQL_DEMAND_GTE);
	order = bson_compare_values(&d->value, v, texts);
	if (!same || order == 0)
		return same && (!strict || d->op == MQL_DEMAND_LT || d->op == MQL_DEMAND_GT);
	return less ? order < 0 : order > 0;
}

static bool
is_demanded(const struct choosing *x, bool foreign, struct str path, struct str op,
	    const struct bson_value *v)
{
	for (size_t i = 0; i < x->count; i++)
		if (str_eq(x->demands[i].path, path) &&
		    demand_implies(&x->demands[i], op, v, foreign, x->ask->texts))
			return true;
	return false;
}

static bool
is_operators(const struct bson_value *v)
{
	struct bson_element e;
	struct bson_iter i;

	if (v->type != BSON_DOCUMENT)
		return false;
	bson_iter_begin(&i, bson_text(v));
	return bson_iter_read(&i, &e) && e.name.len && e.name.ptr[0] == '$';
}

static bool filter_is_demanded(const struct choosing *x, bool foreign, struct str filter);

/* Of `$and` each filter has to be demanded, of `$or` one. */
static bool
list_is_demanded(const struct choosing *x, bool foreign, struct str list, bool each)
{
	struct bson_element e;
	struct bson_iter i;

	for (bson_iter_begin(&i, list); bson_iter_read(&i, &e);)
		if ((e.value.type == BSON_DOCUMENT &&
		     filter_is_demanded(x, foreign, bson_text(&e.value))) != each)
			return !each;
	return each;
}

static bool
condition_is_demanded(const struct choosing *x, bool foreign, const struct bson_element *condition)
{
	struct bson_element e;
	struct bson_iter i;

	if (!is_operators(&condition->value))
		return is_demanded(x, foreign, condition->name, STR("$eq"), &condition->value);
	for (bson_iter_begin(&i, bson_text(&condition->value)); bson_iter_read(&i, &e);)
		if (!is_demanded(x, foreign, condition->name, e.name, &e.value))
			return false;
	return true;
}

/*
 * True if the query demands each condition of the filter. That `$or` is demanded is seen only where
 * one of its filters is. Lists lie no deeper than BSON_DEPTH.
 */
static bool
filter_is_demanded(const struct choosing *x, bool foreign, struct str filter)
{
	struct bson_element e;
	struct bson_iter i;

	for (bson_iter_begin(&i, filter); bson_iter_read(&i, &e);) {
		bool each = str_eq(e.name, STR("$and"));
		bool good;

		if ((each || str_eq(e.name, STR("$or"))) && e.value.type == BSON_ARRAY)
			good = list_is_demanded(x, foreign, bson_text(&e.value), each);
		else
			good = !(e.name.len && e.name.ptr[0] == '$') &&
			       condition_is_demanded(x, foreign, &e);
		if (!good)
			return false;
	}
	return true;
}

/* True if the index has all documents that the query can find. */
bool
plan_index_has_all(const struct choosing *x, const struct index_def *def)
{
	struct bson_element e;
	struct bson_iter i;

	if (def->filter.ptr && !filter_is_demanded(x, plan_is_foreign(x->ask, def), def->filter))
		return false;
	if (!(def->flags & INDEX_SPARSE))
		return true;
	for (bson_iter_begin(&i, index_key_of(def)); bson_iter_read(&i, &e);)
		for (size_t k = 0; k < x->count; k++)
			if (str_eq(x->demands[k].path, e.name) && !plan_path_has_number(e.name) &&
			    demand_needs_value(&x->demands[k]))
				return true;
	return false;
}

/* ---- What is read ---- */

enum status
plan_candidate_ranges(const struct choosing *x, struct candidate *one)
{
	const struct key_columns columns = { .allowed = one->columns,
					     .used = one->points + one->bounded };

	if (one->keys.items)
		return STATUS_OK;
	assert(!one->between);
	return key_ranges_make(x->p->db, one->def, &columns, &x->order, &one->keys);
}

enum status
plan_candidate_count(const struct choosing *x, struct candidate *one)
{
	TRY(plan_candidate_ranges(x, one));
	return choice_count_rows(&one->keys, x->p->tx, x->p->db, PLAN_COUNT_FEW, &one->rows);
}

enum status
plan_candidate_walked(const struct choosing *x, struct candidate *sorts, uint64_t found,
		      uint64_t *ret)
{
	TRY(plan_candidate_count(x, sorts));
	*ret = sorts->rows;
	if (x->ask->most)
		*ret = (uint64_t)choice_cost_until((double)sorts->rows, x->ask->most, found);
	return STATUS_OK;
}

/* ---- Which one ---- */

/* One that finds at most a document is the best. */
static struct choice_merits
candidate_merits(const struct candidate *c)
{
	bool one = c->def->flags & INDEX_UNIQUE && c->points == c->def->column_count;

	return (struct choice_merits){ { one, (int64_t)c->points, c->bounded, c->sorts,
					 -(int64_t)c->ranges, c->covers,
					 -(int64_t)c->def->column_count } };
}

bool
plan_candidate_is_better(const struct candidate *a, const struct candidate *b)
{
	const struct choice_merits left = candidate_merits(a), right = candidate_merits(b);

	return choice_prefers(&left, &right);
}

/* False for those that are built, or hidden. */
bool
plan_index_is_usable(const struct index_def *def)
{
	return index_is_readable(def) && !bson_find_true(def->spec, STR("hidden"));
}

enum status
plan_index_best(const struct choosing *x, plan_suits *suits, struct candidate *ret)
{
	const struct index_def *def;
	struct candidate one;

	*ret = (struct candidate){ 0 };
	for (size_t i = 0; x->count && (def = index_live_at(x->p->db, i)) != NULL; i++) {
		if (!plan_index_is_usable(def) || !plan_index_has_all(x, def))
			continue;
		TRY(plan_candidate_make(x, def, &one));
		if ((one.points || one.bounded) && (!suits || suits(x, &one)) &&
		    (!ret->def || plan_candidate_is_better(&one, ret)))
			*ret = one;
	}
	return STATUS_OK;
}
