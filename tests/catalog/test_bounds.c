/* What the catalog takes up to its limits, to the byte and to the number. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/arena.h"
#include "catalog/catalog_int.h"
#include "catalog/chores.h"
#include "catalog/draw.h"
#include "catalog/keys.h"
#include "catalog/lease.h"
#include "catalog/name_range.h"
#include "catalog/records.h"
#include "catalog/store_format.h"
#include "catalog/stored_settings.h"
#include "catalog/tally_int.h"
#include "kv/keyspace.h"
#include "store.h"
#include "tiny.h"

enum {
	ARENA_BYTES = 16 << 20,
};

#define TINY ((enum catalog_space)TINY_SPACE)

struct fixture {
	char dir[64];
	struct kv_store *store;
	struct arena *arena;
	struct err err;
};

static int
setup(void **state)
{
	const struct kv_options options = { .create = true, .no_sync = true };
	struct fixture *f = calloc(1, sizeof(*f));
	char path[128], url[256];

	assert_non_null(f);
	tiny_register();
	f->arena = arena_new(ARENA_BYTES);
	assert_non_null(f->arena);
	test_make_dir("bounds", f->dir, sizeof(f->dir));
	(void)snprintf(path, sizeof(path), "%s/store", f->dir);
	test_store_url(path, url, sizeof(url));
	if (catalog_store_open(url, &options, &f->store, &f->err) != STATUS_OK)
		fail_msg("%s", f->err.text);
	*state = f;
	return 0;
}

static int
teardown(void **state)
{
	struct fixture *f = *state;

	kv_close(f->store);
	arena_free(f->arena);
	test_remove_tree(f->dir);
	free(f);
	return 0;
}

/* So many letters. */
static struct str
letters(struct fixture *f, size_t len)
{
	char *text = arena_bytes(f->arena, len);

	assert_non_null(text);
	memset(text, 'x', len);
	return str_of(text, len);
}

static struct kv_tx *
begin(struct fixture *f)
{
	struct kv_tx *tx;

	assert_int_equal(kv_begin(f->store, KV_TX_READ_WRITE, &tx), STATUS_OK);
	return tx;
}

/* ---- Texts ---- */

static void
settings_have_names_and_texts_up_to_their_limits(void **state)
{
	const struct {
		size_t section, name, text;
		enum status status;
	} cases[] = {
		{ 1, 1, 0, STATUS_OK },
		{ 0, 1, 0, STATUS_INVALID },
		{ 1, 0, 0, STATUS_INVALID },
		{ CATALOG_SETTING_NAME_BYTES, CATALOG_SETTING_NAME_BYTES,
		  CATALOG_SETTING_TEXT_BYTES, STATUS_OK },
		{ CATALOG_SETTING_NAME_BYTES + 1, 1, 1, STATUS_INVALID },
		{ 1, CATALOG_SETTING_NAME_BYTES + 1, 1, STATUS_INVALID },
		{ 1, 1, CATALOG_SETTING_TEXT_BYTES + 1, STATUS_INVALID },
	};
	struct fixture *f = *state;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct catalog_setting setting = { letters(f, cases[i].section),
							 letters(f, cases[i].name),
							 letters(f, cases[i].text) };
		struct kv_tx *tx = begin(f);

		if (catalog_setting_put(tx, &setting, &f->err) != cases[i].status)
			fail_msg("case %zu: %s", i, f->err.text);
		kv_tx_free(tx);
	}
}

/* A name that is too long is no database's, whatever the store has. */
static void
a_database_has_a_name_up_to_the_limit(void **state)
{
	struct fixture *f = *state;

	for (size_t len = CATALOG_NAME_BYTES; len <= CATALOG_NAME_BYTES + 1; len++) {
		AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;
		const struct catalog_db db = {
			.name = letters(f, len), .kind = tiny_kind(), .number = 7, .incarnation = 1
		};
		AUTO(buf_release) struct buf value = BUF_INIT(1024);
		struct kv_tx *tx = begin(f);
		struct catalog_db got;

		catalog_key_name(&key, KV_ROOT_DATABASES, TINY, db.name);
		catalog_description_put(&db, &value);
		assert_int_equal(buf_status(&value), STATUS_OK);
		assert_int_equal(kv_set(tx, buf_str(&key), buf_str(&value)), STATUS_OK);
		assert_int_equal(catalog_description_get(tx, TINY, db.name, &got, &f->err),
				 len > CATALOG_NAME_BYTES ? STATUS_NOT_FOUND : STATUS_OK);
		kv_tx_free(tx);
	}
}

