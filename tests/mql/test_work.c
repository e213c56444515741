/*
 * Work that grows with the data, and not with its square: the steps (loop/step.h) of twice the data
 * are less than three times as many.
 */
#include "base/mem.h"
#include "loop/step.h"
#include "mql/expr/text.h"
#include "mql/finder.h"
#include "mql/match/match.h"
#include "mql/stage/accum.h"
#include "mql/stage/project.h"
#include "mql/stage/stages.h"
#include "mql/update/update.h"
#include "mql/value_set.h"
#include "expr_case.h"
#include "stages_case.h"

enum {
	WORK_BYTES = 1 << 28,
	FEW = 2000,
	CHARS = 1 << 19,
};

static int
work_setup(void **state)
{
	*state = arena_new(WORK_BYTES);
	return *state ? 0 : -1;
}

/* {name: [from, from + 1, …]}; `more` is a list of further values, which begins with a comma. */
static struct str
numbers(struct arena *arena, const char *name, int from, int count, const char *more)
{
	struct buf text = BUF_INIT(CASE_BYTES);
	struct str doc;

	buf_printf(&text, "{'%s':[", name);
	for (int i = 0; i < count; i++)
		buf_printf(&text, "%s%d", i ? "," : "", from + i);
	buf_printf(&text, "%s]}", more);
	buf_append_byte(&text, 0);
	assert_int_equal(buf_status(&text), STATUS_OK);
	doc = case_bson(arena, text.ptr);
	buf_release(&text);
	return doc;
}

/* A document with one member, which is a document. */
static struct str
around(struct arena *arena, const char *name, struct str inner)
{
	struct buf out = BUF_INIT(CASE_BYTES);
	struct bson_builder b;
	struct str doc;

	bson_builder_init(&b, &out);
	bson_begin(&b);
	bson_put_document(&b, str_from_cstr(name), inner);
	bson_end(&b);
	doc = arena_dup(arena, buf_str(&out));
	buf_release(&out);
	return doc;
}

static int64_t
update_steps(struct arena *arena, struct str change, struct str document, size_t *ret_count)
{
	const struct mql_update_on on = { document, -1, false };
	struct mql q = case_mql(arena);
	struct mql_updated done;
	struct mql_update *u;
	struct bson_value a;
	int64_t before;

	step_pause(1);
	before = step_credit;
	assert_int_equal(mql_update_compile(&q, change, BSON_EMPTY, &u), STATUS_OK);
	assert_int_equal(mql_update_run(u, &q, &on, &done), STATUS_OK);
	assert_true(bson_find(done.document, STR("a"), &a));
	*ret_count = bson_count(bson_text(&a));
	return before - step_credit;
}

static int64_t
match_steps(struct arena *arena, struct str filter, struct str document, bool wanted)
{
	struct mql q = case_mql(arena);
	bool matches = !wanted;
	struct mql_match *m;
	int64_t before;

	step_pause(1);
	before = step_credit;
	assert_int_equal(mql_match_compile(&q, filter, &m), STATUS_OK);
	assert_int_equal(mql_match_run(m, &q, document, &matches, NULL), STATUS_OK);
	assert_int_equal(matches, wanted);
	return before - step_credit;
}

static void
sets_grow_by_each_in_steps_of_their_values(void **state)
{
	int64_t steps[2];
	size_t count;

	for (int i = 0; i < 2; i++) {
		int n = FEW << i;
		struct str each = numbers(*state, "$each", n / 2, n, "");

		steps[i] = update_steps(*state,
					around(*state, "$addToSet", around(*state, "a", each)),
					numbers(*state, "a", 0, n, ""), &count);
		assert_int_equal(count, n + n / 2);
	}
	assert_true(steps[1] < 3 * steps[0]);
}

static void
values_are_pulled_in_steps_of_both_lists(void **state)
{
	int64_t steps[2];
	size_t count;

	for (int i = 0; i < 2; i++) {
		int n = FEW << i;

		steps[i] = update_steps(
			*state, around(*state, "$pullAll", numbers(*state, "a", n / 2, n, "")),
			numbers(*state, "a", 0, n, ""), &count);
		assert_int_equal(count, n / 2);
	}
	assert_true(steps[1] < 3 * steps[0]);
}

static void
all_of_many_values_are_sought_in_steps_of_both_lists(void **state)
{
	int64_t steps[2];

	for (int i = 0; i < 2; i++) {
		int n = FEW << i;
		struct str all = around(*state, "a", numbers(*state, "$all", 0, n, ""));

		steps[i] = match_steps(*state, all, numbers(*state, "a", 0, n, ""), true);
	}
	assert_true(steps[1] < 3 * steps[0]);
}

