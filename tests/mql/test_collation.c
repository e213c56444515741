#include "mql/collation.h"

#include "mql/match/match.h"
#include "mql_case.h"

static struct mql_collation *
collation(struct arena *arena, const char *document)
{
	struct mql q = case_mql(arena);
	struct mql_collation *c = NULL;

	if (mql_collation_new(&q, case_bson(arena, document), &c) != STATUS_OK)
		fail_msg("%s: %s", document, case_err.text);
	return c;
}

static void
documents_are_read_back_with_all_members(void **state)
{
	static const char *const cases[][2] = {
		{ "{'locale':'en'}",
		  "{'locale':'en','caseLevel':false,'caseFirst':'off','strength':3,"
		  "'numericOrdering':false,'alternate':'non-ignorable','maxVariable':'punct',"
		  "'normalization':false,'backwards':false,'version':'57.1'}" },
		{ "{'locale':'fr_CA','strength':2.9,'caseLevel':true,'caseFirst':'upper',"
		  "'numericOrdering':true,'alternate':'shifted','maxVariable':'space',"
		  "'normalization':true,'version':'57.1'}",
		  "{'locale':'fr_CA','caseLevel':true,'caseFirst':'upper','strength':2,"
		  "'numericOrdering':true,'alternate':'shifted','maxVariable':'space',"
		  "'normalization':true,'backwards':true,'version':'57.1'}" },
		{ "{'locale':'de@collation=phonebook','strength':{'$numberDecimal':'4.5'},"
		  "'caseLevel':null}",
		  "{'locale':'de@collation=phonebook','caseLevel':false,'caseFirst':'off',"
		  "'strength':4,'numericOrdering':false,'alternate':'non-ignorable',"
		  "'maxVariable':'punct','normalization':false,'backwards':false,"
		  "'version':'57.1'}" },
	};

	for (size_t i = 0; i < CASES(cases); i++) {
		struct mql_collation *c = collation(*state, cases[i][0]);
		struct str document = mql_collation_document(c);

		assert_int_equal(bson_check(document, NULL), STATUS_OK);
		assert_string_equal(case_json(*state, document), cases[i][1]);
		mql_collation_free(c);
	}
	assert_null(collation(*state, "{'locale':'simple','strength':1,'backwards':true}"));
	assert_null(mql_collation_texts(NULL));
}

struct order_case {
	const char *collation, *a, *b;
	int order;
};

static int
sign(int n)
{
	return (n > 0) - (n < 0);
}

/* By comparison, and by keys. */
static void
strings_are_ordered_by_the_rules(void **state)
{
	static const struct order_case cases[] = {
		{ "{'locale':'en'}", "a", "B", -1 },
		{ "{'locale':'en'}", "a", "A", -1 },
		{ "{'locale':'en','caseFirst':'upper'}", "a", "A", 1 },
		{ "{'locale':'en','strength':2}", "a", "A", 0 },
		{ "{'locale':'en','strength':2}", "a", "\xc3\xa1", -1 },
		{ "{'locale':'en','strength':1}", "a", "\xc3\xa1", 0 },
		{ "{'locale':'en','strength':1,'caseLevel':true}", "a", "A", -1 },
		{ "{'locale':'en'}", "10", "9", -1 },
		{ "{'locale':'en','numericOrdering':true}", "10", "9", 1 },
		{ "{'locale':'en','alternate':'shifted'}", "a-b", "ab", 0 },
		{ "{'locale':'en','alternate':'shifted','maxVariable':'space'}", "a-b", "ab", -1 },
		{ "{'locale':'th','strength':1}", "a b", "ab", 0 },
		{ "{'locale':'fr','backwards':true}", "cot\xc3\xa9", "c\xc3\xb4te", 1 },
		{ "{'locale':'fr'}", "cot\xc3\xa9", "c\xc3\xb4te", -1 },
		{ "{'locale':'de','strength':1}",
		  "stra\xc3\x9f"
		  "e",
		  "strasse", 0 },
		{ "{'locale':'sv'}", "z", "\xc3\xb6", -1 },
		{ "{'locale':'de'}", "z", "\xc3\xb6", 1 },
		{ "{'locale':'tr','strength':1}", "i", "I", 1 },
	};

	for (size_t i = 0; i < CASES(cases); i++) {
		const struct order_case *c = &cases[i];
		struct mql_collation *made = collation(*state, c->collation);
		const struct bson_texts *texts = mql_collation_texts(made);
		const struct bson_value a = BSON_OF_STRING(str_from_cstr(c->a));
		const struct bson_value b = BSON_OF_STRING(str_from_cstr(c->b));
		struct buf left = BUF_INIT(1 << 16), right = BUF_INIT(1 << 16);
		bool cut = false;

		if (bson_compare_values(&a, &b, texts) != c->order ||
		    bson_compare_values(&b, &a, texts) != -c->order)
			fail_msg("%s: %s, %s", c->collation, c->a, c->b);
		assert_int_equal(bson_key_put(&left, &a, 1000, texts, &cut), STATUS_OK);
		assert_int_equal(bson_key_put(&right, &b, 1000, texts, &cut), STATUS_OK);
		assert_false(cut);
		assert_int_equal(sign(str_cmp(buf_str(&left), buf_str(&right))), c->order);
		buf_release(&left);
		buf_release(&right);
		mql_collation_free(made);
	}
}

