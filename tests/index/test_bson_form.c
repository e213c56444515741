/*
 * The form of BSON: entries that are cut, values up to their limit, and what of a stored value is
 * none; which changes leave the entries as they are; arrays in any column, and collations.
 */
#include "common.h"

#include "bson/bson.h"
#include "index/bson/entry.h"
#include "index/bson/form.h"
#include "index/engine/component.h"

enum {
	VALUE_BYTES = 8192,
};

static const struct catalog_db db = { .prefix = { "\x15\x07", 2 }, .number = 7 };
static const struct str path_a[] = { STR("a") }, path_b[] = { STR("b") };
static const struct index_column columns[] = { { path_a, 1, false }, { path_b, 1, false } };

static struct index_def
def_of(size_t count, uint32_t flags)
{
	return (struct index_def){ .form = &index_bson_form,
				   .number = 1,
				   .state = INDEX_READY,
				   .flags = flags | INDEX_BSON,
				   .order = DOC_KEY_BSON,
				   .columns = columns,
				   .column_count = count };
}

/* {"a": a text of so many bytes, "b": n} */
static struct index_source
source_of(size_t bytes, int32_t n)
{
	AUTO(buf_release) struct buf out = BUF_INIT(1 << 20);
	char *text = arena_bytes(arena, bytes + 1);
	struct bson_builder b;

	assert_non_null(text);
	memset(text, 'x', bytes);
	bson_builder_init(&b, &out);
	bson_begin(&b);
	bson_put_string(&b, STR("a"), str_of(text, bytes));
	bson_put_int32(&b, STR("b"), n);
	bson_end(&b);
	assert_int_equal(buf_status(&out), STATUS_OK);
	return (struct index_source){ .id = STR("id"), .body = buf_dup(&out, arena) };
}

static struct kv_pair
pair_of(const struct index_def *def, const struct index_source *source, uint64_t *ret_many)
{
	struct index_pairs pairs;

	assert_int_equal(index_entries_make(&db, def, source, &work, &pairs), STATUS_OK);
	assert_int_equal(pairs.count, 1);
	*ret_many = pairs.many;
	return pairs.pairs[0];
}

static struct index_entry
entry_of(const struct index_def *def, struct kv_pair pair)
{
	AUTO(buf_release) struct buf prefix = BUF_INIT(64);
	struct index_entry entry = { 0 };

	index_key_entries(&prefix, &db, def->number);
	assert_int_equal(
		index_entry_parse(def, str_skip(pair.key, prefix.len), pair.value, arena, &entry),
		STATUS_OK);
	return entry;
}

/* A value whose key is longer than the share of its column is cut, and its column is noted. */
static void
a_long_value_is_cut_and_noted(void **state)
{
	const struct index_def def = def_of(2, 0);
	const size_t share = index_component_share(&def);
	size_t most = 0;

	(void)state;
	for (size_t bytes = share - 16; bytes <= share + 1; bytes++) {
		const struct index_source source = source_of(bytes, 1);
		uint64_t many;
		struct kv_pair pair = pair_of(&def, &source, &many);
		bool cut = entry_of(&def, pair).cut;

		assert_int_equal(many, cut ? UINT64_C(1) << INDEX_CUTS_SHIFT : 0);
		if (!cut)
			assert_int_equal(bytes, share - 16 + most++);
	}
	assert_in_range(most, 1, 17);
}

static void
values_are_there_up_to_their_limit(void **state)
{
	const struct index_def def = def_of(2, INDEX_COVERING);
	size_t most = 0;

	(void)state;
	for (size_t bytes = INDEX_PAYLOAD_BYTES - 100; bytes <= INDEX_PAYLOAD_BYTES; bytes++) {
		const struct index_source source = source_of(bytes, 1);
		uint64_t many;
		struct kv_pair pair = pair_of(&def, &source, &many);
		struct str values;
		bool there = index_bson_values(pair.value, &values);

		assert_int_equal(there, values.len > 0);
		assert_int_equal(entry_of(&def, pair).values.len, values.len);
		if (!there)
			continue;
		assert_true(pair.value.len <= INDEX_PAYLOAD_BYTES);
		/* Each byte of the text is one of the value. */
		most = pair.value.len;
	}
	assert_int_equal(most, INDEX_PAYLOAD_BYTES);
}

