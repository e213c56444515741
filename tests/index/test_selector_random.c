/*
 * Random selectors against random documents: the compiled selector must agree with a naive matcher,
 * which works on trees and compares every value with every argument.
 */
#include "common.h"

enum {
	ROUNDS = 30000,
	ITEMS_MOST = 5, /* members, elements, arguments, conditions */
	NAMES = 4,
};

static struct rand_seq sequence = { 11 };

static size_t
below(size_t n)
{
	return (size_t)rand_seq_below(&sequence, n);
}

static void *
alloc(size_t n)
{
	void *p = arena_zalloc(arena, n);

	assert_non_null(p);
	return p;
}

/* ---- Values ---- */

struct naive_value {
	enum leaf_kind kind;
	int halves;            /* of a number: twice its value */
	bool is_double;        /* written with a fraction */
	size_t count;          /* of items; of a string: which of the texts it is */
	int names[ITEMS_MOST]; /* of members: distinct, ascending */
	struct naive_value *items;
};

static const char *const names[NAMES] = { "0", "1", "a", "b" };
static const char *const texts[] = { "",  "a", "A",        "b",         "ab",
				     "0", "1", "\xc3\xa4", "a\xcc\x88", "a\\u0000b" };
/* The same texts without escapes, for comparisons. */
static const struct str raw_texts[] = {
	STR(""),  STR("a"), STR("A"),        STR("b"),         STR("ab"),
	STR("0"), STR("1"), STR("\xc3\xa4"), STR("a\xcc\x88"), { "a\0b", 3 },
};
static const size_t text_of_name[NAMES] = { 5, 6, 1, 3 };

static void value_random(struct naive_value *v, unsigned depth);

static void
value_random_items(struct naive_value *v, unsigned depth)
{
	v->count = below(ITEMS_MOST + 1);
	v->items = alloc((v->count + 1) * sizeof(*v->items));
	if (v->kind == LEAF_OBJECT) {
		v->count = 0;
		for (int i = 0; i < NAMES; i++) {
			if (below(2))
				v->names[v->count++] = i;
		}
		v->items = alloc((v->count + 1) * sizeof(*v->items));
	}
	for (size_t i = 0; i < v->count; i++)
		value_random(&v->items[i], depth + 1);
}

static void
value_random(struct naive_value *v, unsigned depth)
{
	static const enum leaf_kind scalars[] = { LEAF_NULL,   LEAF_FALSE,  LEAF_TRUE,  LEAF_NUMBER,
						  LEAF_NUMBER, LEAF_NUMBER, LEAF_STRING };

	*v = (struct naive_value){ .kind = scalars[below(COUNT(scalars))] };
	if (depth < 3 && below(3) == 0)
		v->kind = below(2) ? LEAF_ARRAY : LEAF_OBJECT;
	if (v->kind == LEAF_NUMBER) {
		v->halves = (int)below(13) - 6;
		v->is_double = v->halves % 2 || below(2);
	} else if (v->kind == LEAF_STRING) {
		v->count = below(COUNT(texts));
	} else if (v->kind >= LEAF_ARRAY) {
		value_random_items(v, depth);
	}
}

static void
value_print(const struct naive_value *v, struct buf *out)
{
	static const char *const plain[] = { "null", "false", "true" };

	if (v->kind <= LEAF_TRUE) {
		buf_append_cstr(out, plain[v->kind]);
	} else if (v->kind == LEAF_NUMBER) {
		if (v->is_double)
			buf_printf(out, "%.1f", v->halves / 2.0);
		else
			buf_printf(out, "%d", v->halves / 2);
	} else if (v->kind == LEAF_STRING) {
		buf_printf(out, "\"%s\"", texts[v->count]);
	} else {
		buf_append_byte(out, v->kind == LEAF_ARRAY ? '[' : '{');
		for (size_t i = 0; i < v->count; i++) {
			if (i)
				buf_append_byte(out, ',');
			if (v->kind == LEAF_OBJECT)
				buf_printf(out, "\"%s\":", names[v->names[i]]);
			value_print(&v->items[i], out);
		}
		buf_append_byte(out, v->kind == LEAF_ARRAY ? ']' : '}');
	}
}

