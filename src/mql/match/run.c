/* Running filters: how paths lead through arrays, and what holds for a value. */
#include <math.h>

#include "base/rand.h"
#include "bson/decimal.h"
#include "mql/finder.h"
#include "mql/match/match_int.h"
#include "mql/mql_int.h"

struct run {
	struct mql *q;
	int64_t position; /* see mql_match_run() */
	const struct mql_bound *let;
	bool goes_in;   /* a value that is an array is looked at as at the end of a path */
	bool *found;    /* of MQL_NODE_ALL while it runs: which of its values are there */
	size_t missing; /* and how many are not, so far */
	struct mql_finder finder;
};

static enum status run_node(struct run *r, const struct mql_node *node, bool of_value,
			    const struct bson_value *subject, bool *ret);

/* ---- One value ---- */

static bool
value_is_nan(const struct bson_value *v)
{
	return (v->type == BSON_DOUBLE && isnan(bson_real(v))) ||
	       (v->type == BSON_DECIMAL && bson_decimal_is_nan(bson_decimal(v)));
}

static bool
run_holds(enum mql_node_op op, int order)
{
	switch ((int)op) {
	case MQL_NODE_EQ:
		return order == 0;
	case MQL_NODE_GT:
		return order > 0;
	case MQL_NODE_GTE:
		return order >= 0;
	case MQL_NODE_LT:
		return order < 0;
	default:
		return order <= 0;
	}
}

/* Values are only compared with those of their own kind. A NULL `v` is a missing one. */
static bool
run_compare(struct mql *q, const struct mql_node *node, const struct bson_value *v)
{
	const struct bson_value *with = &node->value;
	bool can_be_equal = run_holds(node->op, 0);

	if (with->type == BSON_NULL)
		return can_be_equal && (!v || v->type == BSON_NULL);
	if (!v || bson_type_rank(v->type) != bson_type_rank(with->type)) {
		if (with->type == BSON_MAX_KEY)
			return node->op == MQL_NODE_LT || node->op == MQL_NODE_LTE;
		if (with->type == BSON_MIN_KEY)
			return node->op == MQL_NODE_GT || node->op == MQL_NODE_GTE;
		return false;
	}
	if (value_is_nan(v) || value_is_nan(with))
		return can_be_equal && value_is_nan(v) && value_is_nan(with);
	return run_holds(node->op, bson_compare_values(v, with, q->texts));
}

static enum status
run_regex(struct mql *q, const struct mql_regex_item *item, const struct bson_value *v, bool *ret)
{
	*ret = false;
	if (!v)
		return STATUS_OK;
	if (v->type == BSON_STRING || v->type == BSON_SYMBOL)
		return mql_regex_match(item->regex, q, bson_text(v), 0, ret, NULL);
	*ret = bson_equals(v, &item->value);
	return STATUS_OK;
}

static enum status
run_in(struct mql *q, const struct mql_node *node, const struct bson_value *v, bool *ret)
{
	const struct bson_value null = BSON_OF_NULL;
	size_t ignored;

	*ret = mql_value_set_find(&node->in.set, q->texts, v ? v : &null, &ignored);
	for (const struct mql_regex_item *i = node->in.regexes; i && !*ret; i = i->next)
		TRY(run_regex(q, i, v, ret));
	return STATUS_OK;
}

/* Notes a value of the document; true if all that are wanted have been seen. */
static bool
run_all_value(struct run *r, const struct mql_node *node, const struct bson_value *v)
{
	const struct bson_value null = BSON_OF_NULL;
	size_t at;

	assert(r->found && r->missing <= node->set.count);
	if ((!v || v->type != BSON_UNDEFINED) &&
	    mql_value_set_find(&node->set, r->q->texts, v ? v : &null, &at) && !r->found[at]) {
		r->found[at] = true;
		r->missing--;
	}
	return !r->missing;
}

static bool
run_type(const struct mql_node *node, const struct bson_value *v)
{
	if (!v)
		return false;
	if (v->type == BSON_MIN_KEY)
		return node->types.min;
	if (v->type == BSON_MAX_KEY)
		return node->types.max;
	return node->types.low >> v->type & 1;
}

/* Truncated towards 0; false for what an int64_t does not hold. */
static bool
value_to_integer(const struct bson_value *v, int64_t *ret)
{
	switch ((int)v->type) {
	case BSON_INT32:
	case BSON_INT64:
		*ret = bson_integer(v);
		return true;
	case BSON_DOUBLE:
		if (!(bson_real(v) >= -0x1p63 && bson_real(v) < 0x1p63))
			return false;
		*ret = (int64_t)bson_real(v);
		return true;
	case BSON_DECIMAL:
		return bson_decimal_to_int64(
			bson_decimal_round(bson_decimal(v), 0, BSON_DECIMAL_TRUNCATE, NULL), ret);
	default:
		return false;
	}
}

