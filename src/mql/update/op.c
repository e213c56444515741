/* What each operator does at the end of its path. */
#include <math.h>

#include "bson/decimal.h"
#include "bson/order.h"
#include "mql/mql_int.h"
#include "mql/number.h"
#include "mql/update/update_int.h"

/* The same type and the same bytes: 1 and 1.0 are not. */
static enum status
values_are_same(struct mql *q, const struct bson_value *a, const struct bson_value *b, bool *ret)
{
	struct buf left = mql_buf(q, BSON_MOST_BYTES), right = mql_buf(q, BSON_MOST_BYTES);
	enum status status;

	*ret = false;
	if (a->type != b->type)
		return STATUS_OK;
	bson_value_write(&left, a);
	bson_value_write(&right, b);
	status = buf_status(&left) != STATUS_OK ? buf_status(&left) : buf_status(&right);
	if (status == STATUS_OK) {
		status = step_count_bytes(left.len);
		*ret = str_eq(buf_str(&left), buf_str(&right));
	}
	buf_release(&left);
	buf_release(&right);
	if (status == STATUS_LIMIT)
		return mql_full(q);
	return status;
}

/* Gives the node, or the one that is to be created, a value. */
static enum status
op_put(struct mql *q, struct mql_tree *node, const struct bson_value *v, struct mql_applied *ret)
{
	struct bson_value old;
	bool same;

	if (!node) {
		*ret = (struct mql_applied){ .changed = true, .create = true, .value = *v };
		return STATUS_OK;
	}
	TRY(mql_tree_value(q, node, &old));
	TRY(values_are_same(q, &old, v, &same));
	if (same)
		return STATUS_OK;
	*node = (struct mql_tree){
		.name = node->name, .value = *v, .next = node->next, .prev = node->prev
	};
	ret->changed = true;
	return STATUS_OK;
}

/*
 * As MongoDB tells whether arithmetic has changed a number: 0.0 is no change of -0.0, and NaN is
 * one of NaN, from which arithmetic leads nowhere else.
 */
static bool
number_is_same(const struct bson_value *old, const struct bson_value *new)
{
	if (old->type != new->type)
		return false;
	if (old->type == BSON_DOUBLE)
		return !(bson_real(old) < bson_real(new)) && !(bson_real(old) > bson_real(new)) &&
		       !isnan(bson_real(new));
	return old->type == BSON_DECIMAL && !bson_decimal_is_nan(bson_decimal(old)) &&
	       bson_compare_numbers(old, new) == 0;
}

static enum status
op_arithmetic(struct mql *q, const struct mql_modifier *m, struct mql_tree *node,
	      struct mql_applied *ret)
{
	bool adds = m->op == MQL_UPDATE_INC;
	const char *name = adds ? "$inc" : "$mul";
	struct bson_value result = m->value;
	const struct bson_value zero = BSON_OF_INT32(0);

	if (!node) {
		if (!adds)
			(void)mql_multiply(&m->value, &zero, &result);
		return op_put(q, NULL, &result, ret);
	}
	if (!bson_is_number(&node->value))
		return mql_fail(q, MQL_TYPE_MISMATCH,
				"Cannot apply %s to a value of non-numeric type. The document has "
				"the field '%.*s' of non-numeric type %s",
				name, STR_ARG(node->name), mql_type_name(&node->value));
	if (!(adds ? mql_add : mql_multiply)(&node->value, &m->value, &result))
		return mql_fail(q, MQL_BAD_VALUE,
				"Failed to apply %s operations to current value (%s)", name,
				mql_text(q, STR(""), &node->value));
	return number_is_same(&node->value, &result) ? STATUS_OK : op_put(q, node, &result, ret);
}

static enum status
op_least_or_most(struct mql *q, const struct mql_modifier *m, struct mql_tree *node,
		 struct mql_applied *ret)
{
	struct bson_value old;
	int order;

	if (!node)
		return op_put(q, NULL, &m->value, ret);
	TRY(mql_tree_value(q, node, &old));
	order = bson_compare_values(&m->value, &old, q->texts);
	if (m->op == MQL_UPDATE_MIN ? order >= 0 : order <= 0)
		return STATUS_OK;
	return op_put(q, node, &m->value, ret);
}

static enum status
op_current_date(struct mql *q, const struct mql_modifier *m, struct mql_tree *node,
		struct mql_applied *ret)
{
	struct bson_value now = BSON_OF_DATE(q->now_ms);

