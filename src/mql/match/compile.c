/* Filters into nodes. */
#include <assert.h>
#include <math.h>

#include "bson/decimal.h"
#include "mql/match/match_int.h"
#include "mql/mql_int.h"

enum {
	ALL_LONG = 16, /* values of $all, from more of which on they are a set */
	ALL_FIRST = 8, /* of these, too, that are conditions by themselves */
};

struct list {
	struct mql_node **tail;
};

/* Where a filter stands: $expr is for documents as a whole, and may name variables. */
struct place {
	unsigned depth;
	bool inside; /* of a document: a filter for an element of an array */
	const struct mql_scope *scope;
};

static enum status compile_filter(struct mql *q, struct str filter, struct place place,
				  struct mql_node **ret);
static enum status compile_operators(struct mql *q, struct str path, struct str operators,
				     unsigned depth, struct list *list);

static enum status
node_new(struct mql *q, enum mql_node_op op, struct str path, struct list *list,
	 struct mql_node **ret)
{
	struct mql_node *node;

	TRY(step_count(1));
	node = arena_zalloc(q->arena, sizeof(*node));
	if (!node)
		return mql_full(q);
	node->op = op;
	node->path = path;
	if (list) {
		*list->tail = node;
		list->tail = &node->next;
	}
	*ret = node;
	return STATUS_OK;
}

static enum status
check_depth(struct mql *q, unsigned depth)
{
	if (depth <= MQL_DEPTH)
		return STATUS_OK;
	return mql_fail(q, MQL_BAD_VALUE, "exceeded maximum query tree depth of %d", MQL_DEPTH);
}

/* The members of a reference to another document (DBRef), which are fields like others. */
static bool
is_of_reference(struct str name)
{
	return mql_is(name, "$ref") || mql_is(name, "$id") || mql_is(name, "$db");
}

/* What {a: {…}} is: conditions for `a`, or a document that it equals. */
static bool
has_operators(const struct bson_value *v)
{
	struct bson_iter i;
	struct bson_element e;

	if (v->type != BSON_DOCUMENT)
		return false;
	bson_iter_begin(&i, bson_text(v));
	if (!bson_iter_read(&i, &e) || !str_starts_with(e.name, STR("$")))
		return false;
	return !is_of_reference(e.name);
}

/* True for operators that an element of an array meets; else it is a filter for its members. */
static bool
is_of_value(const struct bson_value *v)
{
	struct bson_iter i;
	struct bson_element e;

	if (!has_operators(v))
		return false;
	bson_iter_begin(&i, bson_text(v));
	return bson_iter_read(&i, &e) && !mql_is(e.name, "$and") && !mql_is(e.name, "$or") &&
	       !mql_is(e.name, "$nor") && !mql_is(e.name, "$where");
}

/* ---- Operators with one value ---- */

static enum status
compile_regex(struct mql *q, struct str path, const struct bson_value *pattern, struct str options,
	      struct list *list)
{
	struct mql_node *node;

	TRY(node_new(q, MQL_NODE_REGEX, path, list, &node));
	node->regex.value = (struct bson_value){ .type = BSON_REGEX,
						 .as_text = bson_text(pattern),
						 .as_more = options };
	return mql_regex_compile(q, bson_text(pattern), options, &node->regex.regex);
}

static enum status
compile_equal(struct mql *q, struct str path, const struct bson_value *v, struct list *list)
{
	struct mql_node *node;

	if (v->type == BSON_UNDEFINED)
		return mql_fail(q, MQL_BAD_VALUE, "cannot compare to undefined");
	TRY(node_new(q, MQL_NODE_EQ, path, list, &node));
	node->value = *v;
	return STATUS_OK;
}

static enum status
compile_order(struct mql *q, struct str path, const struct bson_element *e, struct list *list)
{
	struct mql_node *node;
	enum mql_node_op op = mql_is(e->name, "$gt")    ? MQL_NODE_GT
			      : mql_is(e->name, "$gte") ? MQL_NODE_GTE
			      : mql_is(e->name, "$lt")  ? MQL_NODE_LT
							: MQL_NODE_LTE;

	if (e->value.type == BSON_UNDEFINED)
		return mql_fail(q, MQL_BAD_VALUE, "cannot compare to undefined");
	if (e->value.type == BSON_REGEX)
		return mql_fail(q, MQL_BAD_VALUE,
				"Can't have RegEx as arg to predicate over field "
				"'%.*s'.",
				STR_ARG(path));
	TRY(node_new(q, op, path, list, &node));
	node->value = e->value;
	return STATUS_OK;
}

/* A node whose only child is what is compiled into `ret_inner`. */
static enum status
compile_not(struct mql *q, struct list *list, struct list *ret_inner)
{
	struct mql_node *node;

	TRY(node_new(q, MQL_NODE_NOT, STR(""), list, &node));
	ret_inner->tail = &node->first;
	return STATUS_OK;
}