static bool
run_mod(const struct mql_node *node, const struct bson_value *v)
{
	int64_t n;

	if (!v || !value_to_integer(v, &n))
		return false;
	if (node->mod.divisor == -1)
		return node->mod.remainder == 0;
	return n % node->mod.divisor == node->mod.remainder;
}

static bool
value_bit(const struct bson_value *v, int64_t n, uint64_t position)
{
	if (v->type == BSON_BINARY)
		return position / 8 < bson_text(v).len &&
		       ((uint8_t)bson_text(v).ptr[position / 8] >> position % 8 & 1);
	return position > 62 ? n < 0 : (n >> position & 1);
}

/* Goes on while bits are as they have to be, or with `any` until one is. */
static enum status
run_bits(const struct mql_node *node, const struct bson_value *v, bool *ret)
{
	const struct mql_bits *bits = &node->bits;
	size_t count = bits->mask.ptr ? bits->mask.len * 8 : bits->count;
	int64_t n = 0;

	*ret = false;
	if (!v || (v->type != BSON_BINARY && !bson_to_int64(v, &n)))
		return STATUS_OK;
	for (size_t i = 0; i < count; i++) {
		uint64_t position = bits->mask.ptr ? i : bits->positions[i];

		TRY(step_count(i % 16 == 0));
		if (bits->mask.ptr && !((uint8_t)bits->mask.ptr[i / 8] >> i % 8 & 1))
			continue;
		if ((value_bit(v, n, position) == bits->set) == bits->any) {
			*ret = bits->any;
			return STATUS_OK;
		}
	}
	*ret = !bits->any;
	return STATUS_OK;
}

static enum status
run_elements(struct run *r, const struct mql_node *node, const struct bson_value *v,
	     int64_t position, bool *ret)
{
	bool of_value = node->op == MQL_NODE_ELEM_VALUE, goes_in = r->goes_in;
	struct bson_iter i;
	struct bson_element e;
	int64_t at = 0;

	*ret = false;
	if (!v || v->type != BSON_ARRAY)
		return STATUS_OK;
	/* An element that is an array is no array to go through: it is looked at as it is. */
	r->goes_in = false;
	for (bson_iter_begin(&i, bson_text(v)); !*ret && bson_iter_read(&i, &e); at++) {
		if (!of_value && !bson_is_container(&e.value))
			continue;
		TRY(run_node(r, node->first, of_value, &e.value, ret));
		if (*ret)
			r->position = position >= 0 ? position : at;
	}
	r->goes_in = goes_in;
	return STATUS_OK;
}

/* Whether the condition holds for a value alone; NULL: for a missing one. */
static enum status
run_value(struct run *r, const struct mql_node *node, const struct bson_value *v, int64_t position,
	  bool *ret)
{
	*ret = false;
	TRY(v && (bson_is_container(v) || v->type == BSON_STRING)
		    ? step_count_bytes(bson_text(v).len)
		    : step_count(1));
	switch (node->op) {
	case MQL_NODE_EQ:
	case MQL_NODE_GT:
	case MQL_NODE_GTE:
	case MQL_NODE_LT:
	case MQL_NODE_LTE:
		*ret = run_compare(r->q, node, v);
		return STATUS_OK;
	case MQL_NODE_IN:
		return run_in(r->q, node, v, ret);
	case MQL_NODE_EXISTS:
		*ret = v != NULL;
		return STATUS_OK;
	case MQL_NODE_TYPE:
		*ret = run_type(node, v);
		return STATUS_OK;
	case MQL_NODE_MOD:
		*ret = run_mod(node, v);
		return STATUS_OK;
	case MQL_NODE_REGEX:
		return run_regex(r->q, &node->regex, v, ret);
	case MQL_NODE_BITS:
		return run_bits(node, v, ret);
	case MQL_NODE_ALL:
		*ret = run_all_value(r, node, v);
		return STATUS_OK;
	case MQL_NODE_SIZE:
		*ret = v && v->type == BSON_ARRAY &&
		       bson_count(bson_text(v)) == (uint64_t)node->size;
		return STATUS_OK;
	case MQL_NODE_ELEM_VALUE:
	case MQL_NODE_ELEM_OBJECT:
		return run_elements(r, node, v, position, ret);
	case MQL_NODE_AND:
	case MQL_NODE_OR:
	case MQL_NODE_NOR:
	case MQL_NODE_NOT:
	case MQL_NODE_CONSTANT:
	case MQL_NODE_SAMPLE:
	case MQL_NODE_SCHEMA:
	case MQL_NODE_EXPR:
	case MQL_NODE_WHERE:
		break;
	}
	assert(false && "a condition on one value");
	return STATUS_OK;
}