static void
all_of_many_values_means_the_same_as_of_few(void **state)
{
	static const struct {
		const char *more;     /* behind the numbers of $all */
		const char *document; /* behind those of the document */
		bool matches;
	} cases[] = {
		{ ",'x','y',7", ",'y','x'", true },
		{ ",'x','y',7", ",'x'", false },
		{ ",null,7", "", false },
		{ ",null,7", ",null", true },
		{ ",{'$numberDouble':'NaN'},7", ",{'$numberDecimal':'NaN'}", true },
		{ ",{'$regularExpression':{'pattern':'^x','options':''}},7", ",'xy'", true },
		{ ",{'$regularExpression':{'pattern':'^x','options':''}},7", ",'y'", false },
		{ ",{'b':1},7", ",{'b':1.0}", true },
		{ ",[1],7", ",[1]", true },
		{ ",[1],7", ",1", false },
		{ ",2.5,7", ",{'$numberDecimal':'2.50'}", true },
		{ ",{'$minKey':1},7", ",{'$minKey':1}", true },
		{ ",{'$minKey':1},7", "", false },
	};

	for (size_t i = 0; i < CASES(cases); i++)
		match_steps(*state,
			    around(*state, "a", numbers(*state, "$all", 0, 30, cases[i].more)),
			    numbers(*state, "a", 0, 30, cases[i].document), cases[i].matches);
}

static void
the_last_of_many_values_tells_the_position(void **state)
{
	struct str filter = around(*state, "a", numbers(*state, "$all", 0, 30, ",3"));
	struct mql q = case_mql(*state);
	struct mql_match *m;
	int64_t position = -1;
	bool matches;

	assert_int_equal(mql_match_compile(&q, filter, &m), STATUS_OK);
	assert_int_equal(mql_match_run(m, &q, numbers(*state, "a", 0, 30, ""), &matches, &position),
			 STATUS_OK);
	assert_true(matches);
	assert_int_equal(position, 3);
}

static void
lists_of_a_schema_are_checked_in_steps_of_their_values(void **state)
{
	int64_t steps[2];

	for (int i = 0; i < 2; i++) {
		struct str names = numbers(*state, "enum", 0, FEW << i, "");
		struct str schema = around(
			*state, "$jsonSchema",
			around(*state, "properties", around(*state, "a", names)));

		steps[i] = match_steps(*state, schema, case_bson(*state, "{'a':7}"), true);
	}
	assert_true(steps[1] < 3 * steps[0]);
}

/* {inside: {f0: 0, f1: 1, …}}, or a filter of the paths to them; "" has no `inside`. */
static struct str
members(struct arena *arena, const char *inside, const char *path, int count)
{
	struct buf out = BUF_INIT(CASE_BYTES);
	struct bson_builder b;
	struct str doc;
	char name[32];

	bson_builder_init(&b, &out);
	bson_begin(&b);
	for (int i = 0; i < count; i++) {
		(void)snprintf(name, sizeof(name), "%sf%d", path, i);
		bson_put_int32(&b, str_from_cstr(name), i);
	}
	bson_end(&b);
	doc = arena_dup(arena, buf_str(&out));
	buf_release(&out);
	return inside[0] ? around(arena, inside, doc) : doc;
}

static void
many_fields_are_matched_in_steps_of_filter_and_document(void **state)
{
	static const struct {
		const char *inside, *path;
	} cases[] = { { "", "" }, { "a", "a." } };

	for (size_t c = 0; c < CASES(cases); c++) {
		int64_t steps[2];

		for (int i = 0; i < 2; i++)
			steps[i] = match_steps(*state, members(*state, "", cases[c].path, FEW << i),
					       members(*state, cases[c].inside, "", FEW << i),
					       true);
		assert_true(steps[1] < 3 * steps[0]);
	}
}

/* Each element of an array is looked in for each field of a filter, in turn. */
static void
many_fields_are_pulled_in_steps_of_the_documents(void **state)
{
	int64_t steps[2];
	size_t count;

	for (int i = 0; i < 2; i++) {
		struct str one = members(*state, "", "", FEW << i);
		struct buf out = BUF_INIT(CASE_BYTES);
		struct bson_builder b;

		bson_builder_init(&b, &out);
		bson_begin(&b);
		bson_begin_array(&b, STR("a"));
		bson_put_document(&b, STR(""), one);
		bson_put_document(&b, STR(""), BSON_EMPTY);
		bson_end(&b);
		bson_end(&b);
		steps[i] = update_steps(*state, around(*state, "$pull", around(*state, "a", one)),
					buf_str(&out), &count);
		assert_int_equal(count, 1);
		buf_release(&out);
	}
	assert_true(steps[1] < 3 * steps[0]);
}