	if (m->value.type == BSON_TIMESTAMP)
		now = (struct bson_value){ .type = BSON_TIMESTAMP,
					   .as_n = (int64_t)q->cluster_time };
	return op_put(q, node, &now, ret);
}

static enum status
op_bit(struct mql *q, const struct mql_modifier *m, struct mql_tree *node, struct mql_applied *ret)
{
	struct bson_value result = node ? node->value : BSON_OF_INT32(0);
	struct bson_iter i;
	struct bson_element e;

	if (result.type != BSON_INT32 && result.type != BSON_INT64)
		return mql_fail(q, MQL_BAD_VALUE,
				"Cannot apply $bit to a value of non-integral type. The document "
				"has the field '%.*s' of non-integer type %s",
				STR_ARG(node->name), mql_type_name(&node->value));
	for (bson_iter_begin(&i, bson_text(&m->value)); bson_iter_read(&i, &e);) {
		if (e.value.type == BSON_INT64)
			result.type = BSON_INT64;
		if (mql_is(e.name, "and"))
			result.as_n &= bson_integer(&e.value);
		else if (mql_is(e.name, "or"))
			result.as_n |= bson_integer(&e.value);
		else
			result.as_n ^= bson_integer(&e.value);
	}
	return op_put(q, node, &result, ret);
}

/* ---- Arrays ---- */

static enum status
array_has(struct mql *q, struct mql_tree *array, const struct bson_value *v, bool *ret)
{
	struct bson_value old;

	*ret = false;
	for (const struct mql_tree *n = array->first; n && !*ret; n = n->next) {
		TRY(step_count(1));
		TRY(mql_tree_value(q, n, &old));
		*ret = bson_compare_values(&old, v, q->texts) == 0;
	}
	return STATUS_OK;
}

static enum status
array_append(struct mql *q, struct mql_tree *array, const struct bson_value *v,
	     struct mql_applied *ret)
{
	TRY(mql_tree_append(q, array, STR(""), v, NULL));
	ret->appended++;
	ret->changed = true;
	return STATUS_OK;
}

/* Puts a value behind the others; in a set only if it is not there. */
static enum status
array_add(struct mql *q, const struct mql_modifier *m, struct mql_tree *array,
	  const struct bson_value *v, struct mql_applied *ret)
{
	bool has = false;

	if (m->op == MQL_UPDATE_ADD_TO_SET)
		TRY(array_has(q, array, v, &has));
	return has ? STATUS_OK : array_append(q, array, v, ret);
}

/* Puts those values of $each behind the others that are not there, in their own order. */
static enum status
array_add_each(struct mql *q, const struct mql_value_set *set, struct mql_tree *array,
	       struct mql_applied *ret)
{
	bool *has = arena_zalloc(q->arena, set->count);
	struct mql_value_set adds;
	struct bson_value v;
	size_t at;

	TRY(mql_value_set_copy(q, set, &adds));
	if (!has)
		return mql_full(q);
	for (const struct mql_tree *n = array->first; n; n = n->next) {
		TRY(step_count(1));
		TRY(mql_tree_value(q, n, &v));
		if (mql_value_set_find(set, q->texts, &v, &at))
			has[at] = true;
	}
	TRY(step_count_bytes(set->count));
	adds.count = 0;
	for (size_t i = 0; i < set->count; i++)
		if (!has[i])
			adds.places[adds.count++] = set->places[i];
	TRY(mql_value_set_by_place(q, &adds));
	for (size_t i = 0; i < adds.count; i++) {
		v = mql_value_set_at(&adds, i);
		TRY(array_append(q, array, &v, ret));
	}
	return STATUS_OK;
}

static enum status
op_append(struct mql *q, const struct mql_modifier *m, struct mql_tree *node,
	  struct mql_applied *ret)
{
	struct mql_tree made = { .value = BSON_OF_ARRAY(BSON_EMPTY) }, *array = node ? node : &made;
	struct bson_iter i;
	struct bson_element e;

