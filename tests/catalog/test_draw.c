#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/budget.h"
#include "base/mem.h"
#include "catalog/draw.h"
#include "kv/keyspace.h"
#include "kv/tuple.h"
#include "model/revisioned/revisioned.h"

struct pair {
	struct buf key;
	struct buf value;
};

static const uint8_t stamp[12] = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11 };
static const char hash[17] = "0123456789abcdef";

static struct pair
pair_in(enum rev_subspace subspace)
{
	struct pair p = { BUF_INIT(10000), BUF_INIT(200000) };

	tuple_put_u64(&p.key, 7);
	tuple_put_u64(&p.key, subspace);
	return p;
}

static void
put_hash(struct buf *b)
{
	tuple_put_bytes(b, str_of(hash, 16));
}

/* Draws the pair, compares, and releases it. */
static void
assert_drawn(struct pair *p, const char *expected)
{
	AUTO(buf_release) struct buf drawn = BUF_INIT(100000);

	assert_int_equal(buf_status(&p->key), STATUS_OK);
	assert_int_equal(buf_status(&p->value), STATUS_OK);
	catalog_draw_pair(catalog_kind_find(CATALOG_KIND_REVISIONED), buf_str(&p->key),
			  buf_str(&p->value), &drawn);
	buf_append_byte(&drawn, '\0');
	assert_int_equal(buf_status(&drawn), STATUS_OK);
	assert_string_equal(drawn.ptr, expected);
	buf_release(&p->key);
	buf_release(&p->value);
}

static void
winner_shows_sequence_branches_and_ancestors(void **state)
{
	struct pair p = pair_in(REV_SUBSPACE_REVISIONS);

	(void)state;
	tuple_put_str(&p.key, STR("mydoc"));
	tuple_put_bool(&p.key, true);
	tuple_put_u64(&p.key, 3);
	put_hash(&p.key);
	tuple_put_u64(&p.value, 1);
	tuple_open(&p.value);
	tuple_put_u64(&p.value, 0);
	tuple_put_versionstamp(&p.value, stamp);
	tuple_close(&p.value);
	tuple_put_u64(&p.value, 1);
	tuple_open(&p.value);
	put_hash(&p.value);
	put_hash(&p.value);
	tuple_close(&p.value);
	assert_drawn(&p,
		     "(\"revisions\", \"mydoc\", true, 3, \\x30313233343536373839616263646566) = "
		     "(1, 00000102030405060708090a0b, 1, [\\x30313233343536373839616263646566, "
		     "\\x30313233343536373839616263646566])");
}

static void
losing_branch_shows_nulls(void **state)
{
	struct pair p = pair_in(REV_SUBSPACE_REVISIONS);

	(void)state;
	tuple_put_str(&p.key, STR("mydoc"));
	tuple_put_bool(&p.key, false);
	tuple_put_u64(&p.value, 1);
	tuple_put_null(&p.value);
	tuple_put_null(&p.value);
	tuple_open(&p.value);
	tuple_close(&p.value);
	assert_drawn(&p, "(\"revisions\", \"mydoc\", false) = (1, null, null, [])");
}

static void
change_has_its_sequence_as_one_word(void **state)
{
	struct pair p = pair_in(REV_SUBSPACE_CHANGES);

	(void)state;
	tuple_put_u64(&p.key, 2);
	tuple_put_versionstamp(&p.key, stamp);
	tuple_put_u64(&p.value, 1);
	tuple_put_str(&p.value, STR("my\"doc"));
	assert_drawn(&p, "(\"changes\", 02000102030405060708090a0b) = (1, \"my\\\"doc\")");

	/* The highest Incarnation there is, and a number that is none. */
	p = pair_in(REV_SUBSPACE_CHANGES);
	tuple_put_u64(&p.key, UINT8_MAX);
	tuple_put_versionstamp(&p.key, stamp);
	tuple_put_u64(&p.value, UINT8_MAX + 1);
	tuple_put_versionstamp(&p.value, stamp);
	assert_drawn(&p, "(\"changes\", ff000102030405060708090a0b) = "
			 "(256, versionstamp:000102030405060708090a0b)");
}

static void
leaves_show_paths_and_json_values(void **state)
{
	struct pair p = pair_in(REV_SUBSPACE_DOCUMENTS);

	(void)state;
	tuple_put_str(&p.key, STR("mydoc"));
	tuple_put_str(&p.key, STR("foo"));
	tuple_put_u64(&p.key, 0);
	tuple_put_str(&p.value, STR("bar"));
	assert_drawn(&p, "(\"documents\", \"mydoc\", \"foo\", 0) = (\"bar\")");

	p = pair_in(REV_SUBSPACE_DOCUMENTS);
	tuple_open(&p.value);
	tuple_close(&p.value);
	assert_drawn(&p, "(\"documents\") = ([])");

	p = pair_in(REV_SUBSPACE_DOCUMENTS);
	tuple_open(&p.value);
	tuple_open(&p.value);
	tuple_close(&p.value);
	tuple_close(&p.value);
	assert_drawn(&p, "(\"documents\") = ({})");

	p = pair_in(REV_SUBSPACE_LOCAL);
	tuple_open(&p.value);
	tuple_put_double(&p.value, 1.1);
	tuple_put_str(&p.value, STR("1.10"));
	tuple_close(&p.value);
	assert_drawn(&p, "(\"local\") = (1.10)");

	/* What no leaf is. */
	p = pair_in(REV_SUBSPACE_LOCAL);
	tuple_open(&p.value);
	tuple_put_double(&p.value, 1.1);
	tuple_put_u64(&p.value, 1);
	tuple_close(&p.value);
	assert_drawn(&p, "(\"local\") = ((1.1, 1))");
}