static enum status
compile_in_value(struct mql *q, struct mql_node *node, const struct bson_value *v)
{
	struct mql_regex_item *item;

	if (v->type == BSON_UNDEFINED)
		return mql_fail(q, MQL_BAD_VALUE, "cannot compare to undefined");
	if (has_operators(v))
		return mql_fail(q, MQL_BAD_VALUE, "cannot nest $ under $in");
	if (v->type != BSON_REGEX)
		return STATUS_OK;
	item = arena_alloc(q->arena, sizeof(*item));
	if (!item)
		return mql_full(q);
	item->value = *v;
	item->next = node->in.regexes;
	node->in.regexes = item;
	return mql_regex_compile(q, bson_text(v), bson_more(v), &item->regex);
}

static enum status
compile_in(struct mql *q, struct str path, const struct bson_element *e, struct list *list)
{
	struct mql_node *node;
	struct bson_iter i;
	struct bson_element value;

	if (e->value.type != BSON_ARRAY)
		return mql_fail(q, MQL_BAD_VALUE, "%.*s needs an array", STR_ARG(e->name));
	TRY(node_new(q, MQL_NODE_IN, path, list, &node));
	node->value = e->value;
	for (bson_iter_begin(&i, bson_text(&e->value)); bson_iter_read(&i, &value);) {
		TRY(step_count_bytes(value.bytes.len));
		TRY(compile_in_value(q, node, &value.value));
	}
	return mql_value_set_of(q, bson_text(&e->value), q->texts, &node->in.set);
}

/* An integer that is not negative, or an error that begins with `where`. */
static enum status
read_count(struct mql *q, int code, const char *where, struct str name, const struct bson_value *v,
	   int64_t *ret)
{
	const char *text = mql_text(q, name, v);

	if (!bson_is_number(v))
		return mql_fail(q, code, "%sExpected a number in: %s", where, text);
	if (!bson_to_int64(v, ret))
		return mql_fail(q, code, "%sExpected an integer: %s", where, text);
	if (*ret < 0)
		return mql_fail(q, code, "%sExpected a non-negative number in: %s", where, text);
	return STATUS_OK;
}

static enum status
compile_size(struct mql *q, struct str path, const struct bson_element *e, struct list *list)
{
	struct mql_node *node;

	TRY(node_new(q, MQL_NODE_SIZE, path, list, &node));
	return read_count(q, MQL_BAD_VALUE, "Failed to parse $size. ", e->name, &e->value,
			  &node->size);
}

static enum status
compile_exists(struct mql *q, struct str path, const struct bson_element *e, struct list *list)
{
	struct mql_node *node;
	struct list inner;

	if (!bson_is_true(&e->value)) {
		TRY(compile_not(q, list, &inner));
		return node_new(q, MQL_NODE_EXISTS, path, &inner, &node);
	}
	return node_new(q, MQL_NODE_EXISTS, path, list, &node);
}

static enum status
compile_type_of(struct mql *q, struct mql_node *node, const struct bson_value *v)
{
	enum bson_type type;
	int64_t n;

	if (v->type == BSON_STRING) {
		if (!bson_type_of_name(bson_text(v), &type))
			return mql_fail(q, MQL_BAD_VALUE, "Unknown type name alias: %.*s",
					STR_ARG(bson_text(v)));
		n = (int64_t)type;
	} else if (!bson_is_number(v)) {
		return mql_fail(q, MQL_TYPE_MISMATCH,
				"type must be represented as a number or a string");
	} else if (!bson_to_int64(v, &n) ||
		   !((n >= 1 && n <= BSON_DECIMAL) || n == BSON_MAX_KEY || n == -1)) {
		return mql_fail(q, MQL_BAD_VALUE, "Invalid numerical type code: %s",
				mql_text(q, STR(""), v));
	}
	if (n == -1 || n == BSON_MIN_KEY)
		node->types.min = true;
	else if (n == BSON_MAX_KEY)
		node->types.max = true;
	else if (n == 0)
		node->types.low |= 1U << BSON_DOUBLE | 1U << BSON_INT32 | 1U << BSON_INT64 |
				   1U << BSON_DECIMAL;
	else
		node->types.low |= 1U << n;
	return STATUS_OK;
}

static enum status
compile_type(struct mql *q, struct str path, const struct bson_element *e, struct list *list)
{
	struct mql_node *node;
	struct bson_iter i;
	struct bson_element type;

	TRY(node_new(q, MQL_NODE_TYPE, path, list, &node));
	if (e->value.type != BSON_ARRAY)
		return compile_type_of(q, node, &e->value);
	if (bson_is_empty(bson_text(&e->value)))
		return mql_fail(q, MQL_FAILED_TO_PARSE, "%.*s must match at least one type",
				STR_ARG(path));
	for (bson_iter_begin(&i, bson_text(&e->value)); bson_iter_read(&i, &type);) {
		TRY(step_count(1));
		TRY(compile_type_of(q, node, &type.value));
	}
	return STATUS_OK;
}

