#include "door/cql/run/where_index.h"

/* An index while it is weighed. */
struct weighing {
	struct run *run;
	const struct where *where;
	const struct table_index *index;
	struct where_index *choice;
	struct index_typed_value values[TABLE_INDEX_COLUMNS];
	struct index_typed_value bounds[2];
};

/* The part of a column that a term asks for by equality. False: it asks for none. */
static bool
part_of_term(const struct where_term *t, enum index_typed_part *ret)
{
	const struct cql_type *type = t->columns[0]->type;

	if (t->relation->left == CQL_LEFT_ELEMENT) {
		*ret = INDEX_TYPED_ENTRIES;
		return true;
	}
	if (t->relation->left == CQL_LEFT_JSON) {
		*ret = t->path.is_text ? INDEX_TYPED_JSON_TEXT : INDEX_TYPED_JSON;
		return t->relation->op == CQL_OP_EQ;
	}
	if (t->relation->left == CQL_LEFT_TUPLE && t->column_count == 1) {
		*ret = INDEX_TYPED_COLUMN;
		return t->relation->op == CQL_OP_EQ;
	}
	if (t->relation->left != CQL_LEFT_COLUMN)
		return false;
	switch ((int)t->relation->op) {
	case CQL_OP_EQ:
		*ret = INDEX_TYPED_COLUMN;
		return true;
	case CQL_OP_CONTAINS:
		*ret = type->kind == CQL_TYPE_SET ? INDEX_TYPED_KEYS : INDEX_TYPED_VALUES;
		return cql_type_is_multicell(type);
	case CQL_OP_CONTAINS_KEY:
		*ret = INDEX_TYPED_KEYS;
		return cql_type_is_multicell(type);
	default:
		return false;
	}
}

/* The value of (a) = (1), a clustering column. */
static enum status
value_of_tuple(struct run *run, const struct where_term *t, struct doc_scalar *ret)
{
	struct cql_elements e;
	struct cql_value v;

	cql_elements_init(&e, t->type, t->values[0].bytes);
	if (!cql_elements_next(&e, &v) || v.presence != CQL_SET)
		return request_fail(run->r, CQL_CODE_INVALID,
				    "Invalid null value in condition for column %.*s",
				    STR_ARG(t->columns[0]->name));
	return value_to_key(run->q, t->columns[0]->type, v.bytes, ret);
}

/* A value as the column's cells have it. */
static enum status
value_of_term(struct run *run, const struct where_term *t, enum index_typed_part part,
	      struct index_typed_value *ret)
{
	const struct schema_column *c = t->columns[0];
	struct doc_scalar *second;

	*ret = (struct index_typed_value){ .second = NULL };
	if (t->relation->left == CQL_LEFT_TUPLE)
		return value_of_tuple(run, t, &ret->first);
	if (part == INDEX_TYPED_KEYS)
		return value_to_key(run->q, t->type, t->values[0].bytes, &ret->first);
	if (part == INDEX_TYPED_COLUMN && c->kind <= SCHEMA_CLUSTERING)
		return value_to_key(run->q, c->type, t->values[0].bytes, &ret->first);
	if (part != INDEX_TYPED_ENTRIES)
		return cql_value_to_scalar(run->q, t->type, t->values[0].bytes, &ret->first);
	second = arena_alloc(run->r->arena, sizeof(*second));
	if (!second)
		return STATUS_LIMIT;
	ret->second = second;
	TRY(value_to_key(run->q, c->type->args[0], t->key_value.bytes, &ret->first));
	return cql_value_to_scalar(run->q, t->type, t->values[0].bytes, second);
}

/* A term on a path asks for the same path; of others neither has one. */
static bool
is_of_path(const struct where_term *t, const struct table_index_column *column)
{
	if (t->path.count != column->step_count)
		return false;
	for (size_t i = 0; i < t->path.count; i++)
		if (!str_eq(t->path.keys[i], column->steps[i]))
			return false;
	return true;
}

static bool
is_of_column(const struct where_term *t, const struct table_index_column *column)
{
	return t->relation->left != CQL_LEFT_TOKEN && t->columns[0]->stored &&
	       t->columns[0]->stored->id == column->column && is_of_path(t, column);
}

