#include "mql/sort.h"

#include "mql_case.h"

static struct mql_sort_by *
sort_by(struct mql *q, const char *spec)
{
	struct mql_sort_by *s;

	if (mql_sort_by_compile(q, case_bson(q->arena, spec), &s) != STATUS_OK)
		fail_msg("%s: %s", spec, case_err.text);
	return s;
}

/* The values of a key, as a document's. */
static const char *
key_of(struct mql *q, const char *spec, const char *document)
{
	struct mql_sort_by *s = sort_by(q, spec);
	struct buf out = BUF_INIT(CASE_BYTES);
	struct mql_sort_key *key;
	struct bson_builder b;
	const char *text;

	if (mql_sort_key_of(s, q, case_bson(q->arena, document), &key) != STATUS_OK)
		return case_err.text;
	bson_builder_init(&b, &out);
	bson_begin(&b);
	for (size_t i = 0; i < mql_sort_by_count(s); i++)
		bson_put(&b, i ? STR("y") : STR("x"), mql_sort_key_value(key, i));
	bson_end(&b);
	text = case_json(q->arena, buf_str(&out));
	buf_release(&out);
	return text;
}

static void
keys_take_the_first_of_an_array(void **state)
{
	static const struct {
		const char *spec, *document, *key;
	} cases[] = {
		{ "{'a':1}", "{'a':3}", "{'x':3}" },
		{ "{'a':1}", "{}", "{'x':null}" },
		{ "{'a':1}", "{'a':[3,1,2]}", "{'x':1}" },
		{ "{'a':-1}", "{'a':[3,1,4,2]}", "{'x':4}" },
		{ "{'a':1}", "{'a':[]}", "{'x':{'$undefined':true}}" },
		{ "{'a':1}", "{'a':[[1],5]}", "{'x':5}" },
		{ "{'a':1}", "{'a':[[7]]}", "{'x':[7]}" },
		{ "{'a.b':1}", "{'a':{'b':2}}", "{'x':2}" },
		{ "{'a.b':1}", "{'a':7}", "{'x':null}" },
		{ "{'a.b':-1}", "{'a':[{'b':2},{'b':[9,1]},{}]}", "{'x':9}" },
		{ "{'a.b':1}", "{'a':[{'b':2},{}]}", "{'x':null}" },
		{ "{'a.1':1}", "{'a':[5,6]}", "{'x':6}" },
		{ "{'a.1.b':1}", "{'a':[5,{'b':7}]}", "{'x':7}" },
		{ "{'a.b':1,'a.c':1}", "{'a':[{'b':2,'c':1},{'b':1,'c':9}]}", "{'x':1,'y':9}" },
		{ "{'a.b':1,'a.c':-1}", "{'a':[{'b':1,'c':1},{'b':1,'c':9},{'b':1,'c':3}]}",
		  "{'x':1,'y':9}" },
		{ "{'a':1,'b':1}", "{'a':[2,1],'b':3}", "{'x':1,'y':3}" },
		{ "{'a':1,'b':1}", "{'a':[2,1],'b':[3]}",
		  "cannot sort with keys that are parallel arrays" },
		{ "{'a.b':1,'a.c':1}", "{'a':[{'b':[1],'c':[2]}]}",
		  "cannot sort with keys that are parallel arrays" },
	};

	for (size_t i = 0; i < CASES(cases); i++) {
		struct mql q = case_mql(*state);

		assert_string_equal(key_of(&q, cases[i].spec, cases[i].document), cases[i].key);
	}
}

static int
order_of(struct mql *q, const char *spec, const char *a, const char *b)
{
	struct mql_sort_by *s = sort_by(q, spec);
	struct mql_sort_key *left, *right;

	assert_int_equal(mql_sort_key_of(s, q, case_bson(q->arena, a), &left), STATUS_OK);
	assert_int_equal(mql_sort_key_of(s, q, case_bson(q->arena, b), &right), STATUS_OK);
	return mql_sort_key_compare(s, left, right, NULL);
}

static void
keys_are_in_the_order_of_the_pattern(void **state)
{
	struct mql q = case_mql(*state);

	assert_true(order_of(&q, "{'a':1}", "{'a':1}", "{'a':2}") < 0);
	assert_true(order_of(&q, "{'a':-1}", "{'a':1}", "{'a':2}") > 0);
	assert_true(order_of(&q, "{'a':1,'b':-1}", "{'a':1,'b':1}", "{'a':1.0,'b':2}") > 0);
	assert_int_equal(order_of(&q, "{'a':1}", "{'b':1}", "{'a':null}"), 0);
	assert_true(order_of(&q, "{'a':1}", "{'a':[]}", "{'a':null}") < 0);
}

static void
patterns_that_make_no_sense_are_refused(void **state)
{
	static const struct {
		const char *spec;
		int code;
	} cases[] = {
		{ "{}", 15976 },
		{ "{'a':0}", 15975 },
		{ "{'a':2}", 15975 },
		{ "{'a':'x'}", 15974 },
		{ "{'a':{'b':1}}", 17312 },
		{ "{'a':{'$meta':'textScore'}}", MQL_NOT_SUPPORTED },
		{ "{'':1}", 40352 },
		{ "{'a.':1}", 40353 },
		{ "{'a..b':1}", 15998 },
		{ "{'$a':1}", 16410 },
		{ "{'a':1,'a':-1}", 7472500 },
	};

	for (size_t i = 0; i < CASES(cases); i++) {
		struct mql q = case_mql(*state);
		struct mql_sort_by *s;

		assert_int_not_equal(mql_sort_by_compile(&q, case_bson(q.arena, cases[i].spec), &s),
				     STATUS_OK);
		if (q.code != cases[i].code)
			fail_msg("%s: %d, %s", cases[i].spec, q.code, case_err.text);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(keys_take_the_first_of_an_array, case_setup,
						case_teardown),
		cmocka_unit_test_setup_teardown(keys_are_in_the_order_of_the_pattern, case_setup,
						case_teardown),
		cmocka_unit_test_setup_teardown(patterns_that_make_no_sense_are_refused, case_setup,
						case_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