static int
value_compare(const struct naive_value *a, const struct naive_value *b)
{
	int c = 0;

	if (a->kind != b->kind)
		return a->kind > b->kind ? 1 : -1;
	if (a->kind == LEAF_NUMBER)
		return (a->halves > b->halves) - (a->halves < b->halves);
	if (a->kind == LEAF_STRING) {
		assert_int_equal(
			collate_strings(raw_texts[a->count], raw_texts[b->count], &work, &c),
			STATUS_OK);
		return c;
	}
	if (a->kind < LEAF_ARRAY)
		return 0;
	for (size_t i = 0; i < a->count && i < b->count; i++) {
		/* The names are in the order of collation as well. */
		if (a->kind == LEAF_OBJECT && a->names[i] != b->names[i])
			return a->names[i] > b->names[i] ? 1 : -1;
		c = value_compare(&a->items[i], &b->items[i]);
		if (c)
			return c;
	}
	return (a->count > b->count) - (a->count < b->count);
}

static bool
value_same(const struct naive_value *a, const struct naive_value *b)
{
	if (a->kind != b->kind || a->count != b->count)
		return false;
	if (a->kind == LEAF_NUMBER)
		return a->halves == b->halves && a->is_double == b->is_double;
	for (size_t i = 0; a->kind >= LEAF_ARRAY && i < a->count; i++) {
		if ((a->kind == LEAF_OBJECT && a->names[i] != b->names[i]) ||
		    !value_same(&a->items[i], &b->items[i]))
			return false;
	}
	return true;
}

/* ---- Selectors ---- */

enum naive_kind {
	NAIVE_AND,
	NAIVE_OR,
	NAIVE_NOR,
	NAIVE_NOT,
	NAIVE_FIELD, /* its conditions hold for the value under a name */
	NAIVE_COMPARE,
	NAIVE_IN,
	NAIVE_NIN,
	NAIVE_ALL,
	NAIVE_EXISTS,
	NAIVE_TYPE,
	NAIVE_SIZE,
	NAIVE_ELEM_MATCH,
	NAIVE_ALL_MATCH,
	NAIVE_KEY_MAP_MATCH,
};

struct naive_node {
	enum naive_kind kind;
	int number; /* which name, comparison or type; a size */
	struct naive_value value;
	size_t count;
	struct naive_node *parts;
};

static const char *const comparisons[] = { "$lt", "$lte", "$eq", "$ne", "$gte", "$gt" };
static const char *const types[] = { "null", "boolean", "number", "string", "array", "object" };

static void
list_random(struct naive_value *v)
{
	do {
		v->kind = LEAF_ARRAY;
		value_random_items(v, 1);
	} while (v->count == 0 && below(4));
}

/* A condition on a value: an operator with its argument, or a combination of such. */
static void node_random_condition(struct naive_node *n, unsigned depth);

static void
node_random_parts(struct naive_node *n, unsigned depth,
		  void (*random)(struct naive_node *n, unsigned depth))
{
	n->count = n->kind == NAIVE_NOT ? 1 : below(3) + (below(8) != 0);
	n->parts = alloc((n->count + 1) * sizeof(*n->parts));
	for (size_t i = 0; i < n->count; i++)
		random(&n->parts[i], depth + 1);
}

static void
node_random_condition(struct naive_node *n, unsigned depth)
{
	static const enum naive_kind kinds[] = {
		NAIVE_COMPARE, NAIVE_IN,    NAIVE_NIN,        NAIVE_ALL,       NAIVE_COMPARE,
		NAIVE_IN,      NAIVE_NIN,   NAIVE_ALL,        NAIVE_EXISTS,    NAIVE_TYPE,
		NAIVE_SIZE,    NAIVE_FIELD, NAIVE_ELEM_MATCH, NAIVE_ALL_MATCH, NAIVE_KEY_MAP_MATCH,
		NAIVE_AND,     NAIVE_OR,    NAIVE_NOR,        NAIVE_NOT,
	};

	*n = (struct naive_node){ .kind = kinds[below(depth < 4 ? COUNT(kinds) : 11)] };
	if (n->kind == NAIVE_COMPARE) {
		n->number = (int)below(COUNT(comparisons));
		value_random(&n->value, 1);
	} else if (n->kind == NAIVE_IN || n->kind == NAIVE_NIN || n->kind == NAIVE_ALL) {
		list_random(&n->value);
	} else if (n->kind == NAIVE_EXISTS) {
		n->number = (int)below(2);
	} else if (n->kind == NAIVE_TYPE) {
		n->number = (int)below(COUNT(types));
	} else if (n->kind == NAIVE_SIZE) {
		n->number = (int)below(4);
	} else if (n->kind >= NAIVE_ELEM_MATCH || n->kind == NAIVE_FIELD) {
		n->number = (int)below(NAMES);
		n->count = 1;
		n->parts = alloc(sizeof(*n->parts));
		node_random_condition(n->parts, depth + 1);
	} else {
		node_random_parts(n, depth, node_random_condition);
	}
}

