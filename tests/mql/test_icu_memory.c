/* What is told where ICU has no memory, which knows time zones and collations. */
#include <unicode/uclean.h>

#include "mql/collation.h"

#include "expr_case.h"

/* From this allocation of ICU's on all fail, counted from 1; 0: none does. */
static size_t icu_failing;
static size_t icu_count;

static bool
icu_fails(void)
{
	return ++icu_count >= icu_failing && icu_failing;
}

static void *
icu_alloc(const void *context, size_t bytes)
{
	(void)context;
	return icu_fails() ? NULL : malloc(bytes);
}

static void *
icu_realloc(const void *context, void *p, size_t bytes)
{
	(void)context;
	return icu_fails() ? NULL : realloc(p, bytes);
}

static void
icu_free(const void *context, void *p)
{
	(void)context;
	free(p);
}

/* Runs it with no memory from the nth allocation on; 0: with enough of it. */
static enum status
run_failing(struct arena *arena, case_again *run, const void *arg, size_t nth, struct buf *said)
{
	struct mql q = case_mql(arena);
	enum status status;

	icu_count = 0;
	icu_failing = nth;
	status = run(&q, arg, said);
	icu_failing = 0;
	return status;
}

/* What ICU loads once, for all: where that fails, it does as long as the process is there. */
static void
load(struct arena *arena, case_again *run, const void *arg)
{
	struct buf said = BUF_INIT(CASE_BYTES);

	assert_int_equal(run_failing(arena, run, arg, 0, &said), STATUS_OK);
	buf_release(&said);
}

/*
 * With memory for one allocation more each time it fails as it says, until it does what it does
 * where there is enough. ICU does not tell why it does not know a name of a time zone.
 */
static void
hands_failures_on(struct arena *arena, case_again *run, const void *arg, const char *expected)
{
	size_t failures = 0;
	bool done = false;

	for (size_t nth = 1; !done; nth++) {
		struct arena_mark mark = arena_mark(arena);
		struct buf said = BUF_INIT(CASE_BYTES);
		enum status status = run_failing(arena, run, arg, nth, &said);

		if (status == STATUS_OK && !str_eq(buf_str(&said), str_from_cstr(expected)))
			fail_msg("with %zu allocations: %.*s", nth - 1, STR_ARG(buf_str(&said)));
		if (status != STATUS_OK && status != STATUS_NOMEM &&
		    !strstr(case_err.text, "unrecognized time zone"))
			fail_msg("with %zu allocations: %s %s", nth - 1, status_name(status),
				 case_err.text);
		failures += status == STATUS_NOMEM;
		done = icu_count < nth;
		buf_release(&said);
		arena_reset(arena, mark);
	}
	assert_true(failures > 0);
}

static struct expr_run
hour_in(struct arena *arena, const char *zone)
{
	struct str text = arena_printf(arena, "{'$hour':{'date':'$a','timezone':'%s'}}", zone);

	return (struct expr_run){ case_value(arena, text.ptr),
				  case_bson(arena, "{'a':{'$date':0}}") };
}

static void
zones_hand_on_that_there_is_no_memory(void **state)
{
	static const struct {
		const char *zone, *hour;
	} cases[] = {
		{ "America/New_York", "{\"$numberInt\":\"19\"}" },
		{ "Asia/Kolkata", "{\"$numberInt\":\"5\"}" },
	};
	struct expr_run run = hour_in(*state, "Europe/Berlin");

	load(*state, case_run_again, &run);
	for (size_t i = 0; i < CASES(cases); i++) {
		run = hour_in(*state, cases[i].zone);
		hands_failures_on(*state, case_run_again, &run, cases[i].hour);
	}
}

static enum status
collation_again(struct mql *q, const void *arg, struct buf *said)
{
	const struct str *document = arg;
	struct mql_collation *c = NULL;
	struct bson_value locale;

	TRY(mql_collation_new(q, *document, &c));
	assert_true(bson_find(mql_collation_document(c), STR("locale"), &locale));
	buf_append_str(said, bson_text(&locale));
	mql_collation_free(c);
	return buf_status(said);
}

static void
collations_hand_on_that_there_is_no_memory(void **state)
{
	struct str document = case_bson(*state, "{'locale':'de'}");

	load(*state, collation_again, &document);
	document = case_bson(*state, "{'locale':'sv','strength':2,'numericOrdering':true}");
	hands_failures_on(*state, collation_again, &document, "sv");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(zones_hand_on_that_there_is_no_memory, case_setup,
						case_teardown),
		cmocka_unit_test_setup_teardown(collations_hand_on_that_there_is_no_memory,
						case_setup, case_teardown),
	};
	UErrorCode code = U_ZERO_ERROR;

	u_setMemoryFunctions(NULL, icu_alloc, icu_realloc, icu_free, &code);
	if (U_FAILURE(code))
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