static void
what_has_no_values_is_not_taken_for_them(void **state)
{
	const struct index_def def = def_of(2, INDEX_COVERING);
	const struct index_source source = source_of(10, 1);
	AUTO(buf_release) struct buf value = BUF_INIT(VALUE_BYTES);
	uint64_t many;
	struct kv_pair pair = pair_of(&def, &source, &many);
	struct str values, good;

	(void)state;
	assert_true(index_bson_values(pair.value, &good));
	for (size_t len = 0; len < pair.value.len; len++)
		assert_false(index_bson_values(str_of(pair.value.ptr, len), &values));
	buf_append_str(&value, pair.value);
	buf_append_byte(&value, 0);
	assert_false(index_bson_values(buf_str(&value), &values));
	for (uint64_t format = 0; format <= 2; format++)
		for (unsigned flags = 0; flags <= INDEX_ENTRY_BSON; flags += INDEX_ENTRY_BSON) {
			bool is_one = format == INDEX_ENTRY_FORMAT && flags;

			buf_clear(&value);
			tuple_put_u64(&value, format);
			tuple_put_u64(&value, flags);
			buf_append_str(&value, good);
			assert_int_equal(index_bson_values(buf_str(&value), &values), is_one);
			assert_int_equal(values.len, is_one ? good.len : 0);
		}
}

/* What an entry has behind its flags is a document or nothing, as the flags say. */
static void
an_entry_that_is_cut_or_longer_is_corrupt(void **state)
{
	static const uint32_t flags[] = { 0, INDEX_COVERING };
	const struct index_source source = source_of(10, 1);

	(void)state;
	for (size_t i = 0; i < COUNT(flags); i++) {
		const struct index_def def = def_of(2, flags[i]);
		AUTO(buf_release) struct buf prefix = BUF_INIT(64);
		AUTO(buf_release) struct buf longer = BUF_INIT(VALUE_BYTES);
		struct index_entry entry;
		uint64_t many;
		struct kv_pair pair = pair_of(&def, &source, &many);
		struct str tail;

		index_key_entries(&prefix, &db, def.number);
		tail = str_skip(pair.key, prefix.len);
		assert_int_equal(index_entry_parse(&def, tail, pair.value, arena, &entry),
				 STATUS_OK);
		for (size_t len = 0; len < pair.value.len; len++)
			if (index_entry_parse(&def, tail, str_of(pair.value.ptr, len), arena,
					      &entry) != STATUS_CORRUPT)
				fail_msg("%zu bytes of %zu are an entry", len, pair.value.len);
		buf_append_str(&longer, pair.value);
		for (size_t more = 1; more < 20; more++) {
			buf_append_byte(&longer, (uint8_t)more);
			assert_int_equal(
				index_entry_parse(&def, tail, buf_str(&longer), arena, &entry),
				STATUS_CORRUPT);
		}
	}
}

static void
documents_with_the_same_members_are_known(void **state)
{
	const struct index_def one = def_of(1, 0), both = def_of(2, 0);
	const struct index_source first = source_of(10, 1), longer = source_of(11, 1);
	const struct index_source other = source_of(10, 2);
	const struct index_source empty = { .id = STR("id"), .body = BSON_EMPTY };
	bool same;

	(void)state;
	assert_int_equal(index_bson_form.has_same_columns(&one, &first, &other, &work, &same),
			 STATUS_OK);
	assert_true(same);
	assert_int_equal(index_bson_form.has_same_columns(&both, &first, &other, &work, &same),
			 STATUS_OK);
	assert_false(same);
	assert_int_equal(index_bson_form.has_same_columns(&one, &first, &longer, &work, &same),
			 STATUS_OK);
	assert_false(same);
	assert_int_equal(index_bson_form.has_same_columns(&one, &first, &empty, &work, &same),
			 STATUS_OK);
	assert_false(same);
	assert_int_equal(index_bson_form.has_same_columns(&one, &empty, &first, &work, &same),
			 STATUS_OK);
	assert_false(same);
	assert_int_equal(index_bson_form.has_same_columns(&both, &empty, &empty, &work, &same),
			 STATUS_OK);
	assert_true(same);
}