static void
node_random_field(struct naive_node *n, unsigned depth)
{
	*n = (struct naive_node){ .kind = NAIVE_FIELD, .number = (int)below(NAMES), .count = 1 };
	n->parts = alloc(sizeof(*n->parts));
	node_random_condition(n->parts, depth + 1);
}

static void
node_random(struct naive_node *n)
{
	if (below(3)) {
		node_random_field(n, 0);
		return;
	}
	*n = (struct naive_node){ .kind = (enum naive_kind)below(NAIVE_FIELD) };
	node_random_parts(n, 0, node_random_field);
}

static void
node_print(const struct naive_node *n, struct buf *out)
{
	static const char *const operators[] = {
		"$and",  "$or",   "$nor",       "$not",      "",
		"",      "$in",   "$nin",       "$all",      "$exists",
		"$type", "$size", "$elemMatch", "$allMatch", "$keyMapMatch",
	};

	buf_append_byte(out, '{');
	if (n->kind == NAIVE_FIELD) {
		buf_printf(out, "\"%s\":", names[n->number]);
		node_print(n->parts, out);
	} else if (n->kind == NAIVE_COMPARE) {
		buf_printf(out, "\"%s\":", comparisons[n->number]);
		value_print(&n->value, out);
	} else {
		buf_printf(out, "\"%s\":", operators[n->kind]);
		if (n->kind >= NAIVE_ELEM_MATCH || n->kind == NAIVE_NOT)
			node_print(n->parts, out);
		else if (n->kind == NAIVE_EXISTS)
			buf_append_cstr(out, n->number ? "true" : "false");
		else if (n->kind == NAIVE_TYPE)
			buf_printf(out, "\"%s\"", types[n->number]);
		else if (n->kind == NAIVE_SIZE)
			buf_printf(out, "%d", n->number);
		else if (n->kind >= NAIVE_IN)
			value_print(&n->value, out);
		else
			buf_append_byte(out, '[');
		for (size_t i = 0; n->kind <= NAIVE_NOR && i < n->count; i++) {
			if (i)
				buf_append_byte(out, ',');
			node_print(&n->parts[i], out);
		}
		if (n->kind <= NAIVE_NOR)
			buf_append_byte(out, ']');
	}
	buf_append_byte(out, '}');
}

/* ---- The naive matcher ---- */

/* What a path led to: a value, nothing in an object, or nothing at all. */
struct naive_place {
	const struct naive_value *value; /* NULL: it is not there */
	bool no_member;
};

static struct naive_place
place_step(struct naive_place at, int name)
{
	struct naive_place next = { NULL, false };

	if (!at.value)
		return at;
	next.no_member = at.value->kind == LEAF_OBJECT;
	for (size_t i = 0; i < at.value->count; i++) {
		if (at.value->kind == LEAF_OBJECT && at.value->names[i] == name)
			next.value = &at.value->items[i];
		if (at.value->kind == LEAF_ARRAY && name < 2 && i == (size_t)name)
			next.value = &at.value->items[i];
	}
	return next;
}

static bool naive_matches(const struct naive_node *n, struct naive_place at, bool inside,
			  bool negated);

static bool
naive_compares(int comparison, int order)
{
	const bool holds[] = { order<0, order <= 0, order == 0, order != 0, order >= 0, order> 0 };

	return holds[comparison];
}

static bool
naive_in(const struct naive_node *n, const struct naive_value *v)
{
	bool found = false;

	for (size_t i = 0; i < n->value.count; i++) {
		if (v->kind != LEAF_ARRAY)
			found = found || value_compare(v, &n->value.items[i]) == 0;
		for (size_t j = 0; v->kind == LEAF_ARRAY && j < v->count; j++)
			found = found || value_compare(&v->items[j], &n->value.items[i]) == 0;
	}
	return found;
}

static bool
naive_all(const struct naive_node *n, const struct naive_value *v)
{
	bool all = v->kind == LEAF_ARRAY && n->value.count;

	for (size_t i = 0; i < n->value.count; i++) {
		bool found = false;

		for (size_t j = 0; v->kind == LEAF_ARRAY && j < v->count; j++)
			found = found || value_same(&v->items[j], &n->value.items[i]);
		all = all && found;
	}
	return all ||
	       (v->kind == LEAF_ARRAY && n->value.count == 1 && value_same(&n->value.items[0], v));
}