static void
a_space_without_a_name_is_a_number(void **state)
{
	struct pair p = pair_in(REV_SUBSPACE_VIEWS + 1);

	(void)state;
	tuple_put_str(&p.key, STR("x"));
	assert_drawn(&p, "(\"subspace 15\", \"x\") = ()");
}

static void
long_string_is_cut_between_characters(void **state)
{
	struct pair p = pair_in(REV_SUBSPACE_DOCUMENTS);
	AUTO(buf_release) struct buf text = BUF_INIT(10000);
	AUTO(buf_release) struct buf expected = BUF_INIT(10000);

	(void)state;
	buf_append_byte(&text, 'x');
	for (int i = 0; i < 1000; i++)
		buf_append_cstr(&text, "é");
	tuple_put_str(&p.value, buf_str(&text));
	buf_append_cstr(&expected, "(\"documents\") = (\"");
	buf_append(&expected, text.ptr, 999);
	buf_append_cstr(&expected, "\"...(2001 bytes))");
	buf_append_byte(&expected, '\0');
	assert_drawn(&p, expected.ptr);
}

static void
counters_are_numbers(void **state)
{
	struct pair p = pair_in(REV_SUBSPACE_STATS);

	(void)state;
	tuple_put_str(&p.key, STR("doc_count"));
	buf_append(&p.value, "\x01\x02\0\0\0\0\0\0", 8);
	assert_drawn(&p, "(\"stats\", \"doc_count\") = 513");
	p = pair_in(REV_SUBSPACE_TALLIES);
	tuple_put_u64(&p.key, REV_SUBSPACE_CHANGES);
	tuple_put_bytes(&p.key, STR(""));
	tuple_put_bytes(&p.key, STR("\xff"));
	buf_append(&p.value, "\xfe\xff\xff\xff\xff\xff\xff\xff", 8);
	assert_drawn(&p, "(\"tallies\", \"changes\", '', \\xff) = -2");
}

static void
root_and_unknown_subspaces_are_named(void **state)
{
	struct pair p = pair_in((enum rev_subspace)77);

	(void)state;
	assert_drawn(&p, "(\"subspace 77\") = ()");

	p = (struct pair){ BUF_INIT(100), BUF_INIT(100) };
	tuple_put_u64(&p.key, KV_ROOT);
	tuple_put_u64(&p.key, KV_ROOT_DATABASES);
	tuple_put_str(&p.key, STR("db"));
	tuple_put_u64(&p.value, 5);
	assert_drawn(&p, "(\"root\", \"databases\", \"db\") = (5)");

	p = (struct pair){ BUF_INIT(100), BUF_INIT(100) };
	tuple_put_u64(&p.key, KV_ROOT);
	tuple_put_u64(&p.key, 99);
	assert_drawn(&p, "(\"root\", 99) = ()");
}

static void
bytes_that_are_no_tuples_are_shown_as_they_are(void **state)
{
	struct pair p = { BUF_INIT(100), BUF_INIT(100) };

	(void)state;
	buf_append_cstr(&p.key, "\xfe\\k");
	buf_append_cstr(&p.value, "v\n");
	assert_drawn(&p, "\\xfe\\\\k = v\\x0a");

	p = pair_in(REV_SUBSPACE_CONFIG);
	buf_append_cstr(&p.value, "{\"json\":true}");
	assert_drawn(&p, "(\"config\") = '{\"json\":true}'");
}

/* Whoever draws for a client draws from the client's share of the memory. */
static void
what_a_drawing_takes_meanwhile_counts_where_it_is_put(void **state)
{
	enum {
		LIMIT = 16 * 1024 * 1024,
		TEXT_BYTES = 90000, /* of which little is shown */
	};
	struct pair p = pair_in(REV_SUBSPACE_CONFIG);
	static char text[TEXT_BYTES];
	struct budget_part part;
	struct budget budget;
	struct buf drawn;

	(void)state;
	memset(text, 'x', sizeof(text));
	tuple_put_str(&p.value, str_of(text, sizeof(text)));
	budget_init(&budget, LIMIT);
	budget_part_init(&part, &budget);
	assert_true(budget_use(&part, BUDGET_FREE_BYTES));
	drawn = BUF_INIT_OF(10000, &part);
	catalog_draw_pair(catalog_kind_find(CATALOG_KIND_REVISIONED), buf_str(&p.key),
			  buf_str(&p.value), &drawn);
	assert_int_equal(buf_status(&drawn), STATUS_OK);
	assert_true(budget_take_peak(&budget) >= TEXT_BYTES);
	buf_release(&drawn);
	assert_int_equal(budget_taken(&budget), 0);
	budget_part_release(&part);
	budget_fini(&budget);
	buf_release(&p.key);
	buf_release(&p.value);
}