/* ---- Paths ---- */

static enum status run_path(struct run *r, const struct mql_node *node, struct str document,
			    struct str path, int64_t position, bool *ret);

/* The end of a path: an array's elements, and then the array as a whole. */
static enum status
run_leaf(struct run *r, const struct mql_node *node, const struct bson_value *v, int64_t position,
	 bool *ret)
{
	struct bson_iter i;
	struct bson_element e;
	int64_t at = 0;

	static_assert(MQL_NODE_EQ < MQL_NODE_SIZE && MQL_NODE_ALL < MQL_NODE_SIZE &&
			      MQL_NODE_SIZE < MQL_NODE_ELEM_VALUE,
		      "what is asked of an array as a whole comes last");
	*ret = false;
	if (v->type == BSON_ARRAY && node->op < MQL_NODE_SIZE) {
		for (bson_iter_begin(&i, bson_text(v)); bson_iter_read(&i, &e); at++) {
			TRY(run_value(r, node, &e.value, position, ret));
			if (*ret) {
				r->position = position >= 0 ? position : at;
				return STATUS_OK;
			}
		}
	}
	return run_value(r, node, v, position, ret);
}

/* A path goes on in each of an array's documents, and in the element that its next name counts. */
static enum status
run_array(struct run *r, const struct mql_node *node, struct str array, struct str path,
	  int64_t position, bool *ret)
{
	bool last = !memchr(path.ptr, '.', path.len);
	struct str rest = path, name = str_cut(&rest, '.');
	uint32_t number = 0, at = 0;
	bool counts = mql_is_position(name, &number);
	struct bson_iter i;
	struct bson_element e;

	*ret = false;
	for (bson_iter_begin(&i, array); bson_iter_read(&i, &e) && !*ret; at++) {
		int64_t outer = position >= 0 ? position : (int64_t)at;

		TRY(step_count(1));
		if (e.value.type == BSON_DOCUMENT)
			TRY(run_path(r, node, bson_text(&e.value), path, outer, ret));
		if (!*ret && counts && at == number) {
			if (last)
				TRY(run_value(r, node, &e.value, outer, ret));
			else if (e.value.type == BSON_DOCUMENT)
				TRY(run_path(r, node, bson_text(&e.value), rest, outer, ret));
			else if (e.value.type == BSON_ARRAY)
				TRY(run_array(r, node, bson_text(&e.value), rest, outer, ret));
		}
		if (*ret)
			r->position = outer;
	}
	return STATUS_OK;
}

static enum status
run_path(struct run *r, const struct mql_node *node, struct str document, struct str path,
	 int64_t position, bool *ret)
{
	bool last = !memchr(path.ptr, '.', path.len);
	struct str name = str_cut(&path, '.');
	struct bson_value v;
	bool there;

	TRY(mql_finder_find(&r->finder, document, name, &v, &there));
	if (!there)
		return run_value(r, node, NULL, position, ret);
	if (last)
		return run_leaf(r, node, &v, position, ret);
	if (v.type == BSON_DOCUMENT)
		return run_path(r, node, bson_text(&v), path, position, ret);
	if (v.type == BSON_ARRAY)
		return run_array(r, node, bson_text(&v), path, position, ret);
	return run_value(r, node, NULL, position, ret);
}

/* ---- Nodes ---- */

/* True for this part of all documents. */
static bool
run_sample(double rate)
{
	uint64_t bits;

	rand_bytes(&bits, sizeof(bits));
	return (double)(bits >> 11) * 0x1p-53 < rate;
}

static enum status
run_expr(struct run *r, const struct mql_node *node, const struct bson_value *subject, bool *ret)
{
	const struct mql_env env = { .root = bson_text(subject), .bound = r->let };
	struct arena_mark mark = arena_mark(r->q->arena);
	struct bson_value v;

	TRY(mql_expr_run(node->expr, r->q, &env, &v));
	*ret = (int)v.type != MQL_MISSING && bson_is_true(&v);
	arena_reset(r->q->arena, mark);
	return STATUS_OK;
}

static enum status
run_where(struct run *r, const struct mql_node *node, const struct bson_value *subject, bool *ret)
{
	struct arena_mark mark = arena_mark(r->q->arena);

	TRY(mql_script_where(node->script, r->q, bson_text(subject), ret));
	arena_reset(r->q->arena, mark);
	return STATUS_OK;
}

/* A condition on the value itself, or on what is at the node's path in it. */
static enum status
run_subject(struct run *r, const struct mql_node *node, bool of_value,
	    const struct bson_value *subject, bool *ret)
{
	if (!of_value)
		return run_path(r, node, bson_text(subject), node->path, -1, ret);
	return r->goes_in ? run_leaf(r, node, subject, -1, ret)
			  : run_value(r, node, subject, -1, ret);
}