static enum status
read_mod(struct mql *q, const char *what, const struct bson_value *v, int64_t *ret)
{
	struct bson_value whole = *v;

	if (!bson_is_number(v))
		return mql_fail(q, MQL_BAD_VALUE, "malformed mod, %s not a number", what);
	if (v->type == BSON_DOUBLE)
		whole.as_d = trunc(bson_real(v));
	else if (v->type == BSON_DECIMAL)
		whole.as_decimal = bson_decimal_round(bson_decimal(v), 0, BSON_DECIMAL_TRUNCATE,
						      NULL);
	if (bson_to_int64(&whole, ret))
		return STATUS_OK;
	return mql_fail(q, MQL_BAD_VALUE,
			"malformed mod, %s value is invalid :: caused by :: Out of bounds coercing "
			"to integral value",
			what);
}

static enum status
compile_mod(struct mql *q, struct str path, const struct bson_element *e, struct list *list)
{
	struct mql_node *node;
	struct bson_value divisor, remainder;

	if (e->value.type != BSON_ARRAY)
		return mql_fail(q, MQL_BAD_VALUE, "malformed mod, needs to be an array");
	if (!bson_find(bson_text(&e->value), STR("0"), &divisor) ||
	    !bson_find(bson_text(&e->value), STR("1"), &remainder))
		return mql_fail(q, MQL_BAD_VALUE, "malformed mod, not enough elements");
	if (bson_find(bson_text(&e->value), STR("2"), NULL))
		return mql_fail(q, MQL_BAD_VALUE, "malformed mod, too many elements");
	TRY(node_new(q, MQL_NODE_MOD, path, list, &node));
	TRY(read_mod(q, "divisor", &divisor, &node->mod.divisor));
	TRY(read_mod(q, "remainder", &remainder, &node->mod.remainder));
	if (!node->mod.divisor)
		return mql_fail(q, MQL_BAD_VALUE, "divisor cannot be 0");
	return STATUS_OK;
}

/* ---- Bits ---- */

static enum status
bits_of_number(struct mql *q, const struct bson_element *e, struct mql_bits *bits)
{
	uint32_t *positions;
	int64_t n;

	TRY(read_count(q, MQL_FAILED_TO_PARSE, "", e->name, &e->value, &n));
	positions = arena_alloc(q->arena, 64 * sizeof(*positions));
	if (!positions)
		return mql_full(q);
	bits->positions = positions;
	for (uint32_t i = 0; i < 63; i++) {
		if (n >> i & 1)
			positions[bits->count++] = i;
	}
	return STATUS_OK;
}

static enum status
bits_of_array(struct mql *q, const struct bson_element *e, struct mql_bits *bits)
{
	uint32_t *positions = arena_alloc(q->arena,
					  bson_count(bson_text(&e->value)) * sizeof(*positions));
	struct bson_iter i;
	struct bson_element position;
	int64_t n;

	if (!positions)
		return mql_full(q);
	bits->positions = positions;
	for (bson_iter_begin(&i, bson_text(&e->value)); bson_iter_read(&i, &position);) {
		TRY(step_count(1));
		TRY(read_count(q, MQL_BAD_VALUE, "Failed to parse bit position. ", position.name,
			       &position.value, &n));
		if (n > INT32_MAX)
			return mql_fail(q, MQL_BAD_VALUE,
					"Failed to parse bit position. Expected an integer: %s",
					mql_text(q, position.name, &position.value));
		positions[bits->count++] = (uint32_t)n;
	}
	return STATUS_OK;
}

static enum status
compile_bits(struct mql *q, struct str path, const struct bson_element *e, struct list *list)
{
	struct mql_node *node;

	TRY(node_new(q, MQL_NODE_BITS, path, list, &node));
	node->bits.set = mql_is(e->name, "$bitsAllSet") || mql_is(e->name, "$bitsAnySet");
	node->bits.any = mql_is(e->name, "$bitsAnySet") || mql_is(e->name, "$bitsAnyClear");
	if (bson_is_number(&e->value))
		return bits_of_number(q, e, &node->bits);
	if (e->value.type == BSON_ARRAY)
		return bits_of_array(q, e, &node->bits);
	if (e->value.type != BSON_BINARY)
		return mql_fail(q, MQL_BAD_VALUE,
				"%.*s takes an Array, a number, or a BinData but received: %s",
				STR_ARG(e->name), bson_type_name(e->value.type));
	node->bits.mask = bson_text(&e->value);
	return STATUS_OK;
}

/* ---- Operators with conditions inside ---- */

static enum status
compile_elem(struct mql *q, struct str path, const struct bson_element *e, unsigned depth,
	     struct list *list)
{
	struct mql_node *node;
	bool of_value = is_of_value(&e->value);
	struct list inner;