/* In arenas that grow, a document has its entry or none. */
static void
a_document_without_room_has_no_entry(void **state)
{
	const struct index_def def = def_of(2, INDEX_COVERING);
	const struct index_source source = source_of(100, 1);

	(void)state;
	for (size_t bytes = 0, enough = 0; enough < 3; bytes += ROOM_STEP) {
		struct index_work small = { .arena = arena_new(bytes) };
		struct index_pairs pairs;
		enum status status = index_entries_make(&db, &def, &source, &small, &pairs);

		assert_int_equal(status, arena_is_full(small.arena) ? STATUS_LIMIT : STATUS_OK);
		if (status == STATUS_OK)
			assert_int_equal(pairs.count, 1);
		enough += status == STATUS_OK;
		arena_free(small.arena);
	}
}

/* ---- Arrays ---- */

static struct index_column most_columns[INDEX_COLUMNS];

/* An index of so many columns as there can be, "c0" and so on. */
static struct index_def
def_of_most(uint32_t hashed)
{
	struct index_def def = def_of(INDEX_COLUMNS, 0);

	for (size_t i = 0; i < INDEX_COLUMNS; i++) {
		struct str *name = arena_alloc(arena, sizeof(*name));

		assert_non_null(name);
		*name = arena_printf(arena, "c%zu", i);
		most_columns[i] = (struct index_column){ name, 1, false };
	}
	def.columns = most_columns;
	def.hashed = hashed;
	return def;
}

/* A document with a number in each column, but for one that has an array of two. */
static struct index_source
source_with_array(size_t at)
{
	AUTO(buf_release) struct buf out = BUF_INIT(VALUE_BYTES);
	struct bson_builder b;

	bson_builder_init(&b, &out);
	bson_begin(&b);
	for (size_t i = 0; i < INDEX_COLUMNS; i++) {
		struct str name = arena_printf(arena, "c%zu", i);

		if (i != at) {
			bson_put_int32(&b, name, (int32_t)i);
			continue;
		}
		bson_begin_array(&b, name);
		bson_put_int32(&b, STR("0"), 1);
		bson_put_int32(&b, STR("1"), 2);
		bson_end(&b);
	}
	bson_end(&b);
	assert_int_equal(buf_status(&out), STATUS_OK);
	return (struct index_source){ .id = STR("id"), .body = buf_dup(&out, arena) };
}

/* Whichever column it is: no bit of one stands for another, or for a hash that there is not. */
static void
each_column_takes_an_array_unless_it_is_hashed(void **state)
{
	(void)state;
	for (uint32_t hashed = 0; hashed <= INDEX_COLUMNS; hashed++) {
		const struct index_def def = def_of_most(hashed);

		for (size_t at = 0; at < INDEX_COLUMNS; at++) {
			const struct index_source source = source_with_array(at);
			bool refused = hashed == at + 1;
			struct index_pairs pairs;

			if (index_entries_make(&db, &def, &source, &work, &pairs) !=
			    (refused ? STATUS_UNSUPPORTED : STATUS_OK))
				fail_msg("column %u hashed, an array in %zu", hashed, at);
			assert_int_equal(pairs.many, UINT64_C(1) << at);
			assert_int_equal(pairs.refusal.hashed, refused);
			if (refused)
				assert_int_equal(pairs.refusal.columns[0], at);
			else
				assert_int_equal(pairs.count, 2);
		}
	}
}