static void
long_texts_have_keys_that_are_cut(void **state)
{
	struct mql_collation *c = collation(*state, "{'locale':'en','strength':5}");
	const struct bson_texts *texts = mql_collation_texts(c);
	size_t len = 40000;
	char *text = arena_bytes(*state, len), *other = arena_bytes(*state, len);
	struct bson_value a, b;
	struct buf key = BUF_INIT(1 << 20), small = BUF_INIT(100);
	bool cut = false;

	memset(text, 'a', len);
	memset(other, 'a', len);
	other[len - 1] = 'A';
	a = BSON_OF_STRING(str_of(text, len));
	b = BSON_OF_STRING(str_of(other, len));
	assert_int_equal(bson_compare_values(&a, &b, texts), -1);
	assert_int_equal(bson_key_put(&key, &a, 1000, texts, &cut), STATUS_OK);
	assert_true(cut);
	assert_int_equal(key.len, 1000);
	assert_int_equal(texts->put_key(texts->of, bson_text(&a), &small), STATUS_OK);
	assert_int_equal(small.len, 100);
	buf_release(&key);
	buf_release(&small);
	mql_collation_free(c);
}

/* Whatever room there is, a key is the beginning of the whole one, without the NUL behind that. */
static void
keys_are_whole_or_end_where_their_room_does(void **state)
{
	/* The last one stands for a sentence, so its key is much longer than it is. */
	static const char *const cases[] = { "", "a", "Stra\303\237e 12",
					     "\xef\xb7\xba\xef\xb7\xba\xef\xb7\xba\xef\xb7\xba" };
	struct mql_collation *c = collation(*state, "{'locale':'en','strength':4}");
	const struct bson_texts *texts = mql_collation_texts(c);

	for (size_t i = 0; i < CASES(cases); i++) {
		struct str text = str_from_cstr(cases[i]);
		struct buf whole = BUF_INIT(1 << 20);

		assert_int_equal(texts->put_key(texts->of, text, &whole), STATUS_OK);
		if (whole.len)
			assert_null(memchr(whole.ptr, 0, whole.len));
		for (size_t most = 1; most <= whole.len + 2; most++) {
			struct buf key = BUF_INIT(most);

			assert_int_equal(texts->put_key(texts->of, text, &key), STATUS_OK);
			assert_int_equal(key.len, most < whole.len ? most : whole.len);
			if (key.len)
				assert_memory_equal(key.ptr, whole.ptr, key.len);
			buf_release(&key);
		}
		buf_release(&whole);
	}
	mql_collation_free(c);
}

