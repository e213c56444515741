/*
 * Entries of indexes: their keys are in the order of the values, whatever form the document has;
 * what is cut stays in order; what was put is read again; ranges hold what they should.
 */
#include "common.h"

#include "doc/packed.h"
#include "index/engine/entry.h"
#include "index/json/form.h"
#include "index/leaf.h"

enum {
	VALUES = 160,
	DEPTH = 3,
};

static const struct catalog_db db = { .prefix = { "\x15\x07", 2 }, .number = 7 };
static struct str path_a[] = { { "a", 1 } }, path_b[] = { { "b", 1 } };

static struct index_def
def_of(const struct index_column *columns, size_t count, uint32_t flags)
{
	return (struct index_def){
		.form = &index_json_form,
		.number = 1,
		.state = INDEX_READY,
		.flags = flags,
		.order = DOC_KEY_COUCH,
		.columns = columns,
		.column_count = count,
	};
}

/* ---- Random values ---- */

static void
random_text(struct rand_seq *rand, struct buf *out)
{
	static const char *const parts[] = {
		"a", "B", "b",  "\xc3\xa4", "\\n",          " ",       "-", "1",
		"A", "z", "ss", "\xc3\x9f", "\xe2\x82\xac", "\\u0000", "_"
	};
	size_t count = rand_seq_below(rand, 5);

	buf_append_byte(out, '"');
	for (size_t i = 0; i < count; i++)
		buf_append_cstr(out, parts[rand_seq_below(rand, COUNT(parts))]);
	buf_append_byte(out, '"');
}

static void
random_value(struct rand_seq *rand, int depth, struct buf *out)
{
	static const char *const scalars[] = {
		"null",
		"true",
		"false",
		"0",
		"-1",
		"1",
		"1.0",
		"1.5",
		"-0.25",
		"12",
		"1e3",
		"1000",
		"2e-300",
		"{}",
		"[]",
		"9007199254740993",
		"9007199254740992.0",
		"123456789012345678901234567890",
		"-1e400",
	};
	size_t count = rand_seq_below(rand, 3);

	switch (rand_seq_below(rand, depth ? 5 : 3)) {
	case 0:
	case 1:
		buf_append_cstr(out, scalars[rand_seq_below(rand, COUNT(scalars))]);
		return;
	case 2:
		random_text(rand, out);
		return;
	case 3:
		buf_append_byte(out, '[');
		for (size_t i = 0; i < count; i++) {
			buf_append_cstr(out, i ? "," : "");
			random_value(rand, depth - 1, out);
		}
		buf_append_byte(out, ']');
		return;
	default:
		buf_append_byte(out, '{');
		for (size_t i = 0; i < count; i++) {
			buf_append_cstr(out, i ? "," : "");
			buf_append_cstr(out, i ? "\"y\":" : "\"X\":");
			random_value(rand, depth - 1, out);
		}
		buf_append_byte(out, '}');
	}
}

/* ---- Entries ---- */

/* The body in both forms. */
struct body {
	struct index_source packed;
	struct index_source leaves;
};

static struct body
body_of(struct str json, const char *id)
{
	struct doc_limits limits = { .doc_bytes = SIZE_MAX, .path_bytes = KV_LIMIT_KEY_BYTES };
	struct body body = { .packed = { .id = str_from_cstr(id) },
			     .leaves = { .id = str_from_cstr(id) } };
	struct err err = { 0 };
	struct doc doc;

	if (doc_explode_text(json, arena, &limits, 0, &doc, &err) != STATUS_OK)
		fail_msg("%.*s: %s", STR_ARG(json), err.text);
	body.leaves.leaves = doc.leaves;
	body.leaves.count = doc.count;
	assert_int_equal(doc_pack(doc.leaves, doc.count, SIZE_MAX / 2, arena, &body.packed.body),
			 STATUS_OK);
	return body;
}

/* The document's entries, which are the same out of both forms. */
static struct index_pairs
entries_of(const struct index_def *def, struct str json, const char *id)
{
	struct body body = body_of(json, id);
	struct index_pairs pairs, other;

	assert_int_equal(index_entries_make(&db, def, &body.packed, &work, &pairs), STATUS_OK);
	assert_int_equal(index_entries_make(&db, def, &body.leaves, &work, &other), STATUS_OK);
	assert_int_equal(pairs.count, other.count);
	for (size_t i = 0; i < pairs.count; i++) {
		assert_true(str_eq(pairs.pairs[i].key, other.pairs[i].key));
		assert_true(str_eq(pairs.pairs[i].value, other.pairs[i].value));
		assert_true(pairs.pairs[i].key.len < KV_LIMIT_KEY_BYTES);
	}
	return pairs;
}