static void
many_fields_are_matched_in_steps_of_an_arrays_documents(void **state)
{
	enum {
		ELEMENTS = 20
	};
	int64_t steps[2];

	for (int i = 0; i < 2; i++) {
		struct str one = members(*state, "", "", FEW << i);
		struct buf out = BUF_INIT(CASE_BYTES);
		struct bson_builder b;

		bson_builder_init(&b, &out);
		bson_begin(&b);
		bson_begin_array(&b, STR("a"));
		for (int e = 0; e < ELEMENTS; e++)
			bson_put_document(&b, STR(""), e + 1 < ELEMENTS ? BSON_EMPTY : one);
		bson_end(&b);
		bson_end(&b);
		steps[i] = match_steps(*state, members(*state, "", "a.", FEW << i), buf_str(&out),
				       true);
		buf_release(&out);
	}
	assert_true(steps[1] < 3 * steps[0]);
}

static void
a_finder_finds_what_a_search_finds(void **state)
{
	static const char *const paths[] = { "a.b.7",  "a.b.3",   "a.b.5000", "a.b.5",   "a.c",
					     "z",      "a.b",     "z.0",      "a.b.0.x", "a.",
					     "a.d",    "a.d.x.y", "a.f1",     "f1",      "a.b.1999",
					     "none.z", "a.none.c" };
	struct buf out = BUF_INIT(CASE_BYTES);
	struct mql_finder finder;
	struct bson_value expected, v;
	struct bson_builder b;
	bool there;

	bson_builder_init(&b, &out);
	bson_begin(&b);
	bson_put_int32(&b, STR("z"), -1);
	bson_begin_document(&b, STR("a"));
	bson_begin_array(&b, STR("b"));
	for (int i = 0; i < FEW; i++)
		bson_put_int32(&b, STR(""), i);
	bson_end(&b);
	/* Of a name that is there twice the first one counts. */
	bson_put_int32(&b, STR("c"), -2);
	bson_put_int32(&b, STR("c"), -3);
	bson_begin_document(&b, STR("d"));
	bson_put_document(&b, STR("x"), members(*state, "", "", FEW));
	bson_end(&b);
	bson_end(&b);
	bson_end(&b);
	mql_finder_init(&finder, *state);
	/* Again and again, so that first members are gone through, and then indexes are there. */
	for (int round = 0; round < 20; round++) {
		for (size_t i = 0; i < CASES(paths); i++) {
			struct str path = str_from_cstr(paths[i]);
			bool wanted = bson_find_path(buf_str(&out), path, &expected);

			assert_int_equal(mql_finder_path(&finder, buf_str(&out), path, &v, &there),
					 STATUS_OK);
			assert_int_equal(there, wanted);
			if (there)
				assert_true(bson_compare_values(&v, &expected, NULL) == 0);
		}
	}
	assert_true(finder.count > 1);
	mql_finder_fini(&finder);
	buf_release(&out);
}

/* So many that some have the same place, and that more places are made. */
static void
a_finder_knows_many_documents(void **state)
{
	struct bson_value v;
	struct mql_finder finder;
	struct str docs[200];
	bool there;

	for (size_t i = 0; i < CASES(docs); i++)
		docs[i] = members(*state, "", "", 200);
	mql_finder_init(&finder, *state);
	while (finder.passed_bytes < MQL_FINDER_FIRST_BYTES)
		assert_int_equal(mql_finder_find(&finder, docs[0], STR("f199"), &v, &there),
				 STATUS_OK);
	assert_int_equal(mql_finder_find(&finder, docs[0], STR("f199"), &v, &there), STATUS_OK);
	assert_int_equal(finder.count, 1);
	for (int round = 0; round < 3; round++) {
		for (size_t i = 0; i < CASES(docs); i++) {
			assert_int_equal(mql_finder_find(&finder, docs[i], STR("f199"), &v, &there),
					 STATUS_OK);
			assert_true(there && bson_integer(&v) == 199);
		}
	}
	assert_int_equal(finder.count, CASES(docs));
	mql_finder_fini(&finder);
}

static void
a_finder_without_memory_goes_through_the_members(void **state)
{
	struct str doc = members(*state, "", "", FEW);
	struct mql_finder finder;
	struct bson_value v;
	bool there;

	for (uint64_t nth = 1; nth < 6; nth++) {
		mql_finder_init(&finder, *state);
		mem_fail_after(nth);
		for (int i = 0; i < 100; i++) {
			assert_int_equal(mql_finder_find(&finder, doc, STR("f1999"), &v, &there),
					 STATUS_OK);
			assert_true(there && bson_integer(&v) == 1999);
		}
		mem_fail_after(0);
		mql_finder_fini(&finder);
	}
}

