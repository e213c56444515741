/* Running schemas. Functions call themselves for schemas inside: MQL_DEPTH deep at most. */
#include "bson/decimal.h"
#include "mql/schema/schema_int.h"

/* ---- Values ---- */

static bool
run_type(const struct mql_types *types, const struct bson_value *v)
{
	if (v->type == BSON_MIN_KEY)
		return types->min;
	if (v->type == BSON_MAX_KEY)
		return types->max;
	return types->low >> v->type & 1;
}

static enum status
run_enum(const struct mql_rule *rule, const struct bson_value *v, bool *ret)
{
	size_t ignored;

	TRY(bson_is_container(v) ? step_count_bytes(bson_text(v).len) : STATUS_OK);
	*ret = mql_value_set_find(&rule->values, NULL, v, &ignored);
	return STATUS_OK;
}

/* A NaN fulfils only a bound that is one, too. */
static bool
run_bound(const struct mql_rule *rule, const struct bson_value *v)
{
	bool nan = bson_decimal_is_nan(bson_decimal_of(v));
	bool bound_nan = bson_decimal_is_nan(bson_decimal_of(&rule->bound));
	int order = bson_compare_numbers(v, &rule->bound);

	if (nan || bound_nan)
		return nan && bound_nan && !rule->exclusive;
	if (rule->op == MQL_RULE_MAXIMUM)
		order = -order;
	return rule->exclusive ? order > 0 : order >= 0;
}

/* By Decimal128, in which 0.3 is a multiple of 0.1. */
static bool
run_multiple(const struct mql_rule *rule, const struct bson_value *v)
{
	struct bson_decimal rest = bson_decimal_modulo(bson_decimal_of(v),
						       bson_decimal_of(&rule->bound), NULL);

	return !bson_decimal_is_nan(rest) && bson_decimal_is_zero(rest);
}

static enum status
run_length(const struct mql_rule *rule, struct str text, bool *ret)
{
	int64_t count = 0;

	TRY(step_count_bytes(text.len));
	for (size_t i = 0; i < text.len; i++)
		count += ((uint8_t)text.ptr[i] & 0xc0) != 0x80;
	*ret = rule->op == MQL_RULE_MIN_LENGTH ? count >= rule->count : count <= rule->count;
	return STATUS_OK;
}

/* ---- Arrays ---- */

static enum status
run_rest(const struct mql_schema_rest *rest, struct mql *q, const struct bson_value *v, bool *ret)
{
	*ret = !rest->forbidden;
	return rest->schema ? mql_schema_run(rest->schema, q, v, ret) : STATUS_OK;
}

static enum status
run_items(const struct mql_rule *rule, struct mql *q, struct str array, bool *ret)
{
	const struct mql_schema_item *item = rule->items.tuple;
	struct bson_iter i;
	struct bson_element e;

	*ret = true;
	for (bson_iter_begin(&i, array); *ret && bson_iter_read(&i, &e);) {
		TRY(step_count(1));
		if (rule->items.every) {
			TRY(mql_schema_run(rule->items.every, q, &e.value, ret));
		} else if (item) {
			TRY(mql_schema_run(item->schema, q, &e.value, ret));
			item = item->next;
		} else {
			TRY(run_rest(&rule->items.more, q, &e.value, ret));
		}
	}
	return STATUS_OK;
}

static enum status
run_unique(struct mql *q, struct str array, bool *ret)
{
	struct arena_mark mark = arena_mark(q->arena);
	struct mql_value_set items;

	TRY(mql_value_set_of(q, array, NULL, &items));
	*ret = items.count == items.all_count;
	arena_reset(q->arena, mark);
	return STATUS_OK;
}

/* ---- Objects ---- */

static enum status
run_required(struct str names, struct str document, bool *ret)
{
	struct bson_iter i;
	struct bson_element e;

	*ret = true;
	for (bson_iter_begin(&i, names); *ret && bson_iter_read(&i, &e);) {
		TRY(step_count_bytes(document.len));
		*ret = bson_find(document, bson_text(&e.value), NULL);
	}
	return STATUS_OK;
}

static const struct mql_schema_item *
find_named(const struct mql_rule *rule, struct str name)
{
	size_t from = 0, to = rule->properties.named_count;

	while (from < to) {
		size_t middle = from + (to - from) / 2;
		int order = str_cmp(name, rule->properties.named[middle]->name);

		if (!order)
			return rule->properties.named[middle];
		if (order < 0)
			to = middle;
		else
			from = middle + 1;
	}
	return NULL;
}

static enum status
run_property(const struct mql_rule *rule, struct mql *q, const struct bson_element *e, bool *ret)
{
	const struct mql_schema_item *named = find_named(rule, e->name);
	bool known = named != NULL, matches;

	*ret = true;
	if (named)
		TRY(mql_schema_run(named->schema, q, &e->value, ret));
	for (const struct mql_schema_item *p = rule->properties.patterns; p && *ret; p = p->next) {
		TRY(mql_regex_match(p->regex, q, e->name, 0, &matches, NULL));
		if (!matches)
			continue;
		known = true;
		TRY(mql_schema_run(p->schema, q, &e->value, ret));
	}
	if (*ret && !known)
		return run_rest(&rule->properties.others, q, &e->value, ret);
	return STATUS_OK;
}