static struct kv_pair
entry_of(const struct index_def *def, struct str json, const char *id)
{
	struct index_pairs pairs = entries_of(def, json, id);

	assert_int_equal(pairs.count, 1);
	return pairs.pairs[0];
}

static struct index_entry
read_entry(const struct index_def *def, struct kv_pair pair)
{
	struct buf prefix = BUF_INIT(64);
	struct index_entry entry;

	index_key_entries(&prefix, &db, def->number);
	assert_int_equal(
		index_entry_parse(def, str_skip(pair.key, prefix.len), pair.value, arena, &entry),
		STATUS_OK);
	buf_release(&prefix);
	return entry;
}

static int
sign(int n)
{
	return (n > 0) - (n < 0);
}

static void
keys_are_in_the_order_of_collation(void **state)
{
	const struct index_column up = { path_a, 1, false }, down = { path_a, 1, true };
	const struct index_def ascending = def_of(&up, 1, INDEX_COVERING);
	const struct index_def descending = def_of(&down, 1, 0);
	struct leaf_value values[VALUES];
	struct kv_pair asc[VALUES], desc[VALUES];
	struct buf text = BUF_INIT(1 << 16);
	struct rand_seq rand = { 11 };

	(void)state;
	for (size_t i = 0; i < VALUES; i++) {
		buf_clear(&text);
		random_value(&rand, DEPTH, &text);
		assert_int_equal(
			leaf_parse(arena_dup(arena, buf_str(&text)), arena, &values[i], NULL),
			STATUS_OK);
		asc[i] = entry_of(&ascending,
				  arena_printf(arena, "{\"a\":%.*s}", (int)text.len, text.ptr),
				  "d");
		desc[i] = entry_of(&descending,
				   arena_printf(arena, "{\"a\":%.*s}", (int)text.len, text.ptr),
				   "d");
		assert_false(read_entry(&ascending, asc[i]).cut);
	}
	for (size_t i = 0; i < VALUES; i++) {
		for (size_t j = 0; j < VALUES; j++) {
			int want;

			assert_int_equal(collate_compare(&values[i], &values[j], &work, &want),
					 STATUS_OK);
			assert_int_equal(sign(str_cmp(asc[i].key, asc[j].key)), sign(want));
			assert_int_equal(sign(str_cmp(desc[i].key, desc[j].key)), -sign(want));
		}
	}
	buf_release(&text);
}

static void
columns_sort_one_after_another_and_then_by_id(void **state)
{
	static const char *const order[] = {
		"{\"a\":null,\"b\":2}",
		"{\"a\":1,\"b\":[]}",
		"{\"a\":1,\"b\":3}",
		"{\"a\":1,\"b\":2}",
		"{\"a\":1}",
		"{\"a\":\"x\",\"b\":\"y\"}",
		"{\"a\":\"x\"}",
		"{\"a\":\"xy\",\"b\":{}}",
	};
	const struct index_column columns[] = { { path_a, 1, false }, { path_b, 1, true } };
	const struct index_def def = def_of(columns, 2, 0);

	(void)state;
	for (size_t i = 1; i < COUNT(order); i++) {
		struct kv_pair less = entry_of(&def, str_from_cstr(order[i - 1]), "z");
		struct kv_pair more = entry_of(&def, str_from_cstr(order[i]), "a");

		assert_true(str_cmp(less.key, more.key) < 0);
		more = entry_of(&def, str_from_cstr(order[i - 1]), "z\xc3\xa4");
		assert_true(str_cmp(less.key, more.key) < 0);
	}
}

static void
an_entry_gives_back_id_and_texts(void **state)
{
	const struct index_column columns[] = { { path_a, 1, false }, { path_b, 1, true } };
	const struct index_def def = def_of(columns, 2, INDEX_COVERING);
	struct index_entry entry;

	(void)state;
	entry = read_entry(&def, entry_of(&def, STR("{\"a\":1.10,\"c\":2}"), "x\xc3\xa4"));
	assert_true(str_eq(entry.id, STR("x\xc3\xa4")));
	assert_true(entry.has_texts);
	assert_true(str_eq(entry.texts[0], STR("1.10")));
	assert_null(entry.texts[1].ptr);
}