	if (array->value.type != BSON_ARRAY) {
		if (m->op == MQL_UPDATE_PUSH)
			return mql_fail(q, MQL_BAD_VALUE,
					"The field '%.*s' must be an array but is of type %s",
					STR_ARG(m->path), mql_type_name(&array->value));
		return mql_fail(q, MQL_BAD_VALUE,
				"Cannot apply $addToSet to non-array field. Field named '%.*s' has "
				"non-array type %s",
				STR_ARG(array->name), mql_type_name(&array->value));
	}
	TRY(mql_tree_open(q, array));
	if (m->push) {
		TRY(mql_push_run(q, m, array, &ret->appended, &ret->changed));
	} else if (m->each && m->op == MQL_UPDATE_ADD_TO_SET) {
		TRY(array_add_each(q, &m->set, array, ret));
	} else if (m->each) {
		for (bson_iter_begin(&i, bson_text(&m->value)); bson_iter_read(&i, &e);)
			TRY(array_add(q, m, array, &e.value, ret));
	} else {
		TRY(array_add(q, m, array, &m->value, ret));
	}
	if (node)
		return STATUS_OK;
	ret->changed = ret->create = true;
	ret->appended = 0;
	return mql_tree_value(q, &made, &ret->value);
}

static enum status
op_pop(struct mql *q, const struct mql_modifier *m, struct mql_tree *node, struct mql_applied *ret)
{
	if (!node)
		return STATUS_OK;
	if (node->value.type != BSON_ARRAY)
		return mql_fail(q, MQL_TYPE_MISMATCH,
				"Path '%.*s' contains an element of non-array type '%s'",
				STR_ARG(m->path), mql_type_name(&node->value));
	TRY(mql_tree_open(q, node));
	if (!node->count)
		return STATUS_OK;
	mql_tree_remove(node, bson_integer(&m->value) > 0 ? node->last : node->first);
	ret->changed = true;
	return STATUS_OK;
}

/* Whether $pull or $pullAll takes an element out. */
static enum status
pull_takes(struct mql *q, const struct mql_modifier *m, const struct bson_value *v, bool *ret)
{
	size_t ignored;

	*ret = false;
	if (m->match)
		return mql_match_run_member(m->match, q, v, ret);
	*ret = m->op == MQL_UPDATE_PULL ? bson_compare_values(v, &m->value, q->texts) == 0
					: mql_value_set_find(&m->set, q->texts, v, &ignored);
	return STATUS_OK;
}

static enum status
op_pull(struct mql *q, const struct mql_modifier *m, struct mql_tree *node, struct mql_applied *ret)
{
	struct mql_tree **kept;
	struct bson_value v;
	size_t count = 0;
	bool takes;

	if (!node)
		return STATUS_OK;
	if (node->value.type != BSON_ARRAY)
		return mql_fail(q, MQL_BAD_VALUE, "Cannot apply $pull to a non-array value");
	TRY(mql_tree_open(q, node));
	kept = arena_alloc(q->arena, node->count * sizeof(*kept));
	if (!kept)
		return mql_full(q);
	for (struct mql_tree *n = node->first; n; n = n->next) {
		TRY(step_count(1));
		TRY(mql_tree_value(q, n, &v));
		TRY(pull_takes(q, m, &v, &takes));
		if (!takes)
			kept[count++] = n;
	}
	ret->changed = count < node->count;
	if (ret->changed)
		mql_tree_link(node, kept, count);
	return STATUS_OK;
}

enum status
mql_update_apply(struct mql *q, const struct mql_modifier *m, struct mql_tree *node,
		 struct mql_applied *ret)
{
	*ret = (struct mql_applied){ 0 };
	switch (m->op) {
	case MQL_UPDATE_SET:
	case MQL_UPDATE_SET_ON_INSERT:
	case MQL_UPDATE_RENAME:
		return op_put(q, node, &m->value, ret);
	case MQL_UPDATE_UNSET:
		ret->changed = ret->remove = node != NULL;
		return STATUS_OK;
	case MQL_UPDATE_INC:
	case MQL_UPDATE_MUL:
		return op_arithmetic(q, m, node, ret);
	case MQL_UPDATE_MIN:
	case MQL_UPDATE_MAX:
		return op_least_or_most(q, m, node, ret);
	case MQL_UPDATE_CURRENT_DATE:
		return op_current_date(q, m, node, ret);
	case MQL_UPDATE_PUSH:
	case MQL_UPDATE_ADD_TO_SET:
		return op_append(q, m, node, ret);
	case MQL_UPDATE_POP:
		return op_pop(q, m, node, ret);
	case MQL_UPDATE_PULL:
	case MQL_UPDATE_PULL_ALL:
		return op_pull(q, m, node, ret);
	case MQL_UPDATE_BIT:
		return op_bit(q, m, node, ret);
	case MQL_UPDATE_SOURCE:
		break;
	}
	return STATUS_OK;
}