/* Two columns may share their names: what lies behind the end of a path is none of it. */
static void
a_path_has_no_more_names_than_it_says(void **state)
{
	static const struct str names[] = { STR("c0"), STR("0") };
	static const struct index_column shared[] = { { names, 1, false }, { names, 2, false } };
	const struct index_source source = source_with_array(0);
	struct index_def def = def_of(1, 0);
	struct index_pairs pairs;

	(void)state;
	/* Elements, of which there are two, and the first one. */
	for (size_t i = 0; i < COUNT(shared); i++) {
		def.columns = &shared[i];
		assert_int_equal(index_entries_make(&db, &def, &source, &work, &pairs), STATUS_OK);
		assert_int_equal(pairs.count, i ? 1 : 2);
	}
}

/* ---- Collations ---- */

static struct str
collation_of(const char *locale)
{
	AUTO(buf_release) struct buf out = BUF_INIT(VALUE_BYTES);
	struct bson_builder b;

	bson_builder_init(&b, &out);
	bson_begin(&b);
	bson_put_string(&b, STR("locale"), str_from_cstr(locale));
	bson_end(&b);
	assert_int_equal(buf_status(&out), STATUS_OK);
	return buf_dup(&out, arena);
}

/* What another version of ICU has ordered may be what this one has no locale for. */
static void
a_collation_is_left_alone_unless_it_is_current(void **state)
{
	static const struct {
		const char *locale;
		enum status status;
	} cases[] = {
		{ "de", STATUS_OK },
		{ "simple", STATUS_INVALID },
		{ "none", STATUS_INVALID },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++)
		for (unsigned is_current = 0; is_current < 2; is_current++) {
			struct index_def def = def_of(1, 0);
			struct err err = { 0 };
			const struct index_bson *opened;
			enum status status;

			def.collation = collation_of(cases[i].locale);
			status = index_bson_form.open(&def, is_current, arena, &err);
			if (status != (is_current ? cases[i].status : STATUS_OK))
				fail_msg("%s: %s", cases[i].locale, err.text);
			opened = def.opened;
			assert_int_equal(opened->collating != NULL,
					 is_current && status == STATUS_OK);
			index_bson_form.close(def.opened);
		}
}

/* In an arena of each size, a definition is opened as a whole or not at all. */
static void
a_definition_is_not_opened_without_room(void **state)
{
	enum {
		ROOM_BYTES = 16 << 10,
	};
	AUTO(buf_release) struct buf filter = BUF_INIT(VALUE_BYTES);
	enum status status = STATUS_LIMIT;
	struct bson_builder b;

	(void)state;
	bson_builder_init(&b, &filter);
	bson_begin(&b);
	bson_put_int32(&b, STR("a"), 1);
	bson_end(&b);
	assert_int_equal(buf_status(&filter), STATUS_OK);
	for (size_t bytes = 0; bytes < ROOM_BYTES; bytes += ROOM_STEP) {
		struct arena *small = arena_new(bytes);
		struct index_def def = def_of(1, 0);
		struct err err = { 0 };

		def.filter = buf_str(&filter);
		status = index_bson_form.open(&def, true, small, &err);
		assert_int_equal(status, arena_is_full(small) ? STATUS_LIMIT : STATUS_OK);
		if (status == STATUS_OK)
			assert_non_null(((const struct index_bson *)def.opened)->match);
		arena_free(small);
	}
	assert_int_equal(status, STATUS_OK);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_long_value_is_cut_and_noted),
		TEST(values_are_there_up_to_their_limit),
		TEST(what_has_no_values_is_not_taken_for_them),
		TEST(an_entry_that_is_cut_or_longer_is_corrupt),
		TEST(documents_with_the_same_members_are_known),
		TEST(a_document_without_room_has_no_entry),
		TEST(each_column_takes_an_array_unless_it_is_hashed),
		TEST(a_path_has_no_more_names_than_it_says),
		TEST(a_collation_is_left_alone_unless_it_is_current),
		TEST(a_definition_is_not_opened_without_room),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