/* Of the second kind is what has the text between quotation marks cut, and its length told. */
static void
a_text_is_drawn_whole_up_to_the_limit(void **state)
{
	struct fixture *f = *state;
	const struct {
		size_t letters, zeros; /* each of the zeros is two bytes where it is stored */
		bool is_cut;
	} cases[] = {
		{ CATALOG_DRAW_TEXT_BYTES, 0, false },
		{ CATALOG_DRAW_TEXT_BYTES - 1, 1, false },
		{ CATALOG_DRAW_TEXT_BYTES + 1, 0, true },
		{ CATALOG_DRAW_TEXT_BYTES, 1, true },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		AUTO(buf_release) struct buf text = BUF_INIT(10000);
		AUTO(buf_release) struct buf encoded = BUF_INIT(10000);
		AUTO(buf_release) struct buf drawn = BUF_INIT(10000);
		struct tuple_reader r;
		struct tuple_elem e;
		char told[32];

		buf_append_str(&text, letters(f, cases[i].letters));
		for (size_t n = 0; n < cases[i].zeros; n++)
			buf_append_byte(&text, '\0');
		tuple_put_str(&encoded, buf_str(&text));
		r = tuple_reader(buf_str(&encoded));
		assert_int_equal(tuple_next(&r, &e), STATUS_OK);
		catalog_draw_string(&e, &drawn);
		buf_append_byte(&drawn, '\0');
		assert_int_equal(buf_status(&drawn), STATUS_OK);
		(void)snprintf(told, sizeof(told), "...(%zu bytes)", text.len);
		assert_int_equal(strstr(drawn.ptr, told) != NULL, cases[i].is_cut);
		assert_int_equal(strstr(drawn.ptr, "...(") != NULL, cases[i].is_cut);
	}
}

/* ---- Name spaces ---- */

static void
name_spaces_have_numbers_up_to_the_limit(void **state)
{
	struct fixture *f = *state;
	const struct {
		uint64_t space;
		enum status expected;
	} cases[] = {
		{ 0, STATUS_CORRUPT },
		{ 1, STATUS_OK },
		{ CATALOG_SPACES_MAX, STATUS_OK },
		{ CATALOG_SPACES_MAX + 1, STATUS_CORRUPT },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		AUTO(buf_release) struct buf key = BUF_INIT(100);
		AUTO(buf_release) struct buf value = BUF_INIT(100);
		enum catalog_space space;
		struct str name;

		tuple_put_u64(&key, cases[i].space);
		tuple_put_str(&key, STR("name"));
		assert_int_equal(
			catalog_key_name_next(tuple_reader(buf_str(&key)), f->arena, &space, &name),
			cases[i].expected);
		tuple_put_u64(&value, 1);
		buf_append_str(&value, buf_str(&key));
		assert_int_equal(catalog_work_record_parse(buf_str(&value), f->arena, &space, &name,
							   &f->err),
				 cases[i].expected);
		if (cases[i].expected == STATUS_OK) {
			assert_int_equal(space, cases[i].space);
			assert_true(str_eq(name, STR("name")));
		}
		/* Nothing is behind the name. */
		tuple_put_u64(&key, 1);
		tuple_put_u64(&value, 1);
		assert_int_equal(
			catalog_key_name_next(tuple_reader(buf_str(&key)), f->arena, &space, &name),
			STATUS_CORRUPT);
		assert_int_equal(catalog_work_record_parse(buf_str(&value), f->arena, &space, &name,
							   &f->err),
				 STATUS_CORRUPT);
	}
}

/* ---- Ranges of names ---- */

/* What ends a range, behind the byte of a prefix: "<a" is in front of that name, ">a" behind it. */
static void
assert_bounds(struct fixture *f, const struct name_range *range, const char *lo_text,
	      const char *hi_text)
{
	const char *texts[] = { lo_text, hi_text };
	AUTO(buf_release) struct buf lo = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf hi = CATALOG_KEY_INIT;
	const struct buf *got[] = { &lo, &hi };

	(void)f;
	buf_append_byte(&lo, 'P');
	assert_int_equal(name_range_bounds(range, CATALOG_KEY_NEXT, &lo, &hi), STATUS_OK);
	for (size_t i = 0; i < 2; i++) {
		AUTO(buf_release) struct buf want = CATALOG_KEY_INIT;

		buf_append_byte(&want, 'P');
		if (texts[i][0] == '<' || texts[i][0] == '>')
			tuple_put_str(&want, str_from_cstr(texts[i] + 1));
		if (texts[i][0] == '>')
			buf_append_byte(&want, CATALOG_KEY_NEXT);
		if (texts[i][0] == '$')
			buf_append_byte(&want, CATALOG_KEY_STRINGS_END);
		assert_true(str_eq(buf_str(got[i]), buf_str(&want)));
	}
}