static enum status
run_properties(const struct mql_rule *rule, struct mql *q, struct str document, bool *ret)
{
	struct bson_iter i;
	struct bson_element e;

	*ret = true;
	for (bson_iter_begin(&i, document); *ret && bson_iter_read(&i, &e);) {
		TRY(step_count(1));
		TRY(run_property(rule, q, &e, ret));
	}
	return STATUS_OK;
}

static enum status
run_dependencies(const struct mql_rule *rule, struct mql *q, const struct bson_value *v, bool *ret)
{
	*ret = true;
	for (const struct mql_schema_item *d = rule->list; d && *ret; d = d->next) {
		TRY(step_count_bytes(bson_text(v).len));
		if (!bson_find(bson_text(v), d->name, NULL))
			continue;
		if (d->schema)
			TRY(mql_schema_run(d->schema, q, v, ret));
		else
			TRY(run_required(bson_text(&d->value), bson_text(v), ret));
	}
	return STATUS_OK;
}

static enum status
run_list(const struct mql_rule *rule, struct mql *q, const struct bson_value *v, bool *ret)
{
	size_t all = 0, good = 0;
	bool holds;

	for (const struct mql_schema_item *item = rule->list; item; item = item->next) {
		TRY(mql_schema_run(item->schema, q, v, &holds));
		all++;
		good += holds;
	}
	*ret = rule->op == MQL_RULE_ALL_OF   ? good == all
	       : rule->op == MQL_RULE_ANY_OF ? good > 0
	       : rule->op == MQL_RULE_ONE_OF ? good == 1
					     : good == 0;
	return STATUS_OK;
}

/* ---- The whole ---- */

static enum status
run_of_object(const struct mql_rule *rule, struct mql *q, const struct bson_value *v, bool *ret)
{
	size_t count;

	if (v->type != BSON_DOCUMENT)
		return STATUS_OK;
	if (rule->op == MQL_RULE_REQUIRED)
		return run_required(bson_text(&rule->keyword.value), bson_text(v), ret);
	if (rule->op == MQL_RULE_PROPERTIES)
		return run_properties(rule, q, bson_text(v), ret);
	if (rule->op == MQL_RULE_DEPENDENCIES)
		return run_dependencies(rule, q, v, ret);
	TRY(step_count_bytes(bson_text(v).len));
	count = bson_count(bson_text(v));
	*ret = rule->op == MQL_RULE_MIN_PROPERTIES ? count >= (uint64_t)rule->count
						   : count <= (uint64_t)rule->count;
	return STATUS_OK;
}

static enum status
run_of_array(const struct mql_rule *rule, struct mql *q, const struct bson_value *v, bool *ret)
{
	size_t count;

	if (v->type != BSON_ARRAY)
		return STATUS_OK;
	if (rule->op == MQL_RULE_ITEMS)
		return run_items(rule, q, bson_text(v), ret);
	if (rule->op == MQL_RULE_UNIQUE_ITEMS)
		return run_unique(q, bson_text(v), ret);
	TRY(step_count_bytes(bson_text(v).len));
	count = bson_count(bson_text(v));
	*ret = rule->op == MQL_RULE_MIN_ITEMS ? count >= (uint64_t)rule->count
					      : count <= (uint64_t)rule->count;
	return STATUS_OK;
}

static enum status
run_rule(const struct mql_rule *rule, struct mql *q, const struct bson_value *v, bool *ret)
{
	*ret = true;
	TRY(step_count(1));
	switch (rule->op) {
	case MQL_RULE_TYPE:
		*ret = run_type(&rule->types, v);
		return STATUS_OK;
	case MQL_RULE_ENUM:
		return run_enum(rule, v, ret);
	case MQL_RULE_MINIMUM:
	case MQL_RULE_MAXIMUM:
		*ret = !bson_is_number(v) || run_bound(rule, v);
		return STATUS_OK;
	case MQL_RULE_MULTIPLE_OF:
		*ret = !bson_is_number(v) || run_multiple(rule, v);
		return STATUS_OK;
	case MQL_RULE_MIN_LENGTH:
	case MQL_RULE_MAX_LENGTH:
		return v->type == BSON_STRING ? run_length(rule, bson_text(v), ret) : STATUS_OK;
	case MQL_RULE_PATTERN:
		if (v->type != BSON_STRING)
			return STATUS_OK;
		return mql_regex_match(rule->regex, q, bson_text(v), 0, ret, NULL);
	case MQL_RULE_MIN_ITEMS:
	case MQL_RULE_MAX_ITEMS:
	case MQL_RULE_UNIQUE_ITEMS:
	case MQL_RULE_ITEMS:
		return run_of_array(rule, q, v, ret);
	case MQL_RULE_MIN_PROPERTIES:
	case MQL_RULE_MAX_PROPERTIES:
	case MQL_RULE_REQUIRED:
	case MQL_RULE_PROPERTIES:
	case MQL_RULE_DEPENDENCIES:
		return run_of_object(rule, q, v, ret);
	case MQL_RULE_ALL_OF:
	case MQL_RULE_ANY_OF:
	case MQL_RULE_ONE_OF:
	case MQL_RULE_NOT:
		return run_list(rule, q, v, ret);
	}
	return STATUS_OK;
}

enum status
mql_schema_run(const struct mql_schema *s, struct mql *q, const struct bson_value *v, bool *ret)
{
	*ret = true;
	for (const struct mql_rule *rule = s->rules; rule && *ret; rule = rule->next)
		TRY(run_rule(rule, q, v, ret));
	return STATUS_OK;
}