/* A text of one character again and again, and `end`. */
static struct str
repeated(struct arena *arena, size_t count, const char *end)
{
	char *text = arena_bytes(arena, count + strlen(end));

	memset(text, 'a', count);
	memcpy(text + count, end, strlen(end));
	return str_of(text, count + strlen(end));
}

/* What an expression makes of a document with two texts. */
static enum status
expr_on_texts(struct mql *q, const char *expression, struct str a, struct str b,
	      struct bson_value *ret)
{
	const struct bson_value v = case_value(q->arena, expression);
	struct buf out = BUF_INIT(WORK_BYTES);
	struct bson_builder builder;
	struct mql_env env = { 0 };
	enum status status;
	struct mql_expr *e;

	bson_builder_init(&builder, &out);
	bson_begin(&builder);
	bson_put_string(&builder, STR("a"), a);
	bson_put_string(&builder, STR("b"), b);
	bson_end(&builder);
	env.root = buf_str(&out);
	assert_int_equal(mql_expr_compile(q, &v, NULL, &e), STATUS_OK);
	status = mql_expr_run(e, q, &env, ret);
	buf_release(&out);
	return status;
}

static int64_t
expr_steps(struct arena *arena, const char *expression, struct str a, struct str b, int64_t *ret)
{
	struct mql q = case_mql(arena);
	struct bson_value value;
	int64_t before;

	step_pause(1);
	before = step_credit;
	assert_int_equal(expr_on_texts(&q, expression, a, b, &value), STATUS_OK);
	assert_true(bson_to_int64(&value, ret));
	return before - step_credit;
}

/* Values that each member of an array is looked up among. */
static void
items_of_an_enum_are_looked_up_in_steps_of_both_lists(void **state)
{
	int64_t steps[2];

	for (int i = 0; i < 2; i++) {
		int n = FEW << i;
		struct str items = around(*state, "items", numbers(*state, "enum", 0, n, ""));
		struct str schema = around(
			*state, "$jsonSchema",
			around(*state, "properties", around(*state, "a", items)));

		steps[i] = match_steps(*state, schema, numbers(*state, "a", 0, n, ""), true);
	}
	assert_true(steps[1] < 3 * steps[0]);
}

static void
a_constant_list_of_in_is_looked_up_in_steps_of_both_lists(void **state)
{
	int64_t steps[2], count;

	for (int i = 0; i < 2; i++) {
		int n = FEW << i;
		struct buf text = BUF_INIT(CASE_BYTES);

		buf_append_cstr(&text, "{'$size':{'$filter':{'input':{'$range':[");
		buf_printf(&text, "%d,%d]},'cond':{'$in':['$$this',", n / 2, n + n / 2);
		for (int k = 0; k < n; k++)
			buf_printf(&text, "%s%d", k ? "," : "[", k);
		buf_append_cstr(&text, "]]}}}}");
		buf_append_byte(&text, 0);
		assert_int_equal(buf_status(&text), STATUS_OK);
		steps[i] = expr_steps(*state, text.ptr, STR(""), STR(""), &count);
		assert_int_equal(count, n / 2);
		buf_release(&text);
	}
	assert_true(steps[1] < 3 * steps[0]);
}

static void
a_value_of_in_is_found_with_its_kin_and_without(void **state)
{
	static const struct {
		const char *list;
		const char *value;
		bool found;
	} cases[] = {
		{ "[1,2,3]", "2", true },
		{ "[1,2,3]", "{'$numberDecimal':'2.0'}", true },
		{ "[1,2,3]", "'2'", false },
		{ "[]", "1", false },
		{ "[null]", "null", true },
		{ "[null]", "'$$REMOVE'", false },
		{ "[[1],{'b':1}]", "[1]", true },
		{ "[[1],{'b':1}]", "1", false },
		{ "[{'$minKey':1},'x']", "'$$REMOVE'", false },
	};

	for (size_t i = 0; i < CASES(cases); i++) {
		char text[200];
		int64_t found;

		(void)snprintf(text, sizeof(text), "{'$cond':[{'$in':[%s,%s]},1,0]}",
			       cases[i].value, cases[i].list);
		expr_steps(*state, text, STR(""), STR(""), &found);
		if (found != cases[i].found)
			fail_msg("%s", text);
	}
}