static bool
naive_children(const struct naive_node *n, const struct naive_value *v)
{
	bool all = n->kind == NAIVE_ALL_MATCH && v->count;
	bool any = false;

	if (v->kind != (n->kind == NAIVE_KEY_MAP_MATCH ? LEAF_OBJECT : LEAF_ARRAY))
		return false;
	for (size_t i = 0; i < v->count; i++) {
		struct naive_value name = { .kind = LEAF_STRING };
		struct naive_place at = { &v->items[i], false };
		bool matches;

		if (n->kind == NAIVE_KEY_MAP_MATCH) {
			name.count = text_of_name[v->names[i]];
			at.value = &name;
		}
		matches = naive_matches(n->parts, at, true, false);
		any = any || matches;
		all = all && matches;
	}
	return n->kind == NAIVE_ALL_MATCH ? all : any;
}

static bool
naive_condition(const struct naive_node *n, const struct naive_value *v)
{
	static const int type_of[] = { 0, 1, 1, 2, 3, 4, 5 };

	switch (n->kind) {
	case NAIVE_COMPARE:
		return naive_compares(n->number, value_compare(v, &n->value));
	case NAIVE_IN:
		return naive_in(n, v);
	case NAIVE_NIN:
		return !naive_in(n, v);
	case NAIVE_ALL:
		return naive_all(n, v);
	case NAIVE_TYPE:
		return type_of[v->kind] == n->number;
	case NAIVE_SIZE:
		return v->kind == LEAF_ARRAY && v->count == (size_t)n->number;
	case NAIVE_AND:
	case NAIVE_OR:
	case NAIVE_NOR:
	case NAIVE_NOT:
	case NAIVE_FIELD:
	case NAIVE_EXISTS:
	case NAIVE_ELEM_MATCH:
	case NAIVE_ALL_MATCH:
	case NAIVE_KEY_MAP_MATCH:
		break;
	}
	return naive_children(n, v);
}

/* `negated`: the opposite is wanted of each condition, but only where its field is there. */
static bool
naive_combination(const struct naive_node *n, struct naive_place at, bool inside, bool negated)
{
	bool any = n->count == 0;
	bool all = true;

	for (size_t i = 0; i < n->count; i++) {
		bool matches = inside ? naive_matches(&n->parts[i], at, true, false) !=
						(n->kind == NAIVE_NOR)
				      : naive_matches(&n->parts[i], at, false,
						      negated != (n->kind == NAIVE_NOR));

		any = any || matches;
		all = all && matches;
	}
	return (n->kind == NAIVE_OR) != negated ? any : all;
}

static bool
naive_matches(const struct naive_node *n, struct naive_place at, bool inside, bool negated)
{
	if (n->kind == NAIVE_FIELD)
		return naive_matches(n->parts, place_step(at, n->number), inside, negated);
	if (n->kind == NAIVE_NOT)
		return inside ? !naive_matches(n->parts, at, true, false)
			      : naive_matches(n->parts, at, false, !negated);
	if (n->kind <= NAIVE_NOR)
		return naive_combination(n, at, inside, negated);
	if (n->kind == NAIVE_EXISTS)
		return at.value ? n->number != negated : at.no_member && n->number == negated;
	return at.value && naive_condition(n, at.value) != negated;
}

/* ---- The comparison ---- */

static void
random_selectors_mean_what_a_naive_matcher_says(void **state)
{
	size_t matched = 0;

	(void)state;
	for (size_t round = 0; round < ROUNDS; round++) {
		struct arena_mark mark = arena_mark(arena);
		AUTO(buf_release) struct buf text = BUF_INIT(1 << 20);
		AUTO(buf_release) struct buf doc_text = BUF_INIT(1 << 20);
		struct selector_special specials[2];
		struct naive_value v = { .kind = LEAF_OBJECT };
		struct naive_node n;
		struct selector *s;
		struct selector_doc doc;
		struct err err = { 0 };
		bool expected, got;

		value_random_items(&v, 0);
		node_random(&n);
		value_print(&v, &doc_text);
		node_print(&n, &text);
		buf_append_byte(&doc_text, '\0');
		if (selector_compile(buf_str(&text), &work, &s, NULL, &err) != STATUS_OK)
			fail_msg("%.*s: %s", STR_ARG(buf_str(&text)), err.text);
		doc_of(doc_text.ptr, specials, &doc);
		assert_int_equal(selector_match(s, &doc, &work, &got), STATUS_OK);
		expected = naive_matches(&n, (struct naive_place){ &v, false }, false, false);
		if (got != expected)
			fail_msg("%.*s against %s: %d", STR_ARG(buf_str(&text)), doc_text.ptr, got);
		matched += got;
		arena_reset(arena, mark);
	}
	/* Both answers are frequent. */
	assert_in_range(matched, ROUNDS / 10, ROUNDS - ROUNDS / 10);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(random_selectors_mean_what_a_naive_matcher_says,
						setup, teardown),
	};

	return cmocka_run_group_tests_name("random selectors", tests, NULL, NULL);
}
