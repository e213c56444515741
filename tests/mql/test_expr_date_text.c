/* Texts that become dates: forms that are read, and what they are when they end too early. */
#include "expr_case.h"

struct text_case {
	const char *text, *format; /* NULL: any form */
	const char *date;          /* NULL: none */
	const char *said;          /* by the error */
};

#define UNREAD "Unexpected character"
#define NO_DAY "incomplete date/time string"

static const struct text_case texts[] = {
	{ "2017-02-08", NULL, "2017-02-08T00:00:00Z", NULL },
	{ "2017-2-8", NULL, "2017-02-08T00:00:00Z", NULL },
	{ "2017-02", NULL, "2017-02-01T00:00:00Z", NULL },
	{ "20170208", NULL, "2017-02-08T00:00:00Z", NULL },
	{ "2017/2/8", NULL, "2017-02-08T00:00:00Z", NULL },
	{ "2017/02/08", NULL, "2017-02-08T00:00:00Z", NULL },
	{ "2017-/2/8", NULL, NULL, UNREAD },
	{ "2017-W06-3", NULL, "2017-02-08T00:00:00Z", NULL },
	{ "2017-W06", NULL, "2017-02-06T00:00:00Z", NULL },
	{ "2017W06", NULL, "2017-02-06T00:00:00Z", NULL },
	{ "2017-W01-1", NULL, "2017-01-02T00:00:00Z", NULL },
	{ "2017-W53-7", NULL, "2018-01-07T00:00:00Z", NULL },
	{ "2017-W00", NULL, NULL, NO_DAY },
	{ "2017-W54", NULL, NULL, NO_DAY },
	{ "2017-W06-0", NULL, NULL, NO_DAY },
	{ "2017-W06-8", NULL, NULL, NO_DAY },
	{ "2017-01-31", NULL, "2017-01-31T00:00:00Z", NULL },
	{ "2016-02-29", NULL, "2016-02-29T00:00:00Z", NULL },
	{ "2017-02-29", NULL, NULL, NO_DAY },
	{ "2017-04-30", NULL, "2017-04-30T00:00:00Z", NULL },
	{ "2017-04-31", NULL, NULL, NO_DAY },
	{ "2017-12-31", NULL, "2017-12-31T00:00:00Z", NULL },
	{ "2017-01-01T00", NULL, "2017-01-01T00:00:00Z", NULL },
	{ "2017-02-08T1210", NULL, "2017-02-08T12:10:00Z", NULL },
	{ "2017-02-08T121059", NULL, "2017-02-08T12:10:59Z", NULL },
	{ "2017-02-08T1200", NULL, "2017-02-08T12:00:00Z", NULL },
	{ "2017-02-08T120509", NULL, "2017-02-08T12:05:09Z", NULL },
	{ "2017-02-08T1290", NULL, NULL, "no such time" },
	{ "2017-02-08T121090", NULL, NULL, "no such time" },
	{ "2017-02-08T12 0", NULL, NULL, UNREAD },
	{ "2017-02-08T12:10:", NULL, NULL, UNREAD },
	{ "2017-02-08T12:10:59.", NULL, NULL, UNREAD },
	{ "2017-02-08T12:10:59.1", NULL, "2017-02-08T12:10:59.1Z", NULL },
	{ "2017-02-08T12:10:59.12", NULL, "2017-02-08T12:10:59.12Z", NULL },
	{ "2017-02-08T12:10:59.1239", NULL, "2017-02-08T12:10:59.123Z", NULL },
	{ "2017-02-08T12:10:59.123456789", NULL, "2017-02-08T12:10:59.123Z", NULL },
	{ "2017-02-08T12:10:59 Z", NULL, "2017-02-08T12:10:59Z", NULL },
	{ "2017-02-08T12:10:59 +01", NULL, "2017-02-08T11:10:59Z", NULL },
	{ "2017-02-08T12:10:59-0130", NULL, "2017-02-08T13:40:59Z", NULL },
	{ "2017-02-08T12:10:59+01:30", NULL, "2017-02-08T10:40:59Z", NULL },
	{ "2017-02-08T23:59:59", NULL, "2017-02-08T23:59:59Z", NULL },
	{ "2017-02-08T25", NULL, NULL, "no such time" },
	{ "July 20, 2017", NULL, "2017-07-20T00:00:00Z", NULL },
	{ "JULY 20 2017", NULL, "2017-07-20T00:00:00Z", NULL },
	{ "jul 20, 2017", NULL, "2017-07-20T00:00:00Z", NULL },
	{ "20 July 2017", NULL, "2017-07-20T00:00:00Z", NULL },
	{ "1 Dec 2017", NULL, "2017-12-01T00:00:00Z", NULL },
	{ "07/20/2017", NULL, "2017-07-20T00:00:00Z", NULL },
	{ "7/20/2017 10:30", NULL, "2017-07-20T10:30:00Z", NULL },
	{ "July", NULL, NULL, UNREAD },
	{ "July Z", NULL, NULL, UNREAD },
	{ "20 Jux 2017", NULL, NULL, UNREAD },
	{ "July 20 2017", "%B %d %Y", "2017-07-20T00:00:00Z", NULL },
	{ "Jul 20 2017", "%B %d %Y", NULL, UNREAD },
	{ "Jul 20 2017", "%b %d %Y", "2017-07-20T00:00:00Z", NULL },
	{ "July 20 2017", "%b %d %Y", NULL, UNREAD },
	{ "2017 1", "%Y %j", "2017-01-01T00:00:00Z", NULL },
	{ "2017 365", "%Y %j", "2017-12-31T00:00:00Z", NULL },
	{ "2016 366", "%Y %j", "2016-12-31T00:00:00Z", NULL },
	{ "2017 366", "%Y %j", NULL, NO_DAY },
	{ "2017 0", "%Y %j", NULL, NO_DAY },
	{ "200", "%j", NULL, NO_DAY },
	{ "2017 200 2", "%Y %j %m", NULL, NO_DAY },
	{ "2017 200 2", "%Y %j %d", NULL, NO_DAY },
	{ "2017 200 0", "%Y %j %m", NULL, NO_DAY },
	{ "2017 200 0", "%Y %j %d", NULL, NO_DAY },
	{ "2017", "%Y", NULL, NO_DAY },
	{ "2017 2", "%Y %m", NULL, NO_DAY },
	{ "2017 2", "%Y %d", NULL, NO_DAY },
	{ "2017", "%G", "2017-01-02T00:00:00Z", NULL },
	{ "0000", "%G", "0000-01-03T00:00:00Z", NULL },
	{ "2017 2017", "%G %Y", NULL, NO_DAY },
	{ "2017 2", "%G %m", NULL, NO_DAY },
	{ "2017 2", "%G %d", NULL, NO_DAY },
	{ "2017-02-08 -90", "%Y-%m-%d %Z", "2017-02-08T01:30:00Z", NULL },
	{ "2017-02-08 90", "%Y-%m-%d %Z", NULL, UNREAD },
	{ "2017-02-08 1:2:3.004", "%Y-%m-%d %H:%M:%S.%L", "2017-02-08T01:02:03.004Z", NULL },
	{ "2017-02-08 24:00:00", "%Y-%m-%d %H:%M:%S", "2017-02-09T00:00:00Z", NULL },
	{ "2017-02-08 24:00:01", "%Y-%m-%d %H:%M:%S", NULL, "no such time" },
	{ "100%", "%d%", NULL, NULL },
	{ "2017-02-08%", "%Y-%m-%d%%", "2017-02-08T00:00:00Z", NULL },
};