static void
a_sparse_index_leaves_out_documents_that_lack_a_column(void **state)
{
	const struct index_column columns[] = { { path_a, 1, false }, { path_b, 1, true } };
	const struct index_def def = def_of(columns, 2, INDEX_SPARSE);

	(void)state;
	assert_int_equal(entries_of(&def, STR("{\"a\":1}"), "x").count, 0);
	assert_int_equal(entries_of(&def, STR("{\"a\":1,\"b\":null}"), "x").count, 1);
}

static void
a_number_that_is_none_is_corrupt(void **state)
{
	const struct index_column columns[] = { { path_a, 1, false } };
	const struct index_def def = def_of(columns, 1, 0);
	const struct index_source good = { .id = STR("d"), .body = STR("{\"a\":1}") };
	const struct index_source damaged = { .id = STR("d"), .body = STR("{\"a\":1x}") };
	struct index_pairs pairs;

	(void)state;
	assert_int_equal(index_entries_make(&db, &def, &good, &work, &pairs), STATUS_OK);
	assert_int_equal(index_entries_make(&db, &def, &damaged, &work, &pairs), STATUS_CORRUPT);
}

static void
an_array_that_is_noted_tells_which_entry_counts(void **state)
{
	const struct index_column columns[] = { { path_a, 1, false } };
	struct index_def def = def_of(columns, 1, 0);
	const struct index_interval all = { 0 };
	struct body body = body_of(STR("{\"a\":[1,2]}"), "d");
	struct index_range range;
	bool first;

	(void)state;
	assert_int_equal(index_range_make(&db, &def, &all, &work, &range), STATUS_OK);
	for (def.many = 0; def.many < 2; def.many++) {
		assert_int_equal(index_entry_is_first(&db, &def, &body.leaves, &range, 1, false,
						      STR("another"), &work, &first),
				 STATUS_OK);
		assert_int_equal(first, !def.many);
	}
}

static void
each_different_element_has_an_entry(void **state)
{
	const struct index_column columns[] = { { path_a, 1, false }, { path_b, 1, false } };
	const struct index_def def = def_of(columns, 2, INDEX_MULTIKEY | INDEX_COVERING);
	const struct index_interval all = { 0 };
	struct body body = body_of(STR("{\"a\":[3,1,\"x\",1.0,[2]],\"b\":[1,2]}"), "d");
	struct buf prefix = BUF_INIT(64);
	struct index_pairs pairs;
	struct index_range range;
	bool first;

	(void)state;
	pairs = entries_of(&def, STR("{\"a\":[3,1,\"x\",1.0,[2]],\"b\":[1,2]}"), "d");
	assert_int_equal(pairs.count, 4);
	for (size_t i = 1; i < pairs.count; i++)
		assert_true(str_cmp(pairs.pairs[i - 1].key, pairs.pairs[i].key) < 0);
	assert_true(str_eq(read_entry(&def, pairs.pairs[2]).texts[0], STR("\"x\"")));
	assert_int_equal(entries_of(&def, STR("{\"a\":[]}"), "d").count, 1);
	assert_int_equal(entries_of(&def, STR("{\"b\":[1,2,2]}"), "d").count, 2);
	index_key_entries(&prefix, &db, 1);
	assert_int_equal(index_range_make(&db, &def, &all, &work, &range), STATUS_OK);
	for (size_t i = 0; i < pairs.count; i++) {
		struct str key = str_skip(pairs.pairs[i].key, prefix.len);

		assert_int_equal(index_entry_is_first(&db, &def, &body.leaves, &range, 1, false,
						      key, &work, &first),
				 STATUS_OK);
		assert_int_equal(first, i == 0);
		assert_int_equal(index_entry_is_first(&db, &def, &body.leaves, &range, 1, true, key,
						      &work, &first),
				 STATUS_OK);
		assert_int_equal(first, i == 3);
	}
	buf_release(&prefix);
}