	if (e->value.type != BSON_DOCUMENT)
		return mql_fail(q, MQL_BAD_VALUE, "$elemMatch needs an Object");
	TRY(node_new(q, of_value ? MQL_NODE_ELEM_VALUE : MQL_NODE_ELEM_OBJECT, path, list, &node));
	if (!of_value)
		return compile_filter(q, bson_text(&e->value),
				      (struct place){ depth + 1, true, NULL }, &node->first);
	inner.tail = &node->first;
	TRY(node_new(q, MQL_NODE_AND, STR(""), &inner, &node));
	inner.tail = &node->first;
	return compile_operators(q, STR(""), bson_text(&e->value), depth + 1, &inner);
}

/* Refuses what no value is equal to. */
static enum status
check_all_value(struct mql *q, const struct bson_value *v)
{
	if (has_operators(v))
		return mql_fail(q, MQL_BAD_VALUE, "no $ expressions in $all");
	if (v->type == BSON_UNDEFINED)
		return mql_fail(q, MQL_BAD_VALUE, "cannot compare to undefined");
	return STATUS_OK;
}

static enum status
compile_all_value(struct mql *q, struct str path, const struct bson_value *v, bool elements,
		  unsigned depth, struct list *list)
{
	struct bson_iter i;
	struct bson_element e;

	if (elements) {
		if (v->type != BSON_DOCUMENT)
			return mql_fail(q, MQL_BAD_VALUE, "$all/$elemMatch has to be consistent");
		bson_iter_begin(&i, bson_text(v));
		if (!bson_iter_read(&i, &e) || !mql_is(e.name, "$elemMatch"))
			return mql_fail(q, MQL_BAD_VALUE, "$all/$elemMatch has to be consistent");
		return compile_elem(q, path, &e, depth, list);
	}
	if (v->type == BSON_REGEX)
		return compile_regex(q, path, v, bson_more(v), list);
	TRY(check_all_value(q, v));
	return compile_equal(q, path, v, list);
}

/* True for a list of documents such as {$elemMatch: …}: the first one says. */
static bool
all_is_of_elements(struct str values)
{
	struct bson_element e, first;
	struct bson_iter i;

	bson_iter_begin(&i, values);
	if (!bson_iter_read(&i, &e) || !has_operators(&e.value))
		return false;
	bson_iter_begin(&i, bson_text(&e.value));
	return bson_iter_read(&i, &first) && mql_is(first.name, "$elemMatch");
}

/* A node for all values of a long list, which looks at each value of a document once. */
static enum status
compile_all_set(struct mql *q, struct str path, struct str values, struct list *list)
{
	struct mql_node *node;

	TRY(node_new(q, MQL_NODE_ALL, path, list, &node));
	return mql_value_set_of(q, values, q->texts, &node->set);
}

/*
 * Of a long list, the first few values and the last one have nodes of their own, too: planners ask
 * for the first ones, and the last one tells the position.
 */
static enum status
compile_all(struct mql *q, struct str path, const struct bson_element *e, unsigned depth,
	    struct list *list)
{
	struct mql_node *node;
	struct bson_iter i;
	struct bson_element value;
	size_t count, at = 0;
	bool elements, has_set;

	if (e->value.type != BSON_ARRAY)
		return mql_fail(q, MQL_BAD_VALUE, "$all needs an array");
	count = bson_count(bson_text(&e->value));
	if (!count)
		return node_new(q, MQL_NODE_CONSTANT, path, list,
				&node); /* nothing has all of none */
	elements = all_is_of_elements(bson_text(&e->value));
	has_set = !elements && count > ALL_LONG;
	for (bson_iter_begin(&i, bson_text(&e->value)); bson_iter_read(&i, &value); at++) {
		bool alone = !has_set || at < ALL_FIRST || at + 1 == count ||
			     value.value.type == BSON_REGEX;

		TRY(step_count(1));
		if (has_set && at + 1 == count)
			TRY(compile_all_set(q, path, bson_text(&e->value), list));
		if (alone)
			TRY(compile_all_value(q, path, &value.value, elements, depth, list));
		else
			TRY(check_all_value(q, &value.value));
	}
	return STATUS_OK;
}

static enum status
compile_negation(struct mql *q, struct str path, const struct bson_element *e, unsigned depth,
		 struct list *list)
{
	struct list inner;
	struct mql_node *node;

	TRY(compile_not(q, list, &inner));
	if (e->value.type == BSON_REGEX)
		return compile_regex(q, path, &e->value, bson_more(&e->value), &inner);
	if (e->value.type != BSON_DOCUMENT)
		return mql_fail(q, MQL_BAD_VALUE, "$not needs a regex or a document");
	if (bson_is_empty(bson_text(&e->value)))
		return mql_fail(q, MQL_BAD_VALUE, "$not cannot be empty");
	TRY(node_new(q, MQL_NODE_AND, STR(""), &inner, &node));
	inner.tail = &node->first;
	return compile_operators(q, path, bson_text(&e->value), depth + 1, &inner);
}