/* Takes the first term that asks for the column's value. False: there is none. */
static enum status
take_equal(struct weighing *g, const struct table_index_column *column, bool *ret)
{
	struct where_index *choice = g->choice;

	*ret = false;
	for (size_t i = 0; i < g->where->count && !*ret; i++) {
		const struct where_term *t = &g->where->terms[i];
		enum index_typed_part part;

		if (!is_of_column(t, column) || !part_of_term(t, &part) || part != column->part ||
		    t->value_count != 1)
			continue;
		TRY(value_of_term(g->run, t, part, &g->values[choice->interval.equal_count]));
		choice->interval.equal_count++;
		choice->served[i] = *ret = true;
	}
	return STATUS_OK;
}

/* Frozen values are stored as bytes in no order of theirs; parts of collections have no bounds. */
static bool
is_bound_of(const struct where_term *t, const struct table_index_column *column)
{
	if (!is_of_column(t, column) || t->columns[0]->type->kind >= CQL_NATIVE_COUNT)
		return false;
	if (t->relation->left == CQL_LEFT_JSON)
		return column->part == (t->path.is_text ? INDEX_TYPED_JSON_TEXT : INDEX_TYPED_JSON);
	return t->relation->left == CQL_LEFT_COLUMN && column->part == INDEX_TYPED_COLUMN;
}

/* Takes the terms that are bounds of the column. */
static enum status
take_bounds(struct weighing *g, const struct table_index_column *column)
{
	struct table_index_interval *interval = &g->choice->interval;

	for (size_t i = 0; i < g->where->count; i++) {
		const struct where_term *t = &g->where->terms[i];
		enum cql_operator op = t->relation->op;
		bool lower = op == CQL_OP_GT || op == CQL_OP_GE;
		struct index_typed_value *to = &g->bounds[!lower];

		if (!is_bound_of(t, column) || (!lower && op != CQL_OP_LT && op != CQL_OP_LE))
			continue;
		TRY(value_of_term(g->run, t, column->part, to));
		if (lower) {
			interval->low = to;
			interval->low_exclusive = op == CQL_OP_GT;
		} else {
			interval->high = to;
			interval->high_exclusive = op == CQL_OP_LT;
		}
		g->choice->served[i] = true;
	}
	return STATUS_OK;
}

/*
 * Whether what the term says implies the condition. `*ret_same`: it says nothing more, so a row
 * of the index need not be checked for it.
 */
static enum status
term_implies(struct run *run, const struct where_term *t, const struct index_typed_condition *c,
	     bool *ret, bool *ret_same)
{
	enum cql_operator op = t->relation->op;
	bool lower = op == CQL_OP_GT || op == CQL_OP_GE,
	     exclusive = op == CQL_OP_GT || op == CQL_OP_LT;
	struct index_typed_value v;
	int order;

	*ret = *ret_same = false;
	if (t->relation->left != CQL_LEFT_COLUMN || t->value_count != 1 ||
	    (op != CQL_OP_EQ && !lower && op != CQL_OP_LT && op != CQL_OP_LE))
		return STATUS_OK;
	*ret = c->op == INDEX_TYPED_NOT_NULL;
	if (*ret)
		return STATUS_OK;
	TRY(value_of_term(run, t, INDEX_TYPED_COLUMN, &v));
	if (op == CQL_OP_EQ)
		return index_typed_holds(c, &v.first, ret);
	TRY(index_typed_compare(&v.first, &c->value, &order));
	if (c->op == INDEX_TYPED_GT || c->op == INDEX_TYPED_GE)
		*ret = lower &&
		       (order > 0 || (order == 0 && (exclusive || c->op == INDEX_TYPED_GE)));
	else if (c->op == INDEX_TYPED_LT || c->op == INDEX_TYPED_LE)
		*ret = !lower &&
		       (order < 0 || (order == 0 && (exclusive || c->op == INDEX_TYPED_LE)));
	*ret_same = *ret && order == 0 &&
		    exclusive == (c->op == INDEX_TYPED_GT || c->op == INDEX_TYPED_LT);
	return STATUS_OK;
}