static void
a_range_of_names_has_its_ends_or_not(void **state)
{
	static const struct {
		bool has_begin, has_end, exclusive_begin, exclusive_end;
		const char *lo, *hi;           /* from "a" to "b" */
		const char *down_lo, *down_hi; /* the same downwards, from "b" to "a" */
	} cases[] = {
		{ false, false, false, false, "", "$", "", "$" },
		{ true, false, false, false, "<a", "$", "", ">b" },
		{ true, false, true, false, ">a", "$", "", "<b" },
		{ false, true, false, false, "", ">b", "<a", "$" },
		{ false, true, false, true, "", "<b", ">a", "$" },
		{ true, true, false, false, "<a", ">b", "<a", ">b" },
		{ true, true, true, true, ">a", "<b", ">a", "<b" },
	};
	struct fixture *f = *state;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct name_range range = { .begin = STR("a"),
					    .end = STR("b"),
					    .has_begin = cases[i].has_begin,
					    .has_end = cases[i].has_end,
					    .exclusive_begin = cases[i].exclusive_begin,
					    .exclusive_end = cases[i].exclusive_end };

		assert_bounds(f, &range, cases[i].lo, cases[i].hi);
		range.descending = true;
		range.begin = STR("b");
		range.end = STR("a");
		assert_bounds(f, &range, cases[i].down_lo, cases[i].down_hi);
	}
}

/* One that is longer than any is cut, and lies behind all that begin alike. */
static void
a_long_end_of_a_range_is_cut(void **state)
{
	const size_t longest = NAME_RANGE_BYTES;
	struct fixture *f = *state;
	size_t lens[3];

	for (size_t i = 0; i < 3; i++) {
		const struct name_range range = { .begin = letters(f, longest + i),
						  .has_begin = true };
		AUTO(buf_release) struct buf lo = CATALOG_KEY_INIT;
		AUTO(buf_release) struct buf hi = CATALOG_KEY_INIT;

		assert_int_equal(name_range_bounds(&range, CATALOG_KEY_NEXT, &lo, &hi), STATUS_OK);
		lens[i] = lo.len;
	}
	assert_int_equal(lens[1], lens[0] + 1);
	assert_int_equal(lens[2], lens[1]);
}

static void
a_scan_of_a_page_has_a_limit_where_it_is_a_number(void **state)
{
	static const struct {
		uint64_t skip;
		size_t wanted, limit;
	} cases[] = {
		{ 0, 0, 1 },
		{ 2, 3, 6 },
		{ 0, SIZE_MAX, 0 },
		{ SIZE_MAX, 0, 0 },
		{ SIZE_MAX, 5, 0 },
		{ SIZE_MAX - 1, 0, 0 },
		{ 0, SIZE_MAX - 1, 0 },
		{ 0, SIZE_MAX - 2, SIZE_MAX - 1 },
		{ SIZE_MAX - 2, 0, SIZE_MAX - 1 },
		{ SIZE_MAX - 3, 1, SIZE_MAX - 1 },
		{ SIZE_MAX - 3, 2, 0 },
		{ 5, SIZE_MAX - 3, 0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		if (name_range_scan_limit(cases[i].skip, cases[i].wanted) != cases[i].limit)
			fail_msg("case %zu: %zu", i,
				 name_range_scan_limit(cases[i].skip, cases[i].wanted));
}

/* As clients write them: 0, or all of its bytes in digits. */
static void
a_sequence_has_as_many_digits_as_it_has_bytes(void **state)
{
	static const struct {
		const char *text;
		bool good;
	} cases[] = {
		{ "0", true },
		{ "0102030405060708090a0b0c0d", true },
		{ "0102030405060708090a0b0c0", false },
		{ "0102030405060708090a0b0c0d0", false },
		{ "0102030405060708090a0b0c0x", false },
		{ "1", false },
		{ "", false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct catalog_seq seq = { .bytes = { 7 } };
		struct err err = { 0 };
		enum status status = catalog_seq_parse(str_from_cstr(cases[i].text), &seq, &err);

		if (status != (cases[i].good ? STATUS_OK : STATUS_INVALID))
			fail_msg("\"%s\": %s", cases[i].text, status_name(status));
		assert_int_equal(seq.bytes[0], !cases[i].good ? 7 : i);
		assert_int_equal(seq.bytes[CATALOG_SEQ_BYTES - 1], i == 1 ? 13 : 0);
		assert_string_equal(err.text, cases[i].good
						      ? ""
						      : "Malformed sequence supplied in 'since' "
							"parameter.");
	}
}

static void
what_is_not_there_can_be_freed(void **state)
{
	(void)state;
	catalog_db_unref(NULL);
	chores_free(NULL);
	leases_free(NULL);
	catalog_guide_unref(NULL);
	catalog_tally_unref(NULL);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
		TEST(settings_have_names_and_texts_up_to_their_limits),
		TEST(a_database_has_a_name_up_to_the_limit),
		TEST(a_text_is_drawn_whole_up_to_the_limit),
		TEST(name_spaces_have_numbers_up_to_the_limit),
		TEST(a_range_of_names_has_its_ends_or_not),
		TEST(a_long_end_of_a_range_is_cut),
		TEST(a_scan_of_a_page_has_a_limit_where_it_is_a_number),
		TEST(a_sequence_has_as_many_digits_as_it_has_bytes),
		cmocka_unit_test(what_is_not_there_can_be_freed),
	};

	return cmocka_run_group_tests_name("catalog_bounds", tests, NULL, NULL);
}