/* $regex with the $options beside it. */
static enum status
compile_regex_of(struct mql *q, struct str path, const struct bson_element *e, struct str operators,
		 struct list *list)
{
	struct bson_value options;
	struct str text = STR("");

	if (e->value.type != BSON_REGEX && e->value.type != BSON_STRING)
		return mql_fail(q, MQL_BAD_VALUE, "$regex has to be a string");
	if (e->value.type == BSON_REGEX)
		text = bson_more(&e->value);
	if (bson_find(operators, STR("$options"), &options)) {
		if (options.type != BSON_STRING)
			return mql_fail(q, MQL_BAD_VALUE, "$options has to be a string");
		if (text.len)
			return mql_fail(q, bson_text(&options).ptr < e->bytes.ptr ? 51074 : 51075,
					"options set in both $regex and $options");
		text = bson_text(&options);
	}
	return compile_regex(q, path, &e->value, text, list);
}

/* ---- Which operator it is ---- */

enum operator{
	OP_EQ,
	OP_NE,
	OP_ORDER,
	OP_IN,
	OP_NIN,
	OP_EXISTS,
	OP_TYPE,
	OP_MOD,
	OP_REGEX,
	OP_OPTIONS,
	OP_ALL,
	OP_ELEM,
	OP_SIZE,
	OP_BITS,
	OP_NOT,
	OP_COMMENT,
	OP_REFUSED,
	OP_UNKNOWN,
};

static const struct {
	const char *name;
	enum operator op;
} operators[] = {
	{ "$eq", OP_EQ },           { "$ne", OP_NE },
	{ "$gt", OP_ORDER },        { "$gte", OP_ORDER },
	{ "$lt", OP_ORDER },        { "$lte", OP_ORDER },
	{ "$in", OP_IN },           { "$nin", OP_NIN },
	{ "$exists", OP_EXISTS },   { "$type", OP_TYPE },
	{ "$mod", OP_MOD },         { "$regex", OP_REGEX },
	{ "$options", OP_OPTIONS }, { "$all", OP_ALL },
	{ "$elemMatch", OP_ELEM },  { "$size", OP_SIZE },
	{ "$bitsAllSet", OP_BITS }, { "$bitsAllClear", OP_BITS },
	{ "$bitsAnySet", OP_BITS }, { "$bitsAnyClear", OP_BITS },
	{ "$not", OP_NOT },         { "$comment", OP_COMMENT },
	{ "$near", OP_REFUSED },    { "$nearSphere", OP_REFUSED },
	{ "$geoNear", OP_REFUSED }, { "$geoWithin", OP_REFUSED },
	{ "$within", OP_REFUSED },  { "$geoIntersects", OP_REFUSED },
};

static enum operator operator_of(struct str name)
{
	for (size_t i = 0; i < sizeof(operators) / sizeof(operators[0]); i++) {
		if (mql_is(name, operators[i].name))
			return operators[i].op;
	}
	return OP_UNKNOWN;
}

static enum status
compile_operator(struct mql *q, struct str path, const struct bson_element *e, struct str siblings,
		 unsigned depth, struct list *list)
{
	struct list inner;

	switch (operator_of(e->name)) {
	case OP_EQ:
		return compile_equal(q, path, &e->value, list);
	case OP_NE:
		if (e->value.type == BSON_REGEX)
			return mql_fail(q, MQL_BAD_VALUE, "Can't have regex as arg to $ne.");
		TRY(compile_not(q, list, &inner));
		return compile_equal(q, path, &e->value, &inner);
	case OP_ORDER:
		return compile_order(q, path, e, list);
	case OP_IN:
		return compile_in(q, path, e, list);
	case OP_NIN:
		TRY(compile_not(q, list, &inner));
		return compile_in(q, path, e, &inner);
	case OP_EXISTS:
		return compile_exists(q, path, e, list);
	case OP_TYPE:
		return compile_type(q, path, e, list);
	case OP_MOD:
		return compile_mod(q, path, e, list);
	case OP_REGEX:
		return compile_regex_of(q, path, e, siblings, list);
	case OP_OPTIONS:
		if (bson_find(siblings, STR("$regex"), NULL))
			return STATUS_OK;
		return mql_fail(q, MQL_BAD_VALUE, "$options needs a $regex");
	case OP_ALL:
		return compile_all(q, path, e, depth, list);
	case OP_ELEM:
		return compile_elem(q, path, e, depth, list);
	case OP_SIZE:
		return compile_size(q, path, e, list);
	case OP_BITS:
		return compile_bits(q, path, e, list);
	case OP_NOT:
		return compile_negation(q, path, e, depth, list);
	case OP_COMMENT:
		return STATUS_OK;
	case OP_REFUSED:
		return mql_refuse(q, e->name);
	case OP_UNKNOWN:
		break;
	}
	return mql_fail(q, MQL_BAD_VALUE, "unknown operator: %.*s", STR_ARG(e->name));
}