static void
what_is_too_long_is_cut_and_stays_in_order(void **state)
{
	const struct index_column columns[] = { { path_a, 1, false }, { path_b, 1, true } };
	const struct index_def def = def_of(columns, 2, INDEX_COVERING);
	char *text = arena_bytes(arena, 9001);
	struct kv_pair less, more, same;
	struct index_entry entry;
	char id[7001];

	(void)state;
	memset(text, 'k', 9000);
	text[9000] = 0;
	memset(id, 'i', sizeof(id) - 1);
	id[7000] = 0;
	less = entry_of(&def, arena_printf(arena, "{\"a\":\"%.*sa\",\"b\":1}", 800, text), id);
	more = entry_of(&def, arena_printf(arena, "{\"a\":\"%sb\",\"b\":[\"%s\"]}", text, text),
			id);
	same = entry_of(&def, arena_printf(arena, "{\"a\":\"%sc\",\"b\":[\"%s\"]}", text, text),
			id);
	assert_true(str_cmp(less.key, more.key) < 0);
	assert_true(str_eq(more.key, same.key));
	entry = read_entry(&def, more);
	assert_true(entry.cut);
	assert_false(entry.has_texts);
	assert_int_equal(entry.id.len, 7000);
	assert_false(read_entry(&def, less).cut);
	memset(text, '7', 9000);
	more = entry_of(&def, arena_printf(arena, "{\"a\":%s%s}", text, text), id);
	assert_true(read_entry(&def, more).cut);
}

static bool
in_range(const struct index_def *def, const struct index_interval *interval, const char *json)
{
	struct kv_pair pair = entry_of(def, str_from_cstr(json), "d");
	struct index_range range;

	assert_int_equal(index_range_make(&db, def, interval, &work, &range), STATUS_OK);
	return str_cmp(pair.key, range.begin) >= 0 && str_cmp(pair.key, range.end) < 0;
}

static void
ranges_hold_what_lies_between_their_bounds(void **state)
{
	(void)state;
	for (int descending = 0; descending < 2; descending++) {
		const struct index_column columns[] = { { path_a, 1, true },
							{ path_b, 1, descending } };
		const struct index_def def = def_of(columns, 2, 0);
		struct leaf_value x = value_of("\"x\""), two = value_of("2"), five = value_of("5");
		const void *const equal = &x;
		struct index_interval i = { .equal = &equal, .equal_count = 1 };

		assert_true(in_range(&def, &i, "{\"a\":\"x\"}"));
		assert_true(in_range(&def, &i, "{\"a\":\"x\",\"b\":{\"z\":1}}"));
		assert_false(in_range(&def, &i, "{\"a\":\"xx\"}"));
		i.low = &two;
		assert_true(in_range(&def, &i, "{\"a\":\"x\",\"b\":2}"));
		assert_false(in_range(&def, &i, "{\"a\":\"x\",\"b\":1}"));
		assert_true(in_range(&def, &i, "{\"a\":\"x\",\"b\":\"t\"}"));
		i.high = &five;
		assert_false(in_range(&def, &i, "{\"a\":\"x\",\"b\":\"t\"}"));
		assert_true(in_range(&def, &i, "{\"a\":\"x\",\"b\":5}"));
		i.low_exclusive = i.high_exclusive = true;
		assert_false(in_range(&def, &i, "{\"a\":\"x\",\"b\":5.0}"));
		assert_false(in_range(&def, &i, "{\"a\":\"x\",\"b\":2}"));
		assert_true(in_range(&def, &i, "{\"a\":\"x\",\"b\":4.99}"));
		assert_false(in_range(&def, &i, "{\"a\":\"y\",\"b\":4}"));
	}
}

static void
a_partitioned_index_has_one_range_for_each_partition(void **state)
{
	const struct index_column column = { path_a, 1, false };
	const struct index_def def = def_of(&column, 1, INDEX_PARTITIONED);
	struct index_interval interval = { .partition = STR("p") };
	struct index_range range;
	struct kv_pair pair;

	(void)state;
	assert_int_equal(index_range_make(&db, &def, &interval, &work, &range), STATUS_OK);
	pair = entry_of(&def, STR("{\"a\":1}"), "p:x");
	assert_true(str_cmp(pair.key, range.begin) >= 0 && str_cmp(pair.key, range.end) < 0);
	pair = entry_of(&def, STR("{\"a\":1}"), "pp:x");
	assert_false(str_cmp(pair.key, range.begin) >= 0 && str_cmp(pair.key, range.end) < 0);
	assert_int_equal(entries_of(&def, STR("{\"a\":1}"), "p").count, 0);
}