/* A place in the list and room to sort it: no copies of the values, however many need them. */
static void
values_of_in_take_few_bytes_each(void **state)
{
	enum {
		VALUE_BYTES = 2 * sizeof(void *),
		OTHER_BYTES = 4096,
	};
	struct mql q = case_mql(*state);
	const struct mql_demand *demands;
	struct bson_value third;
	struct mql_match *m;
	size_t before, count;
	struct str filter;

	/* In no order, so that they are sorted. */
	filter = around(*state, "a", numbers(*state, "$in", 0, 10 * FEW, ",7,5,3"));
	before = arena_used_bytes(*state);
	assert_int_equal(mql_match_compile(&q, filter, &m), STATUS_OK);
	assert_true(arena_used_bytes(*state) - before < 10 * FEW * VALUE_BYTES + OTHER_BYTES);
	mql_match_demands(m, &demands, &count);
	assert_int_equal(count, 1);
	assert_int_equal(demands[0].op, MQL_DEMAND_IN);
	assert_int_equal(demands[0].set->count, 10 * FEW);
	third = mql_value_set_at(demands[0].set, 3);
	assert_int_equal(bson_integer(&third), 3);
}

/*
 * Values that are nearly equal, of types that compare with each other and of others. A set has them
 * in the order of bson_compare_values(), the first of equal ones, and finds each of them.
 */
static void
a_set_has_any_values_in_order(void **state)
{
	struct bson_value v = case_value(
		*state,
		"[0,{'$numberDouble':'-0.0'},{'$numberDouble':'NaN'},{'$numberDecimal':'NaN'},1.5,"
		"{'$numberLong':'9007199254740993'},{'$numberDouble':'9007199254740992'},"
		"{'$numberLong':'9223372036854775807'},{'$numberDouble':'9223372036854775808'},"
		"{'$numberLong':'-9223372036854775808'},{'$numberDouble':'-1e300'},"
		"{'$numberDecimal':'9007199254740992.5'},{'$numberDecimal':'1E+6000'},"
		"{'$numberDecimal':'-1E-6000'},{'$numberDouble':'5e-324'},"
		"{'$numberDouble':'-Infinity'},{'$numberDouble':'Infinity'},{'$numberDecimal':'1."
		"50'},"
		"'','a','abcdefgh','abcdefghi','abcdefg','\u00e4','A',{'$symbol':'abcdefghh'},"
		"{'$oid':'5f00000000000000000000aa'},{'$oid':'5f00000000000000000000ab'},"
		"{'$oid':'4f00000000000000000000ab'},{'$date':{'$numberLong':'-1'}},"
		"{'$date':{'$numberLong':'1'}},{'$date':{'$numberLong':'0'}},true,false,null,"
		"{'$minKey':1},{'$maxKey':1},{'a':1},{'a':1.0},{'a':2},[1],[],{},-7,7,-7.0,"
		"{'$timestamp':{'t':1,'i':2}},{'$binary':{'base64':'AAA=','subType':'00'}},"
		"{'$binary':{'base64':'/w==','subType':'00'}}]");
	struct mql q = case_mql(*state);
	struct mql_value_set set;
	struct bson_element e;
	struct bson_iter i;
	size_t at;

	assert_int_equal(mql_value_set_of(&q, bson_text(&v), NULL, &set), STATUS_OK);
	assert_int_equal(set.all_count, bson_count(bson_text(&v)));
	for (size_t n = 1; n < set.count; n++) {
		const struct bson_value before = mql_value_set_at(&set, n - 1),
					after = mql_value_set_at(&set, n);

		assert_true(bson_compare_values(&before, &after, NULL) < 0);
	}
	for (bson_iter_begin(&i, bson_text(&v)); bson_iter_read(&i, &e);) {
		struct bson_value found;

		assert_true(mql_value_set_find(&set, NULL, &e.value, &at));
		found = mql_value_set_at(&set, at);
		assert_int_equal(bson_compare_values(&found, &e.value, NULL), 0);
	}
	/* 0 and -0.0, both NaN, 1.5 and 1.50, {a: 1} and {a: 1.0}, -7 and -7.0. */
	assert_int_equal(set.count, set.all_count - 5);
}

/* {operator: {from: value, …}} of so many names; `prefix` is in front of each. */
static struct str
fields(struct arena *arena, const char *operator, const char * prefix, int count, const char *value)
{
	struct buf text = BUF_INIT(CASE_BYTES);
	struct str doc;

	buf_printf(&text, operator[0] ? "{'%s':{" : "%s{", operator);
	for (int i = 0; i < count; i++)
		buf_printf(&text, "%s'%s%d':%s", i ? "," : "", prefix, i, value);
	buf_printf(&text, operator[0] ? "}}" : "}");
	buf_append_byte(&text, 0);
	assert_int_equal(buf_status(&text), STATUS_OK);
	doc = case_bson(arena, text.ptr);
	buf_release(&text);
	return doc;
}

