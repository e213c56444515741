/*
 * Selectors on the fibers of a loop: other fibers have their turns while one compiles or matches,
 * and the stack of a fiber is enough.
 */
#include "common.h"
#include "loop/pool.h"
#include "loop/step.h"
#include "loop/task.h"

enum {
	LONG_STRING_BYTES = 500000,
	TEXT_BYTES = 1 << 20,
	GROUPS = 1090,
};

static struct loop loop;
static size_t turns; /* of the fiber that does nothing else */
static bool ended;

static void
count_turns(void *arg)
{
	(void)arg;
	while (!ended) {
		turns++;
		wait_yield();
	}
	loop_stop(&loop);
}

/* Runs `fn` on a fiber beside one that counts its turns. */
static void
run_on_fiber(void (*fn)(void *arg))
{
	struct err err = { 0 };
	struct pool *pool;
	struct loop_config config = { .task_bytes = 1 << 20 };

	assert_int_equal(pool_new(1, &pool, &err), STATUS_OK);
	config.pool = pool;
	assert_int_equal(loop_init(&loop, &config, &err), STATUS_OK);
	turns = 0;
	ended = false;
	assert_int_equal(task_spawn(&loop, fn, NULL), STATUS_OK);
	assert_int_equal(task_spawn(&loop, count_turns, NULL), STATUS_OK);
	loop_run(&loop);
	loop_fini(&loop);
	pool_free(pool);
}

static bool
matches(const char *selector, struct buf *doc_text)
{
	struct selector_special specials[2];
	struct selector_doc doc;
	struct selector *s;
	bool ret;

	buf_append_byte(doc_text, '\0');
	assert_int_equal(buf_status(doc_text), STATUS_OK);
	assert_int_equal(selector_compile(str_from_cstr(selector), &work, &s, NULL, NULL),
			 STATUS_OK);
	doc_of(doc_text->ptr, specials, &doc);
	assert_int_equal(selector_match(s, &doc, &work, &ret), STATUS_OK);
	return ret;
}

static void
match_expensive_expression(void *arg)
{
	AUTO(buf_release) struct buf text = BUF_INIT(TEXT_BYTES);

	(void)arg;
	buf_append_cstr(&text, "{\"a\":\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!\"}");
	assert_false(matches("{\"a\":{\"$regex\":\"^(a+)+$\"}}", &text));
	ended = true;
}

static void
an_expensive_expression_lets_others_run(void **state)
{
	(void)state;
	run_on_fiber(match_expensive_expression);
	assert_true(turns >= SELECTOR_REGEX_STEPS / STEP_SLICE_STEPS);
}

/* Each group refers to the next one, and PCRE2 follows them by calling itself. */
static void
compile_deep_expression(void *arg)
{
	AUTO(buf_release) struct buf text = BUF_INIT(TEXT_BYTES);
	struct selector *s;

	(void)arg;
	buf_append_cstr(&text, "{\"a\":{\"$regex\":\"(?<=(?1))");
	for (int i = 0; i < GROUPS; i++)
		buf_printf(&text, "(a(?%d))", i + 2);
	buf_append_cstr(&text, "(a)\"}}");
	assert_int_equal(selector_compile(buf_str(&text), &work, &s, NULL, NULL), STATUS_OK);
	ended = true;
}

static void
groups_that_refer_to_each_other_fit_the_stack(void **state)
{
	(void)state;
	run_on_fiber(compile_deep_expression);
}

static void
compare_long_strings(void *arg)
{
	AUTO(buf_release) struct buf text = BUF_INIT(TEXT_BYTES);
	AUTO(buf_release) struct buf selector = BUF_INIT(TEXT_BYTES);

	(void)arg;
	buf_append_cstr(&text, "{\"a\":\"");
	for (int i = 0; i < LONG_STRING_BYTES; i++)
		buf_append_byte(&text, 'a');
	buf_append_cstr(&selector, "{\"a\":{\"$gt\":\"");
	buf_append(&selector, text.ptr + 6, LONG_STRING_BYTES);
	buf_append_cstr(&text, "B\"}");
	buf_append(&selector, "b\"}}", sizeof("b\"}}"));
	assert_true(matches(selector.ptr, &text));
	ended = true;
}

static void
long_strings_are_compared_beside_the_loop(void **state)
{
	(void)state;
	run_on_fiber(compare_long_strings);
	assert_true(turns > 1);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(an_expensive_expression_lets_others_run, setup,
						teardown),
		cmocka_unit_test_setup_teardown(groups_that_refer_to_each_other_fit_the_stack,
						setup, teardown),
		cmocka_unit_test_setup_teardown(long_strings_are_compared_beside_the_loop, setup,
						teardown),
	};

	return cmocka_run_group_tests_name("selectors on fibers", tests, NULL, NULL);
}