static enum status
run_all(struct run *r, const struct mql_node *node, bool of_value, const struct bson_value *subject,
	bool *ret)
{
	struct arena_mark mark = arena_mark(r->q->arena);
	enum status status;

	/* Conditions of $all have none inside, so no other one uses `found` meanwhile. */
	assert(!r->found);
	r->found = arena_zalloc(r->q->arena, node->set.count);
	if (!r->found)
		return mql_full(r->q);
	TRY(step_count_bytes(node->set.count));
	r->missing = node->set.count;
	/* Regular expressions are equal to no value: each has a node of its own. */
	for (size_t i = 0; i < node->set.count && mql_value_set_has(&node->set, 1 << BSON_REGEX);
	     i++) {
		r->found[i] = mql_value_set_at(&node->set, i).type == BSON_REGEX;
		r->missing -= r->found[i];
	}
	status = run_subject(r, node, of_value, subject, ret);
	r->found = NULL;
	arena_reset(r->q->arena, mark);
	return status;
}

static enum status
run_node(struct run *r, const struct mql_node *node, bool of_value,
	 const struct bson_value *subject, bool *ret)
{
	bool all = node->op == MQL_NODE_AND;
	int64_t position = r->position;

	TRY(step_count(1));
	switch ((int)node->op) {
	case MQL_NODE_CONSTANT:
		*ret = node->truth;
		return STATUS_OK;
	case MQL_NODE_SAMPLE:
		*ret = run_sample(node->rate);
		return STATUS_OK;
	case MQL_NODE_SCHEMA:
		return mql_schema_run(node->schema, r->q, subject, ret);
	case MQL_NODE_EXPR:
		return run_expr(r, node, subject, ret);
	case MQL_NODE_WHERE:
		return run_where(r, node, subject, ret);
	case MQL_NODE_ALL:
		return run_all(r, node, of_value, subject, ret);
	case MQL_NODE_AND:
	case MQL_NODE_OR:
		*ret = all;
		for (const struct mql_node *n = node->first; n && *ret == all; n = n->next)
			TRY(run_node(r, n, of_value, subject, ret));
		/* As in MongoDB, a choice tells no position, and neither does what failed. */
		if (all ? !*ret : node->first && node->first->next)
			r->position = position;
		return STATUS_OK;
	case MQL_NODE_NOR:
	case MQL_NODE_NOT:
		assert(node->first && (node->op == MQL_NODE_NOR || !node->first->next));
		*ret = false;
		for (const struct mql_node *n = node->first; n && !*ret; n = n->next)
			TRY(run_node(r, n, of_value, subject, ret));
		*ret = !*ret;
		r->position = position;
		return STATUS_OK;
	default:
		return run_subject(r, node, of_value, subject, ret);
	}
}

enum status
mql_match_run_scoped(const struct mql_match *m, struct mql *q, struct str document,
		     const struct mql_bound *let, bool *ret, int64_t *ret_position)
{
	const struct bson_value v = BSON_OF_DOCUMENT(document);
	struct run r = { .q = q, .position = -1, .let = let };
	bool matches = false;
	enum status status;

	assert(!m->of_value);
	mql_finder_init(&r.finder, q->arena);
	status = run_node(&r, m->root, false, &v, &matches);
	if (r.finder.own) /* only long lists have any */
		mql_finder_fini(&r.finder);
	TRY(status);
	*ret = matches;
	if (ret_position)
		*ret_position = matches ? r.position : -1;
	return STATUS_OK;
}

enum status
mql_match_run(const struct mql_match *m, struct mql *q, struct str document, bool *ret,
	      int64_t *ret_position)
{
	return mql_match_run_scoped(m, q, document, NULL, ret, ret_position);
}

static enum status
match_run_value(const struct mql_match *m, struct mql *q, const struct bson_value *v, bool goes_in,
		bool *ret)
{
	struct run r = { .q = q, .position = -1, .goes_in = goes_in };
	enum status status = STATUS_OK;
	bool matches = false;

	mql_finder_init(&r.finder, q->arena);
	if (m->of_value || v->type == BSON_DOCUMENT)
		status = run_node(&r, m->root, m->of_value, v, &matches);
	if (r.finder.own) /* only long lists have any */
		mql_finder_fini(&r.finder);
	TRY(status);
	*ret = matches;
	return STATUS_OK;
}

enum status
mql_match_run_value(const struct mql_match *m, struct mql *q, const struct bson_value *v, bool *ret)
{
	return match_run_value(m, q, v, false, ret);
}

enum status
mql_match_run_member(const struct mql_match *m, struct mql *q, const struct bson_value *v,
		     bool *ret)
{
	return match_run_value(m, q, v, true, ret);
}