static void
many_fields_are_set_in_steps_of_their_names(void **state)
{
	int64_t steps[2], taken[2], placed[2];
	size_t count;

	for (int i = 0; i < 2; i++) {
		int n = 10 * FEW << i;
		struct str doc = around(*state, "a", fields(*state, "", "f", n / 2, "0"));

		steps[i] = update_steps(*state, fields(*state, "$set", "a.f", n, "1"), doc, &count);
		assert_int_equal(count, n);
		taken[i] = update_steps(*state, fields(*state, "$unset", "a.f", n / 2 - 1, "1"),
					doc, &count);
		assert_int_equal(count, 1);
		placed[i] = update_steps(*state, fields(*state, "$set", "a.", n, "1"),
					 numbers(*state, "a", 0, n / 2, ""), &count);
		assert_int_equal(count, n);
	}
	assert_true(steps[1] < 3 * steps[0]);
	assert_true(taken[1] < 3 * taken[0]);
	assert_true(placed[1] < 3 * placed[0]);
}

/* The stages have a value that computes nothing for each name: 1, or 'x', which is a string. */
static int64_t
projection_steps(struct arena *arena, bool adds, int count, struct str doc, size_t *ret_count)
{
	const struct bson_value spec = BSON_OF_DOCUMENT(
		fields(arena, "", "f", count, adds ? "'x'" : "1"));
	struct mql_projection *p;
	struct mql q = case_mql(arena);
	struct str made;
	int64_t before;

	step_pause(1);
	before = step_credit;
	if (adds)
		assert_int_equal(mql_projection_compile_set(&q, STR("$set"), &spec, NULL, &p),
				 STATUS_OK);
	else
		assert_int_equal(mql_projection_compile_project(&q, &spec, NULL, &p), STATUS_OK);
	assert_int_equal(mql_projection_run(p, &q, doc, -1, NULL, &made), STATUS_OK);
	*ret_count = bson_count(made);
	return before - step_credit;
}

static void
many_fields_are_projected_in_steps_of_their_names(void **state)
{
	int64_t chosen[2], added[2];
	size_t count;

	for (int i = 0; i < 2; i++) {
		int n = FEW << i;
		struct str doc = fields(*state, "", "f", 2 * n, "0");

		chosen[i] = projection_steps(*state, false, n, doc, &count);
		assert_int_equal(count, n);
		added[i] = projection_steps(*state, true, 3 * n, doc, &count);
		assert_int_equal(count, 3 * n);
	}
	assert_true(chosen[1] < 3 * chosen[0]);
	assert_true(added[1] < 3 * added[0]);
}

/* What $mergeObjects makes of two documents in a group. */
static struct str
merged_by_group(struct mql *q, struct arena *keep, struct str a, struct str b)
{
	struct bson_value spec, merged;
	struct str docs[] = { a, b };
	struct mql_accumulator *acc;
	struct mql_accumulator_state *state;

	assert_true(bson_find(case_bson(q->arena, "{'a':{'$mergeObjects':'$$ROOT'}}"), STR("a"),
			      &spec));
	assert_int_equal(mql_accumulator_compile(q, STR("a"), &spec, NULL, &acc), STATUS_OK);
	state = arena_zalloc(keep, mql_accumulator_bytes());
	for (int i = 0; i < 2; i++) {
		const struct mql_env env = { .root = docs[i], .current = MQL_NO_VALUE };

		if (!i)
			assert_int_equal(mql_accumulator_begin(acc, q, &env, keep, state),
					 STATUS_OK);
		assert_int_equal(mql_accumulator_add(acc, q, &env, keep, state), STATUS_OK);
	}
	assert_int_equal(mql_accumulator_end(acc, q, state, &merged), STATUS_OK);
	return bson_text(&merged);
}

static void
documents_are_merged_in_steps_of_their_fields(void **state)
{
	const struct mql_write w = { .matched = MQL_MERGE_MERGE };
	int64_t written[2], grouped[2];

	for (int i = 0; i < 2; i++) {
		int n = 10 * FEW << i;
		struct str a = fields(*state, "", "f", n, "0"),
			   b = fields(*state, "", "f", 2 * n, "1"), merged;
		struct mql q = case_mql(*state);
		int64_t before;

		step_pause(1);
		before = step_credit;
		assert_int_equal(mql_write_merge(&w, &q, a, b, &merged), STATUS_OK);
		written[i] = before - step_credit;
		assert_true(str_eq(merged, b));
		before = step_credit;
		assert_true(str_eq(merged_by_group(&q, *state, a, b), b));
		grouped[i] = before - step_credit;
	}
	assert_true(written[1] < 3 * written[0]);
	assert_true(grouped[1] < 3 * grouped[0]);
}