/* Of a database of a kind that nobody knows, subspaces have numbers. */
static void
a_pair_of_no_kind_is_drawn_by_numbers(void **state)
{
	AUTO(buf_release) struct buf drawn = BUF_INIT(1000);
	struct pair p = pair_in(REV_SUBSPACE_CHANGES);
	struct catalog_place place;

	(void)state;
	assert_true(catalog_place_of(buf_str(&p.key), &place));
	assert_int_equal(place.database, 7);
	assert_int_equal(place.subspace, REV_SUBSPACE_CHANGES);
	catalog_draw_space(NULL, place, &drawn);
	assert_true(str_eq(buf_str(&drawn), STR("subspace 2")));
	buf_clear(&drawn);
	place.database = 0;
	catalog_draw_space(NULL, place, &drawn);
	assert_true(str_eq(buf_str(&drawn), STR("root")));
	buf_clear(&drawn);
	catalog_draw_pair(NULL, buf_str(&p.key), STR("value"), &drawn);
	assert_int_equal(buf_status(&drawn), STATUS_OK);
	assert_true(drawn.len > 0);
	buf_release(&p.key);
	buf_release(&p.value);
}

/* An allocation that fails fails the drawing: bytes are not told in place of what they mean. */
static void
without_memory_nothing_else_is_drawn(void **state)
{
	struct pair p = pair_in(REV_SUBSPACE_REVISIONS);
	AUTO(buf_release) struct buf whole = BUF_INIT(100000);
	const struct catalog_kind *kind = catalog_kind_find(CATALOG_KIND_REVISIONED);
	bool failed = true;

	(void)state;
	tuple_put_str(&p.key, STR("mydoc"));
	tuple_put_bool(&p.key, true);
	tuple_put_u64(&p.key, 3);
	put_hash(&p.key);
	tuple_put_u64(&p.value, 1);
	catalog_draw_pair(kind, buf_str(&p.key), buf_str(&p.value), &whole);
	assert_int_equal(buf_status(&whole), STATUS_OK);
	for (uint64_t nth = 1; failed; nth++) {
		AUTO(buf_release) struct buf drawn = BUF_INIT(100000);

		(void)mem_fail_only(nth);
		catalog_draw_pair(kind, buf_str(&p.key), buf_str(&p.value), &drawn);
		failed = mem_fail_only(0) >= nth;
		if (failed)
			assert_int_equal(drawn.failed, STATUS_NOMEM);
		else
			assert_true(str_eq(buf_str(&drawn), buf_str(&whole)));
	}
	buf_release(&p.key);
	buf_release(&p.value);
}

/*
 * Of the keys of the root two hold versionstamps. What another one has is a tuple, which may have
 * as many bytes.
 */
static void
only_what_is_watched_in_the_root_is_a_stamp(void **state)
{
	static const char *const texts[] = {
		[KV_ROOT_DATABASES] = "(\"root\", \"databases\") = (\"0123456789\")",
		[KV_ROOT_EVENTS] = "(\"root\", \"events\") = "
				   "versionstamp:023031323334353637383900",
		[KV_ROOT_PEOPLE] = "(\"root\", \"people\") = "
				   "versionstamp:023031323334353637383900",
	};

	(void)state;
	for (unsigned space = 0; space < sizeof(texts) / sizeof(texts[0]); space++) {
		struct pair p = { BUF_INIT(100), BUF_INIT(100) };

		if (!texts[space])
			continue;
		tuple_put_u64(&p.key, KV_ROOT);
		tuple_put_u64(&p.key, space);
		tuple_put_str(&p.value, STR("0123456789"));
		assert_drawn(&p, texts[space]);
	}
}

int
main(void)
{
	rev_register();
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(winner_shows_sequence_branches_and_ancestors),
		cmocka_unit_test(losing_branch_shows_nulls),
		cmocka_unit_test(change_has_its_sequence_as_one_word),
		cmocka_unit_test(leaves_show_paths_and_json_values),
		cmocka_unit_test(a_space_without_a_name_is_a_number),
		cmocka_unit_test(long_string_is_cut_between_characters),
		cmocka_unit_test(counters_are_numbers),
		cmocka_unit_test(root_and_unknown_subspaces_are_named),
		cmocka_unit_test(bytes_that_are_no_tuples_are_shown_as_they_are),
		cmocka_unit_test(a_pair_of_no_kind_is_drawn_by_numbers),
		cmocka_unit_test(what_a_drawing_takes_meanwhile_counts_where_it_is_put),
		cmocka_unit_test(without_memory_nothing_else_is_drawn),
		cmocka_unit_test(only_what_is_watched_in_the_root_is_a_stamp),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
