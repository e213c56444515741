/* What roles allow at the door for rows. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "door/rows/conn/rights.h"

enum {
	ARENA_BYTES = 64 * 1024,
};

/* The rights of one role: an attempt of each right on each place, as a text of letters. */
static void
expect(const char *role, const char *want)
{
	static const struct {
		const char *schema, *table;
	} places[] = { { "", "" }, { "shop", "" }, { "shop", "a" }, { "shop", "b" }, { "x", "a" } };
	static const char letters[] = "smcad";
	struct arena *arena = arena_new(ARENA_BYTES);
	const struct str roles[] = { str_from_cstr(role) };
	struct rows_rights r;
	char got[64];
	size_t n = 0;

	rows_rights_of_roles(&r, roles, 1, false, arena);
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		if (i)
			got[n++] = ' ';
		for (unsigned right = 0; right < 5; right++)
			if (rows_rights_allow(&r, 1u << right, str_from_cstr(places[i].schema),
					      str_from_cstr(places[i].table)))
				got[n++] = letters[right];
	}
	got[n] = '\0';
	assert_string_equal(got, want);
	arena_free(arena);
}

static void
a_role_allows_what_it_says_where_it_says(void **state)
{
	(void)state;
	expect("rows:all", "smcad smcad smcad smcad smcad");
	expect("rows:select", "s s s s s");
	expect("rows:select@shop", " s s s ");
	expect("cql:modify@shop.a", "  m  ");
	expect("rows:create@shop", " c c c ");
	expect("rows:ALTER@shop", " a a a ");
	expect("rows:drop@x", "    d");
	expect("rows:authorize", "    ");
	expect("cql:authorize", "    ");
	expect("rows:", "    ");
	expect("redis:all", "    ");
	expect("select@shop", "    ");
	expect("rowsall", "    ");
}

static void
a_schema_is_seen_by_whoever_has_a_right_in_it(void **state)
{
	const struct str roles[] = { STR("rows:select@shop.a"), STR("other") };
	struct arena *arena = arena_new(ARENA_BYTES);
	struct rows_rights r;

	(void)state;
	rows_rights_of_roles(&r, roles, 2, false, arena);
	assert_true(rows_rights_see(&r, STR("shop")));
	assert_false(rows_rights_see(&r, STR("sho")));
	rows_rights_of_roles(&r, roles + 1, 1, false, arena);
	assert_false(rows_rights_see(&r, STR("shop")));
	rows_rights_of_roles(&r, NULL, 0, true, arena);
	assert_true(rows_rights_see(&r, STR("shop")));
	assert_true(rows_rights_allow(&r, GRANT_DROP, STR("x"), STR("y")));
	arena_free(arena);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_role_allows_what_it_says_where_it_says),
		cmocka_unit_test(a_schema_is_seen_by_whoever_has_a_right_in_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
