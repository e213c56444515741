/* Rules for texts: which lists make sense, and what they let pass. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/mem.h"
#include "settings/rules.h"

static void
assert_sound(const char *rules)
{
	struct err err = { 0 };

	assert_int_equal(rules_check(str_from_cstr(rules), &err), STATUS_OK);
}

static void
assert_unsound(const char *rules, const char *why)
{
	struct err err = { 0 };

	assert_int_equal(rules_check(str_from_cstr(rules), &err), STATUS_INVALID);
	assert_string_equal(err.text, why);
}

static void
lists_are_erlangs_terms(void **state)
{
	(void)state;
	assert_sound("[]");
	assert_sound(" [ \"a\" , {\"b\"} , {\"c\", \"No c.\"} , {\"d\", \"\"} ] ");
	assert_sound("[{\"[\\\\\\\\d\\\"]+\"}]");
	assert_unsound("", "a '[' is missing where the list begins");
	assert_unsound("{{\".{10,}\"}}", "a '[' is missing where the list begins");
	assert_unsound("[{\".{10,}\"]", "a '}' is missing behind an expression");
	assert_unsound("[\"a\"", "a ']' is missing where the list ends");
	assert_unsound("[\"a]", "a '\"' is missing where a string ends");
	assert_unsound("[\"a\\", "a '\"' is missing where a string ends");
	assert_unsound("[\"a\",]", "a '{' is missing where an expression begins");
	assert_unsound("[] x", "there is text behind the list");
	assert_unsound("[\"\\d\"]", "a backslash in a string is written twice");
	assert_unsound("[\"(\"]", "no regular expression: (");
}

static void
lists_have_limits(void **state)
{
	char text[8 * RULES_COUNT + RULES_STRING_BYTES];
	size_t n = 0;

	(void)state;
	text[n++] = '[';
	for (unsigned i = 0; i < RULES_COUNT; i++) {
		memcpy(text + n, "\"a\",", 4);
		n += 4;
	}
	memcpy(text + n - 1, "]", 2);
	assert_sound(text);
	memcpy(text + n - 1, ",\"a\"]", 6);
	assert_unsound(text, "there are more than 100 expressions");

	memcpy(text, "[\"", 2);
	memset(text + 2, 'a', RULES_STRING_BYTES);
	memcpy(text + 1 + RULES_STRING_BYTES, "\"]", 3);
	assert_sound(text);
	memcpy(text + 2 + RULES_STRING_BYTES, "\"]", 3);
	text[1 + RULES_STRING_BYTES] = 'a';
	assert_unsound(text, "a string has more than 255 bytes");
}

/* NULL: the text keeps all rules. */
static void
assert_broken(const char *rules, const char *text, const char *reason)
{
	struct rule broken;
	bool kept;

	assert_int_equal(
		rules_apply(str_from_cstr(rules), str_from_cstr(text), &broken, &kept, NULL),
		STATUS_OK);
	assert_int_equal(kept, reason == NULL);
	if (reason)
		assert_string_equal(broken.reason, reason);
}

static void
a_text_has_to_match_every_expression(void **state)
{
	const char *rules = "[{\".{10,}\"}, {\"[A-Z]+\", \"Requirement 2.\"}, {\"[a-z]+\", \"\"},"
			    "{\"\\\\d+\", \"Req 4.\"}, \"[!.,()]+\"]";

	(void)state;
	assert_broken(rules, "funnybone", "");
	assert_broken(rules, "funnnnnybone", "Requirement 2.");
	assert_broken(rules, "FUNNNNNYBONE", "");
	assert_broken(rules, "funnnnnyBONE", "Req 4.");
	assert_broken(rules, "funnnnnyB0N3", "");
	assert_broken(rules, "funnnnnyB0N3!", NULL);
	assert_broken("[]", "", NULL);
	assert_broken("[\"^$\"]", "", NULL);
}

static void
an_expression_that_takes_too_long_does_not_match(void **state)
{
	(void)state;
	assert_broken("[{\"^(a+)+$\", \"Too much.\"}]", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!",
		      "Too much.");
	assert_broken("[{\"^(a+)+$\", \"Too much.\"}]", "aaaaaaaa", NULL);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lists_are_erlangs_terms),
		cmocka_unit_test(lists_have_limits),
		cmocka_unit_test(a_text_has_to_match_every_expression),
		cmocka_unit_test(an_expression_that_takes_too_long_does_not_match),
	};

	return cmocka_run_group_tests_name("rules", tests, NULL, NULL);
}