/* The entry as `frond inspect` draws its key; "" where it cannot. `more` is behind the key. */
static const char *
drawn_key(const struct index_def *def, const char *json, const char *id, const char *more)
{
	struct kv_pair pair = entry_of(def, str_from_cstr(json), id);
	struct buf prefix = BUF_INIT(64), text = BUF_INIT(1 << 16), key = BUF_INIT(1 << 16);
	const char *ret = "";

	index_key_entries(&prefix, &db, 0);
	/* The number of the index is a byte of its own where it is 0, and two where it is 1. */
	buf_append_str(&key, str_skip(pair.key, prefix.len - 1));
	buf_append_cstr(&key, more);
	if (index_json_draw_entry_key(buf_str(&key), pair.value, &text))
		ret = arena_printf(arena, "%.*s", STR_ARG(buf_str(&text))).ptr;
	buf_release(&key);
	buf_release(&text);
	buf_release(&prefix);
	return ret;
}

static void
an_entry_is_drawn_with_the_texts_of_its_columns(void **state)
{
	const struct index_column columns[] = { { path_a, 1, false }, { path_b, 1, false } };
	const struct index_def covering = def_of(columns, 2, INDEX_COVERING);
	const struct index_def bare = def_of(columns, 2, 0);
	const struct index_def partitioned = def_of(columns, 2, INDEX_COVERING | INDEX_PARTITIONED);

	(void)state;
	assert_string_equal(drawn_key(&covering, "{\"a\":1.50,\"b\":\"x\"}", "d", ""),
			    "(1, 1.50, \"x\", \"d\")");
	assert_string_equal(drawn_key(&partitioned, "{\"a\":1,\"b\":[]}", "p:d", ""),
			    "(1, \"p\", 1, [], \"p:d\")");
	assert_string_equal(drawn_key(&covering, "{\"b\":\"x\"}", "d", ""),
			    "(1, missing, \"x\", \"d\")");
	/* The key alone has no texts; and what is no id at its end is drawn as any other key is. */
	assert_string_equal(drawn_key(&bare, "{\"a\":1,\"b\":\"x\"}", "d", ""), "");
	assert_string_equal(drawn_key(&covering, "{\"a\":1,\"b\":\"x\"}", "d", "\x15\x05"), "");
}

/* Wherever a key or a value ends: STATUS_NOT_FOUND would say that there are no more entries. */
static void
an_entry_that_is_cut_is_corrupt(void **state)
{
	const struct index_column columns[] = { { path_a, 1, false }, { path_b, 1, false } };
	static const uint32_t flags[] = { 0, INDEX_COVERING, INDEX_COVERING | INDEX_PARTITIONED };

	(void)state;
	for (size_t i = 0; i < COUNT(flags); i++) {
		const struct index_def def = def_of(columns, 2, flags[i]);
		const struct kv_pair pair = entry_of(&def, STR("{\"a\":1.50,\"b\":\"x\"}"), "p:d");
		struct buf prefix = BUF_INIT(64);
		struct index_entry entry;
		struct str tail;

		index_key_entries(&prefix, &db, def.number);
		tail = str_skip(pair.key, prefix.len);
		buf_release(&prefix);
		assert_int_equal(index_entry_parse(&def, tail, pair.value, arena, &entry),
				 STATUS_OK);
		for (size_t len = 0; len < tail.len; len++)
			assert_int_equal(index_entry_parse(&def, str_of(tail.ptr, len), pair.value,
							   arena, &entry),
					 STATUS_CORRUPT);
		for (size_t len = 0; len < pair.value.len; len++)
			assert_int_equal(index_entry_parse(&def, tail, str_of(pair.value.ptr, len),
							   arena, &entry),
					 STATUS_CORRUPT);
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(keys_are_in_the_order_of_collation),
		TEST(columns_sort_one_after_another_and_then_by_id),
		TEST(an_entry_gives_back_id_and_texts),
		TEST(a_sparse_index_leaves_out_documents_that_lack_a_column),
		TEST(an_entry_that_is_cut_is_corrupt),
		TEST(a_number_that_is_none_is_corrupt),
		TEST(an_array_that_is_noted_tells_which_entry_counts),
		TEST(each_different_element_has_an_entry),
		TEST(what_is_too_long_is_cut_and_stays_in_order),
		TEST(ranges_hold_what_lies_between_their_bounds),
		TEST(a_partitioned_index_has_one_range_for_each_partition),
		TEST(an_entry_is_drawn_with_the_texts_of_its_columns),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