/* A key has room at first for 16 bytes, and three for each byte of the text. */
static void
keys_that_just_fill_their_first_room_are_whole(void **state)
{
	struct mql_collation *c = collation(*state, "{'locale':'en','strength':4}");
	const struct bson_texts *texts = mql_collation_texts(c);
	unsigned more = 0, less = 0, just = 0;

	/* Three bytes that stand for a sentence need more than that, letters less. */
	for (size_t sentences = 0; sentences < 8; sentences++)
		for (size_t letters = 0; letters < 100; letters++) {
			struct buf text = BUF_INIT(1000), key = BUF_INIT(1 << 20), other;
			size_t first, needed;

			for (size_t i = 0; i < sentences; i++)
				buf_append_cstr(&text, "\xef\xb7\xba");
			for (size_t i = 0; i < letters; i++)
				buf_append_byte(&text, (char)('a' + i % 26));
			assert_int_equal(texts->put_key(texts->of, buf_str(&text), &key),
					 STATUS_OK);
			first = 3 * text.len + 16;
			needed = key.len + 1; /* with a NUL at its end */
			more += needed > first;
			less += needed < first;
			just += needed == first;
			/* What has no more room than the key needs is never enlarged. */
			other = BUF_INIT(needed);
			assert_int_equal(texts->put_key(texts->of, buf_str(&text), &other),
					 STATUS_OK);
			assert_true(str_eq(buf_str(&key), buf_str(&other)));
			buf_release(&text);
			buf_release(&key);
			buf_release(&other);
		}
	assert_true(more && less && just);
	mql_collation_free(c);
}

static void
filters_find_by_a_collation(void **state)
{
	struct mql_collation *c = collation(*state, "{'locale':'en','strength':2}");
	struct mql q = case_mql(*state);
	struct mql_match *m;
	bool matches = false;

	q.texts = mql_collation_texts(c);
	assert_int_equal(
		mql_match_compile(&q, case_bson(*state, "{'a':'X','b':{'$in':['y','Z']}}"), &m),
		STATUS_OK);
	assert_int_equal(
		mql_match_run(m, &q, case_bson(*state, "{'a':'x','b':'z'}"), &matches, NULL),
		STATUS_OK);
	assert_true(matches);
	mql_collation_free(c);
}

/* More than any collation's name has, and less than a locale's may have. */
#define TEN_LETTERS "abcdefghij"
#define MANY_LETTERS                                                                               \
	TEN_LETTERS TEN_LETTERS TEN_LETTERS TEN_LETTERS TEN_LETTERS TEN_LETTERS TEN_LETTERS