/*
 * Were the text compared at each of its characters, that would be some 10^11 bytes, and the test
 * would not end in its time.
 */
static void
a_long_text_is_found_in_a_longer_one(void **state)
{
	struct str text = repeated(*state, 2 * CHARS, "\xc3\xa4"),
		   what = repeated(*state, CHARS, "b");
	int64_t at;

	expr_steps(*state, "{'$indexOfCP':['$a','$b']}", text, what, &at);
	assert_int_equal(at, -1);
	what = repeated(*state, CHARS, "\xc3\xa4");
	expr_steps(*state, "{'$indexOfCP':['$a','$b']}", text, what, &at);
	assert_int_equal(at, CHARS);
	expr_steps(*state, "{'$indexOfCP':['$a','$b',0,524288]}", text, what, &at);
	assert_int_equal(at, -1);
	expr_steps(*state, "{'$indexOfCP':['$a','$b',524289]}", text, what, &at);
	assert_int_equal(at, -1);
}

static void
all_matches_of_a_pattern_are_found_in_steps_of_the_text(void **state)
{
	int64_t steps[2], count;

	for (int i = 0; i < 2; i++) {
		steps[i] = expr_steps(*state,
				      "{'$size':{'$regexFindAll':{'input':'$a','regex':'a'}}}",
				      repeated(*state, FEW << i, ""), STR(""), &count);
		assert_int_equal(count, FEW << i);
	}
	assert_true(steps[1] < 3 * steps[0]);
}

static void
many_characters_are_trimmed_in_steps_of_the_text(void **state)
{
	int64_t steps[2], left;

	for (int i = 0; i < 2; i++) {
		struct str chars = repeated(*state, FEW << i, "\xc3\xa4\xf0\x9f\x98\x80");

		steps[i] = expr_steps(
			*state, "{'$strLenBytes':{'$trim':{'input':'$a','chars':'$b'}}}",
			repeated(*state, FEW << i, "b\xc3\xa4\xf0\x9f\x98\x80"), chars, &left);
		assert_int_equal(left, 1);
	}
	assert_true(steps[1] < 3 * steps[0]);
}

/* A text of as many bytes as there may be, and of one more. */
static void
values_have_an_end(void **state)
{
	static const struct {
		const char *expression;
		size_t bytes; /* of both texts */
		int code;
	} cases[] = {
		{ "{'$strLenBytes':{'$concat':['$a','$b']}}", MQL_STRING_BYTES - 1, 16493 },
		{ "{'$strLenBytes':{'$toUpper':'$b'}}", 2 * (MQL_STRING_BYTES - 1), 16493 },
		{ "{'$size':[['$a','$b']]}", BSON_MOST_BYTES - 5 - 2 * 8, MQL_TOO_LARGE },
	};

	for (size_t i = 0; i < CASES(cases); i++) {
		for (size_t more = 0; more < 2; more++) {
			struct arena_mark mark = arena_mark(*state);
			struct str a = repeated(*state, cases[i].bytes / 2, "");
			struct str b = repeated(*state, cases[i].bytes + more - a.len, "");
			struct mql q = case_mql(*state);
			struct bson_value v;
			enum status status = expr_on_texts(&q, cases[i].expression, a, b, &v);

			if (q.code != (more ? cases[i].code : 0) || (status == STATUS_OK) != !more)
				fail_msg("%s of %zu bytes: %s %d", cases[i].expression,
					 a.len + b.len, status_name(status), q.code);
			arena_reset(*state, mark);
		}
	}
}

static int64_t
sort_steps(struct arena *arena, const char *stages, int count)
{
	struct buf docs = BUF_INIT(CASE_BYTES), out = BUF_INIT(CASE_BYTES);
	struct mql q = case_mql(arena);
	struct bson_builder b;
	int64_t before;

	bson_builder_init(&b, &docs);
	bson_begin(&b);
	for (int i = 0; i < count; i++)
		bson_put_document(&b, STR(""), case_bson(arena, i % 2 ? "{'a':1}" : "{'a':2}"));
	bson_end(&b);
	assert_int_equal(buf_status(&docs), STATUS_OK);
	step_pause(1);
	before = step_credit;
	assert_int_equal(run_documents(&q, stages, buf_str(&docs), RUN_DEFAULT, &out), STATUS_OK);
	buf_release(&docs);
	buf_release(&out);
	return before - step_credit;
}