static enum status
compile_operators(struct mql *q, struct str path, struct str all, unsigned depth, struct list *list)
{
	struct bson_iter i;
	struct bson_element e;

	TRY(check_depth(q, depth));
	for (bson_iter_begin(&i, all); bson_iter_read(&i, &e);)
		TRY(compile_operator(q, path, &e, all, depth, list));
	return STATUS_OK;
}

/* ---- Filters ---- */

static enum status
compile_tree(struct mql *q, enum mql_node_op op, const struct bson_element *e, struct place place,
	     struct list *list)
{
	struct mql_node *node, **tail;
	struct bson_iter i;
	struct bson_element entry;

	if (e->value.type != BSON_ARRAY)
		return mql_fail(q, MQL_BAD_VALUE, "%.*s argument must be an array",
				STR_ARG(e->name));
	if (bson_is_empty(bson_text(&e->value)))
		return mql_fail(q, MQL_BAD_VALUE, "$and/$or/$nor must be a nonempty array");
	TRY(node_new(q, op, STR(""), list, &node));
	tail = &node->first;
	place.depth++;
	for (bson_iter_begin(&i, bson_text(&e->value)); bson_iter_read(&i, &entry);) {
		if (entry.value.type != BSON_DOCUMENT)
			return mql_fail(q, MQL_BAD_VALUE,
					"$or/$and/$nor entries need to be full objects");
		TRY(compile_filter(q, bson_text(&entry.value), place, tail));
		/* A filter is one node, also an empty one. */
		assert(*tail && !(*tail)->next);
		tail = &(*tail)->next;
	}
	return STATUS_OK;
}

static enum status
compile_expr(struct mql *q, const struct bson_element *e, struct place place, struct list *list)
{
	struct mql_node *node;
	struct bson_value v;

	if (place.inside)
		return mql_fail(q, MQL_BAD_VALUE,
				"$expr can only be applied to the top-level document");
	TRY(node_new(q, MQL_NODE_EXPR, STR(""), list, &node));
	TRY(mql_expr_compile(q, &e->value, place.scope, &node->expr));
	if (mql_expr_constant(node->expr, &v)) {
		node->op = MQL_NODE_CONSTANT;
		node->truth = (int)v.type != MQL_MISSING && bson_is_true(&v);
	}
	return STATUS_OK;
}

static enum status
compile_where(struct mql *q, const struct bson_element *e, struct place place, struct list *list)
{
	struct mql_node *node;

	if (!q->takes_where)
		return mql_fail(q, MQL_BAD_VALUE, "$where is not allowed in this context");
	if (place.inside)
		return mql_fail(q, MQL_BAD_VALUE, "$elemMatch cannot contain $where expression");
	if (!mql_is_source(&e->value))
		return mql_fail(q, MQL_BAD_VALUE, "$where got bad type");
	TRY(node_new(q, MQL_NODE_WHERE, STR(""), list, &node));
	return mql_script_new(q, MQL_SCRIPT_WHERE, MQL_SCRIPT_NO_WHERE,
			      &(struct mql_script_source){ "where", bson_text(&e->value) }, 1,
			      &node->script);
}

static enum status
compile_sample(struct mql *q, const struct bson_element *e, struct list *list)
{
	struct mql_node *node;
	double rate = bson_to_double(&e->value);

	if (!bson_is_number(&e->value))
		return mql_fail(q, MQL_BAD_VALUE, "argument to $sampleRate must be a numeric type");
	if (!(rate >= 0 && rate <= 1))
		return mql_fail(q, MQL_BAD_VALUE,
				"numeric argument to $sampleRate must be in [0, 1]");
	TRY(node_new(q, MQL_NODE_SAMPLE, STR(""), list, &node));
	node->rate = rate;
	return STATUS_OK;
}