static void
mistakes_have_mongodbs_codes(void **state)
{
	static const struct {
		const char *document;
		int code;
		const char *text;
	} cases[] = {
		{ "{}", 40414, "BSON field 'collation.locale' is missing but a required field" },
		{ "{'locale':1}", 14,
		  "BSON field 'collation.locale' is the wrong type 'int', expected type 'string'" },
		{ "{'locale':'xx_nowhere'}", 2, "Field 'locale' is invalid in: { locale: \"xx_" },
		{ "{'locale':'en-US'}", 2, "Field 'locale' is invalid in" },
		{ "{'locale':''}", 2, "Field 'locale' is invalid in" },
		{ "{'locale':'en@colReorder=digit'}", 2, "Field 'locale' is invalid in" },
		{ "{'locale':'@collation=search'}", 2, "Field 'locale' is invalid in" },
		{ "{'locale':'en@collation=search;numeric=yes'}", 2,
		  "Field 'locale' is invalid in" },
		{ "{'locale':'en@collation=" MANY_LETTERS "'}", 2, "Field 'locale' is invalid in" },
		{ "{'locale':'en','strength':0}", 2,
		  "BSON field 'strength' value must be >= 1, actual value '0'" },
		{ "{'locale':'en','strength':6}", 2,
		  "BSON field 'strength' value must be <= 5, actual value '6'" },
		{ "{'locale':'en','strength':{'$numberDouble':'NaN'}}", 2, "BSON field" },
		{ "{'locale':'en','strength':{'$numberDecimal':'5.5'}}", 2, "BSON field" },
		{ "{'locale':'en','strength':'3'}", 14, "BSON field 'collation.strength' is the" },
		{ "{'locale':'en','caseLevel':1}", 14,
		  "BSON field 'collation.caseLevel' is the wrong type 'int', expected type "
		  "'bool'" },
		{ "{'locale':'en','backwards':null}", 14, "BSON field 'collation.backwards'" },
		{ "{'locale':'en','backwards':true,'strength':1}", 2,
		  "'backwards' is invalid with 'strength' of 1" },
		{ "{'locale':'en','caseFirst':'upper','strength':2}", 2,
		  "'caseFirst' is invalid unless 'caseLevel' is on" },
		{ "{'locale':'en','caseFirst':'lower','strength':1}", 2,
		  "'caseFirst' is invalid unless 'caseLevel' is on" },
		{ "{'locale':'en','caseFirst':'up'}", 2,
		  "Enumeration value 'up' for field 'collation.caseFirst' is not a valid value." },
		{ "{'locale':'en','alternate':1}", 14, "BSON field 'collation.alternate' is the" },
		{ "{'locale':'en','maxVariable':'x'}", 2, "Enumeration value 'x'" },
		{ "{'locale':'en','version':'1'}", 161, "Requested collation version" },
		{ "{'locale':'en','Strength':1}", 40415,
		  "BSON field 'collation.Strength' is an unknown field." },
	};

	for (size_t i = 0; i < CASES(cases); i++) {
		struct mql q = case_mql(*state);
		struct mql_collation *c;

		if (mql_collation_new(&q, case_bson(*state, cases[i].document), &c) !=
		    STATUS_INVALID)
			fail_msg("%s is not refused", cases[i].document);
		if (q.code != cases[i].code)
			fail_msg("%s: %d: %s", cases[i].document, q.code, case_err.text);
		if (strncmp(case_err.text, cases[i].text, strlen(cases[i].text)))
			fail_msg("%s: %s", cases[i].document, case_err.text);
	}
}

static void
a_locale_has_no_longer_name_than_there_is_room_for(void **state)
{
	static const size_t lengths[] = { MQL_COLLATION_LOCALE_BYTES,
					  MQL_COLLATION_LOCALE_BYTES + 1, 64 * 1024 };

	for (size_t i = 0; i < CASES(lengths); i++) {
		struct arena_mark mark = arena_mark(*state);
		char *name = arena_bytes(*state, lengths[i] + 1);
		struct mql q = case_mql(*state);
		struct mql_collation *c;

		memset(name, 'x', lengths[i]);
		name[lengths[i]] = '\0';
		assert_int_equal(
			mql_collation_new(
				&q,
				case_bson(*state,
					  arena_printf(*state, "{'locale':'%s'}", name).ptr),
				&c),
			STATUS_INVALID);
		assert_int_equal(q.code, MQL_BAD_VALUE);
		arena_reset(*state, mark);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(documents_are_read_back_with_all_members,
						case_setup, case_teardown),
		cmocka_unit_test_setup_teardown(strings_are_ordered_by_the_rules, case_setup,
						case_teardown),
		cmocka_unit_test_setup_teardown(long_texts_have_keys_that_are_cut, case_setup,
						case_teardown),
		cmocka_unit_test_setup_teardown(keys_that_just_fill_their_first_room_are_whole,
						case_setup, case_teardown),
		cmocka_unit_test_setup_teardown(keys_are_whole_or_end_where_their_room_does,
						case_setup, case_teardown),
		cmocka_unit_test_setup_teardown(filters_find_by_a_collation, case_setup,
						case_teardown),
		cmocka_unit_test_setup_teardown(a_locale_has_no_longer_name_than_there_is_room_for,
						case_setup, case_teardown),
		cmocka_unit_test_setup_teardown(mistakes_have_mongodbs_codes, case_setup,
						case_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