/* Whether all rows that the statement asks for have entries. */
static enum status
takes_all(struct weighing *g, bool *ret)
{
	const struct table_index *index = g->index;

	*ret = true;
	for (size_t i = 0; *ret && i < index->condition_count; i++) {
		const struct index_typed_condition *c = &index->conditions[i];
		bool any = false;

		for (size_t j = 0; j < g->where->count; j++) {
			const struct where_term *t = &g->where->terms[j];
			bool implies, same;

			if (t->relation->left == CQL_LEFT_TOKEN || !t->columns[0]->stored ||
			    t->columns[0]->stored->id != c->column)
				continue;
			TRY(term_implies(g->run, t, c, &implies, &same));
			any = any || implies;
			if (same ||
			    (implies && t->relation->op == CQL_OP_EQ && c->op == INDEX_TYPED_EQ))
				g->choice->served[j] = true;
		}
		*ret = any;
	}
	return STATUS_OK;
}

/* What the index answers of the statement, as `g->choice`. */
static enum status
weigh(struct weighing *g)
{
	const struct table_index *index = g->index;
	size_t at = 0;
	bool equal = true, all;

	g->choice->index = index;
	g->choice->number = index->number;
	g->choice->interval.equal = g->values;
	TRY(takes_all(g, &all));
	if (!all)
		return STATUS_OK;
	for (; equal && at < index->column_count; at += equal)
		TRY(take_equal(g, &index->columns[at], &equal));
	return at < index->column_count ? take_bounds(g, &index->columns[at]) : STATUS_OK;
}

/* What an index begins with that the primary key may answer as well is answered by that. */
static size_t
worth_of_first(const struct where *w, const struct where_index *choice)
{
	for (size_t i = 0; i < w->count; i++)
		if (choice->served[i] && is_of_column(&w->terms[i], &choice->index->columns[0]))
			return w->terms[i].columns[0]->kind == SCHEMA_PARTITION    ? 0
			       : w->terms[i].columns[0]->kind == SCHEMA_CLUSTERING ? 1
										   : 2;
	return 0;
}

/* More for a column with a value than for both bounds of one; 0: the index is no help. */
static size_t
worth(const struct where *w, const struct where_index *choice, bool allows)
{
	const struct table_index_interval *i = &choice->interval;
	size_t bounds = (size_t)(i->low != NULL) + (i->high != NULL);

	if (!i->equal_count && (!allows || !bounds))
		return 0;
	/* Of two that say the same, the one of fewer rows. */
	return 6 * (3 * i->equal_count + bounds) + 2 * worth_of_first(w, choice) +
	       (choice->index->condition_count > 0);
}

static enum status
weigh_one(struct run *run, const struct where *w, const struct table_index *index,
	  struct where_index *ret)
{
	struct weighing *g = arena_zalloc(run->r->arena, sizeof(*g));

	*ret = (struct where_index){ 0 };
	ret->served = arena_zalloc(run->r->arena, w->count + 1);
	if (!g || !ret->served)
		return STATUS_LIMIT;
	g->run = run;
	g->where = w;
	g->index = index;
	g->choice = ret;
	return weigh(g);
}

enum status
where_index_choose(struct run *run, const struct where *w, bool allows, uint64_t number,
		   struct where_index *ret)
{
	const struct table_index *building = NULL;
	const struct table_index *indexes = NULL;
	size_t count = 0, best = 0;

	*ret = (struct where_index){ 0 };
	if (run->table->db)
		indexes = table_indexes_of(run->table->db, &count);
	for (size_t i = 0; i < count; i++) {
		struct where_index one;

		if (number && indexes[i].number != number)
			continue;
		TRY(weigh_one(run, w, &indexes[i], &one));
		if (worth(w, &one, allows) <= best)
			continue;
		if (!indexes[i].is_ready) {
			building = &indexes[i];
			continue;
		}
		best = worth(w, &one, allows);
		*ret = one;
	}
	if (ret->index || !building || allows || number)
		return STATUS_OK;
	return request_fail(run->r, CQL_CODE_INVALID,
			    building->has_failed
				    ? "The secondary index '%.*s' could not be built"
				    : "The secondary index '%.*s' is not yet available as it is "
				      "still being built",
			    STR_ARG(building->name));
}