static enum status
compile_top(struct mql *q, const struct bson_element *e, struct place place, struct list *list)
{
	struct mql_node *node;
	bool truth = mql_is(e->name, "$alwaysTrue");
	int64_t n;

	if (mql_is(e->name, "$and"))
		return compile_tree(q, MQL_NODE_AND, e, place, list);
	if (mql_is(e->name, "$or"))
		return compile_tree(q, MQL_NODE_OR, e, place, list);
	if (mql_is(e->name, "$nor"))
		return compile_tree(q, MQL_NODE_NOR, e, place, list);
	if (mql_is(e->name, "$comment"))
		return STATUS_OK;
	if (truth || mql_is(e->name, "$alwaysFalse")) {
		if (!bson_to_int64(&e->value, &n) || n != 1)
			return mql_fail(q, MQL_FAILED_TO_PARSE,
					"%.*s must be an integer value of 1", STR_ARG(e->name));
		TRY(node_new(q, MQL_NODE_CONSTANT, STR(""), list, &node));
		node->truth = truth;
		return STATUS_OK;
	}
	if (mql_is(e->name, "$jsonSchema")) {
		TRY(node_new(q, MQL_NODE_SCHEMA, STR(""), list, &node));
		return mql_schema_compile(q, &e->value, place.depth, &node->schema);
	}
	if (mql_is(e->name, "$expr"))
		return compile_expr(q, e, place, list);
	if (mql_is(e->name, "$sampleRate"))
		return compile_sample(q, e, list);
	if (mql_is(e->name, "$where"))
		return compile_where(q, e, place, list);
	if (mql_is(e->name, "$text"))
		return mql_refuse(q, e->name);
	if (place.inside && is_of_reference(e->name))
		return compile_equal(q, e->name, &e->value, list);
	return mql_fail(q, MQL_BAD_VALUE,
			"unknown top level operator: %.*s. If you have a field name that starts "
			"with a '$' symbol, consider using $getField or $setField.",
			STR_ARG(e->name));
}

static enum status
compile_filter(struct mql *q, struct str filter, struct place place, struct mql_node **ret)
{
	struct mql_node *node;
	struct list list;
	struct bson_iter i;
	struct bson_element e;

	TRY(check_depth(q, place.depth));
	TRY(node_new(q, MQL_NODE_AND, STR(""), NULL, &node));
	list.tail = &node->first;
	*ret = node;
	for (bson_iter_begin(&i, filter); bson_iter_read(&i, &e);) {
		if (str_starts_with(e.name, STR("$")))
			TRY(compile_top(q, &e, place, &list));
		else if (e.value.type == BSON_REGEX)
			TRY(compile_regex(q, e.name, &e.value, bson_more(&e.value), &list));
		else if (has_operators(&e.value))
			TRY(compile_operators(q, e.name, bson_text(&e.value), place.depth + 1,
					      &list));
		else
			TRY(compile_equal(q, e.name, &e.value, &list));
	}
	return STATUS_OK;
}

/* ---- Demands ---- */

struct demands {
	struct mql_demand *all;
	size_t count, cap;
	unsigned elements; /* numbers of $elemMatch so far */
};

static bool
demand_op(const struct mql_node *node, enum mql_demand_op *ret)
{
	static const enum mql_demand_op ops[] = {
		[MQL_NODE_EQ] = MQL_DEMAND_EQ,         [MQL_NODE_GT] = MQL_DEMAND_GT,
		[MQL_NODE_GTE] = MQL_DEMAND_GTE,       [MQL_NODE_LT] = MQL_DEMAND_LT,
		[MQL_NODE_LTE] = MQL_DEMAND_LTE,       [MQL_NODE_IN] = MQL_DEMAND_IN,
		[MQL_NODE_EXISTS] = MQL_DEMAND_EXISTS,
	};

	static_assert(sizeof(ops) / sizeof(ops[0]) == MQL_NODE_EXISTS + 1,
		      "each of these conditions is a demand");
	assert(node->op >= MQL_NODE_EQ); /* the nodes before are of nodes: demands_of() */
	if (node->op > MQL_NODE_EXISTS)
		return false;
	*ret = ops[node->op];
	return node->op != MQL_NODE_IN || !node->in.regexes;
}

/* "prefix.path", where either may be empty. */
static enum status
demand_path(struct mql *q, struct str prefix, struct str path, struct str *ret)
{
	*ret = !prefix.len ? path
	       : !path.len ? prefix
			   : arena_printf(q->arena, "%.*s.%.*s", STR_ARG(prefix), STR_ARG(path));
	return ret->ptr ? STATUS_OK : mql_full(q);
}

/* Nodes are as deep as the filter was, which check_depth() has bounded. */
static enum status
demands_of(struct mql *q, const struct mql_node *node, struct str prefix, unsigned element,
	   struct demands *d)
{
	struct str path;
	enum mql_demand_op op;

	static_assert(MQL_NODE_AND < MQL_NODE_EQ && MQL_NODE_WHERE < MQL_NODE_EQ &&
			      MQL_NODE_ELEM_OBJECT == MQL_NODE_ELEM_VALUE + 1,
		      "nodes of nodes come first, and those of elements last");
	TRY(step_count(1));
	if (node->op == MQL_NODE_AND ||
	    (node->op == MQL_NODE_OR && node->first && !node->first->next)) {
		for (const struct mql_node *n = node->first; n; n = n->next)
			TRY(demands_of(q, n, prefix, element, d));
		return STATUS_OK;
	}
	if (node->op < MQL_NODE_EQ)
		return STATUS_OK;
	/* Entries of an index lead into an array, but not into the arrays right inside it. */
	if (node->op >= MQL_NODE_ELEM_VALUE && !node->path.len)
		return STATUS_OK;
	TRY(demand_path(q, prefix, node->path, &path));
	if (node->op >= MQL_NODE_ELEM_VALUE)
		return demands_of(q, node->first, path, element ? element : ++d->elements, d);
	if (demand_op(node, &op)) {
		d->all = arena_grow(q->arena, d->all, d->count, &d->cap, sizeof(*d->all));
		if (!d->all)
			return mql_full(q);
		d->all[d->count++] = (struct mql_demand){
			.op = op,
			.path = path,
			.value = node->value,
			.set = op == MQL_DEMAND_IN ? &node->in.set : NULL,
			.element = element,
		};
	}
	return STATUS_OK;
}