/* Of a limit that is larger than any number of documents, twice as many are none to be cut off. */
static void
documents_are_sorted_in_the_same_steps_with_the_largest_limit(void **state)
{
	int64_t all = sort_steps(*state, "{'p':[{'$sort':{'a':1}}]}", FEW);
	int64_t limited = sort_steps(*state,
				     "{'p':[{'$sort':{'a':1}},"
				     "{'$limit':{'$numberLong':'9223372036854775807'}}]}",
				     FEW);

	assert_true(limited < 2 * all);
}

/* What is behind the limit is cut off when there is as much of it again, not at each document. */
static void
documents_are_sorted_in_about_the_same_steps_with_any_limit(void **state)
{
	static const int limits[] = { 1, 10, 100, 1000, FEW };
	int64_t all = sort_steps(*state, "{'p':[{'$sort':{'a':1}}]}", FEW);

	for (size_t i = 0; i < CASES(limits); i++) {
		const char *stages = arena_printf(*state, "{'p':[{'$sort':{'a':1}},{'$limit':%d}]}",
						  limits[i])
					     .ptr;

		assert_true(sort_steps(*state, stages, FEW) < 2 * all);
	}
}

/* What all rows have in their windows is computed once, and not for each of them. */
static void
windows_without_bounds_are_computed_in_steps_of_their_rows(void **state)
{
	static const char *const fields[] = {
		"{'$sum':'$a'}",
		"{'$sum':'$a','window':{'documents':['unbounded','unbounded']}}",
		"{'$covariancePop':['$a','$a']}",
		"{'$sum':'$a','window':{'documents':['unbounded','current']}}",
		"{'$sum':'$a','window':{'documents':['unbounded',1]}}",
	};

	for (size_t i = 0; i < CASES(fields); i++) {
		const char *stages = arena_printf(*state,
						  "{'p':[{'$setWindowFields':{'sortBy':{'a':1},"
						  "'output':{'x':%s}}}]}",
						  fields[i])
					     .ptr;
		int64_t half = sort_steps(*state, stages, FEW / 2);

		assert_true(sort_steps(*state, stages, FEW) < 3 * half);
	}
}

#define WORK_TEST(name) cmocka_unit_test_setup_teardown(name, work_setup, case_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		WORK_TEST(sets_grow_by_each_in_steps_of_their_values),
		WORK_TEST(values_are_pulled_in_steps_of_both_lists),
		WORK_TEST(many_fields_are_set_in_steps_of_their_names),
		WORK_TEST(all_of_many_values_are_sought_in_steps_of_both_lists),
		WORK_TEST(all_of_many_values_means_the_same_as_of_few),
		WORK_TEST(the_last_of_many_values_tells_the_position),
		WORK_TEST(a_finder_knows_many_documents),
		WORK_TEST(a_finder_without_memory_goes_through_the_members),
		WORK_TEST(a_finder_finds_what_a_search_finds),
		WORK_TEST(many_fields_are_matched_in_steps_of_an_arrays_documents),
		WORK_TEST(many_fields_are_matched_in_steps_of_filter_and_document),
		WORK_TEST(many_fields_are_pulled_in_steps_of_the_documents),
		WORK_TEST(lists_of_a_schema_are_checked_in_steps_of_their_values),
		WORK_TEST(items_of_an_enum_are_looked_up_in_steps_of_both_lists),
		WORK_TEST(a_constant_list_of_in_is_looked_up_in_steps_of_both_lists),
		WORK_TEST(a_value_of_in_is_found_with_its_kin_and_without),
		WORK_TEST(values_of_in_take_few_bytes_each),
		WORK_TEST(a_set_has_any_values_in_order),
		WORK_TEST(many_fields_are_projected_in_steps_of_their_names),
		WORK_TEST(documents_are_merged_in_steps_of_their_fields),
		WORK_TEST(a_long_text_is_found_in_a_longer_one),
		WORK_TEST(all_matches_of_a_pattern_are_found_in_steps_of_the_text),
		WORK_TEST(many_characters_are_trimmed_in_steps_of_the_text),
		WORK_TEST(values_have_an_end),
		WORK_TEST(documents_are_sorted_in_the_same_steps_with_the_largest_limit),
		WORK_TEST(documents_are_sorted_in_about_the_same_steps_with_any_limit),
		WORK_TEST(windows_without_bounds_are_computed_in_steps_of_their_rows),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