static const char *
expression_of(struct arena *arena, const char *text, const char *format)
{
	return format ? arena_printf(arena, "{'$dateFromString':{'dateString':%s,'format':'%s'}}",
				     text, format)
				.ptr
		      : arena_printf(arena, "{'$dateFromString':{'dateString':%s}}", text).ptr;
}

/* A value, or the error: the same text of another document is in quotes in it. */
static const char *
read_text(struct arena *arena, const char *expression, const char *document)
{
	struct mql q = case_mql(arena);
	struct bson_value v;

	if (case_run(&q, expression, document, &v) == STATUS_OK)
		return case_text(arena, &v);
	return arena_printf(arena, "%d %s", q.code, case_err.text).ptr;
}

static void
texts_are_dates_in_many_forms(void **state)
{
	for (size_t i = 0; i < CASES(texts); i++) {
		const struct text_case *c = &texts[i];
		const char *document = arena_printf(*state, "{'t':'%s'}", c->text).ptr;
		const char *got = read_text(*state, expression_of(*state, "'$t'", c->format),
					    document);
		struct bson_value wanted;

		if (!c->date) {
			if (got[0] < '0' || got[0] > '9' || (c->said && !strstr(got, c->said)))
				fail_msg("%s: %s", c->text, got);
			continue;
		}
		wanted = case_value(*state, arena_printf(*state, "{'$date':'%s'}", c->date).ptr);
		if (strcmp(got, case_text(*state, &wanted)) != 0)
			fail_msg("%s: %s, not %s", c->text, got, c->date);
	}
}

/* The characters behind a part of a text are none of it. */
static void
no_more_of_a_text_is_read_than_there_is(void **state)
{
	for (size_t i = 0; i < CASES(texts); i++) {
		const struct text_case *c = &texts[i];
		const char *whole = arena_printf(*state, "{'t':'%s'}", c->text).ptr;

		for (int n = 0; n < (int)strlen(c->text); n++) {
			const char *part = arena_printf(*state, "{'t':'%.*s'}", n, c->text).ptr;
			const char *cut =
				arena_printf(*state, "{'$substrBytes':['$t',0,%d]}", n).ptr;
			const char *wanted = read_text(
				*state, expression_of(*state, "'$t'", c->format), part);
			const char *got = read_text(*state, expression_of(*state, cut, c->format),
						    whole);

			if (strcmp(got, wanted) != 0)
				fail_msg("%d bytes of %s: %s, not %s", n, c->text, got, wanted);
		}
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(texts_are_dates_in_many_forms, case_setup,
						case_teardown),
		cmocka_unit_test_setup_teardown(no_more_of_a_text_is_read_than_there_is, case_setup,
						case_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