/* The first $or that all documents have to fulfil; NULL: there is none. As deep as the filter. */
static const struct mql_node *
find_or(const struct mql_node *node)
{
	const struct mql_node *found = node->op == MQL_NODE_OR ? node : NULL;

	if (node->op == MQL_NODE_AND)
		for (const struct mql_node *n = node->first; n && !found; n = n->next)
			found = find_or(n);
	return found;
}

/* `elements`: so many numbers of $elemMatch have been given. */
static enum status
branches_of(struct mql *q, const struct mql_node *either, unsigned elements, struct mql_match *m)
{
	struct mql_branch *branches;
	size_t count = 0;

	for (const struct mql_node *n = either->first; n; n = n->next)
		count++;
	branches = arena_alloc(q->arena, (count + 1) * sizeof(*branches));
	if (!branches)
		return mql_full(q);
	m->branches = branches;
	for (const struct mql_node *n = either->first; n; n = n->next) {
		struct demands d = { .elements = elements };

		TRY(demands_of(q, n, STR(""), 0, &d));
		branches[m->branch_count++] = (struct mql_branch){ d.all, d.count };
		elements = d.elements;
	}
	assert(m->branch_count == count);
	return STATUS_OK;
}

static enum status
match_new(struct mql *q, struct mql_node *root, bool of_value, struct mql_match **ret)
{
	struct mql_match *m = arena_zalloc(q->arena, sizeof(*m));
	const struct mql_node *either;
	struct demands d = { 0 };

	if (!m)
		return mql_full(q);
	if (!of_value)
		TRY(demands_of(q, root, STR(""), 0, &d));
	*m = (struct mql_match){
		.root = root, .of_value = of_value, .demands = d.all, .demand_count = d.count
	};
	*ret = m;
	either = of_value ? NULL : find_or(root);
	return either ? branches_of(q, either, d.elements, m) : STATUS_OK;
}

enum status
mql_match_compile_scoped(struct mql *q, struct str filter, const struct mql_scope *scope,
			 struct mql_match **ret)
{
	struct mql_node *root;

	TRY(compile_filter(q, filter, (struct place){ 1, false, scope }, &root));
	return match_new(q, root, false, ret);
}

enum status
mql_match_compile(struct mql *q, struct str filter, struct mql_match **ret)
{
	return mql_match_compile_scoped(q, filter, NULL, ret);
}

enum status
mql_match_compile_value(struct mql *q, struct str all, struct mql_match **ret)
{
	const struct bson_value v = BSON_OF_DOCUMENT(all);
	struct mql_node *root;
	struct list list;

	if (!is_of_value(&v)) {
		TRY(compile_filter(q, all, (struct place){ 1, true, NULL }, &root));
		return match_new(q, root, false, ret);
	}
	TRY(node_new(q, MQL_NODE_AND, STR(""), NULL, &root));
	list.tail = &root->first;
	TRY(compile_operators(q, STR(""), all, 1, &list));
	return match_new(q, root, true, ret);
}

void
mql_match_demands(const struct mql_match *m, const struct mql_demand **ret, size_t *ret_count)
{
	*ret = m->demands;
	*ret_count = m->demand_count;
}

void
mql_match_branches(const struct mql_match *m, const struct mql_branch **ret, size_t *ret_count)
{
	*ret = m->branches;
	*ret_count = m->branch_count;
}

/* Calls itself for nodes inside each other: MQL_DEPTH deep. */
static void
node_paths(const struct mql_node *list, struct mql_paths *ret)
{
	for (const struct mql_node *n = list; n && !ret->all; n = n->next) {
		switch ((int)n->op) {
		case MQL_NODE_AND:
		case MQL_NODE_OR:
		case MQL_NODE_NOR:
		case MQL_NODE_NOT:
			node_paths(n->first, ret);
			break;
		case MQL_NODE_CONSTANT:
		case MQL_NODE_SAMPLE:
			break;
		case MQL_NODE_SCHEMA:
		case MQL_NODE_EXPR:
		case MQL_NODE_WHERE:
			ret->all = true;
			break;
		default:
			mql_paths_add(ret, n->path);
		}
	}
}

void
mql_match_paths(const struct mql_match *m, struct mql_paths *ret)
{
	ret->all = ret->all || m->of_value;
	node_paths(m->root, ret);
}
