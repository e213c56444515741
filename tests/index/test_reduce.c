/* Partial results of reduces: failures go on to the reader, and answers of functions are kept. */
#include "common.h"

#include "base/arena_apart.h"
#include "base/mem.h"
#include "index/view/record.h"
#include "index/view/reduce.h"
#include "index/view/reduce_memo.h"

enum {
	MEMO_BYTES = 1024 * 1024,
	QUESTIONS = 500,
	CALLS_MOST = 8,
	ROOM_BYTES = 40 * 1024, /* of an arena, beyond what any of the calls here takes */
};

#define FIRST  STR("ebad_thing\0\"It is the first.\"")
#define SECOND STR("eother_thing\0\"It is the second.\"")

static void
the_first_failure_is_told(void **state)
{
	const struct view_reduce reduce = { .kind = VIEW_REDUCE_SUM };
	struct view_error error;
	struct reduce_acc acc;
	struct str result, value;

	(void)state;
	reduce_acc_init(&acc, &reduce, &work);
	assert_int_equal(reduce_acc_partial(&acc, STR("r1")), STATUS_OK);
	assert_int_equal(reduce_acc_partial(&acc, FIRST), STATUS_OK);
	assert_int_equal(reduce_acc_partial(&acc, SECOND), STATUS_OK);
	assert_int_equal(reduce_acc_result(&acc, &result), STATUS_OK);
	assert_true(str_eq(result, FIRST));
	assert_int_equal(reduce_finalize(&reduce, result, arena, &value, &error), STATUS_OK);
	assert_true(str_eq(value, STR("null")));
	assert_true(str_eq(error.name, STR("bad_thing")));
	assert_true(str_eq(error.reason, STR("\"It is the first.\"")));
	reduce_acc_release(&acc);
	/* A failure has a name and a reason. */
	assert_int_equal(reduce_finalize(&reduce, STR("ebad_thing"), arena, &value, &error),
			 STATUS_CORRUPT);
}

/* Returns nothing for any group, which is a failure. */
static enum status
answer_none(void *arg, const struct view_design *design, const struct str *names, size_t name_count,
	    bool rereduce, const struct view_group_input *groups, size_t group_count,
	    struct arena *results_arena, struct str *ret_results, struct view_error *ret_errors,
	    struct view_error *ret_error, struct err *err)
{
	(void)arg, (void)design, (void)names, (void)name_count, (void)rereduce, (void)groups,
		(void)group_count, (void)results_arena, (void)ret_results, (void)ret_errors,
		(void)ret_error, (void)err;
	return STATUS_OK;
}

/* Also where the function fails with the rows behind it. */
static void
a_failure_of_before_is_told_in_the_place_of_a_calls(void **state)
{
	static const struct view_functions functions = { .reduce = answer_none };
	const struct view_reduce reduce = { .kind = VIEW_REDUCE_FUNCTION, .name = STR("f") };
	struct view_error error = { 0 };
	struct err err = { 0 };
	const struct reduce_run run = {
		.functions = &functions, .w = &work, .error = &error, .err = &err
	};

	(void)state;
	for (int before = 0; before < 2; before++) {
		struct reduce_acc acc;
		struct str result;

		reduce_acc_init(&acc, &reduce, &work);
		if (before)
			assert_int_equal(reduce_acc_partial(&acc, FIRST), STATUS_OK);
		assert_int_equal(reduce_acc_row(&acc, STR("1"), STR("\"id\""), STR("2")),
				 STATUS_OK);
		assert_int_equal(reduce_run(&run, &acc, 1), STATUS_OK);
		assert_int_equal(reduce_acc_result(&acc, &result), STATUS_OK);
		assert_true(str_eq(result, before ? FIRST : STR("einvalid_value\0")));
		reduce_acc_release(&acc);
	}
}

static struct reduce_question
question(size_t i)
{
	return (struct reduce_question){ .name = STR("f"),
					 .rereduce = i % 2 != 0,
					 .keys = arena_printf(arena, "[%zu]", i),
					 .values = STR("[1]") };
}

static void
an_answer_is_that_of_its_question(void **state)
{
	struct reduce_question other = question(0);
	struct reduce_memo *memo;

	(void)state;
	assert_int_equal(reduce_memo_new(MEMO_BYTES, &memo), STATUS_OK);
	for (size_t i = 0; i < QUESTIONS; i++) {
		struct reduce_question q = question(i);

		assert_null(reduce_memo_find(memo, &q).ptr);
		assert_int_equal(reduce_memo_keep(memo, &q, arena_printf(arena, "r%zu", i)),
				 STATUS_OK);
	}
	for (size_t i = 0; i < QUESTIONS; i++) {
		struct reduce_question q = question(i);

		assert_true(str_eq(reduce_memo_find(memo, &q), arena_printf(arena, "r%zu", i)));
	}
	other.rereduce = !other.rereduce;
	assert_null(reduce_memo_find(memo, &other).ptr);
	other = question(0);
	reduce_memo_clear(memo);
	assert_null(reduce_memo_find(memo, &other).ptr);
	reduce_memo_free(memo);
}

/* As many questions as the call has, for each of its keys; of "[1]" alone nothing. */
static enum status
count_questions(void *arg, const struct view_design *design, const struct str *names,
		size_t name_count, bool rereduce, const struct view_group_input *groups,
		size_t group_count, struct arena *results_arena, struct str *ret_results,
		struct view_error *ret_errors, struct view_error *ret_error, struct err *err)
{
	(void)arg, (void)design, (void)names, (void)rereduce, (void)ret_errors, (void)ret_error,
		(void)err;
	assert_int_equal(name_count, 1);
	for (size_t i = 0; i < group_count; i++)
		if (!str_eq(groups[i].keys, STR("[1]")))
			ret_results[i] = arena_printf(results_arena, "[%zu,%.*s]", group_count,
						      STR_ARG(groups[i].keys));
	return STATUS_OK;
}

static void
questions_of_several_reduces_are_answered_by_a_call_each(void **state)
{
	static const struct view_functions functions = { .reduce = count_questions };
	const struct reduce_question questions[] = {
		{ .name = STR("f"), .keys = STR("[1]"), .values = STR("[]") },
		{ .name = STR("f"), .keys = STR("[2]"), .values = STR("[]") },
		{ .name = STR("g"), .keys = STR("[1]"), .values = STR("[]") },
		{ .name = STR("f"), .keys = STR("[3]"), .values = STR("[]") },
	};
	const struct str answers[] = { STR("einvalid_value\0"), STR("r[2,[2]]"),
				       STR("einvalid_value\0"), STR("r[1,[3]]") };
	struct view_error error = { 0 };
	struct reduce_asked asked;
	struct err err = { 0 };
	struct reduce_run run = {
		.functions = &functions, .asked = &asked, .w = &work, .error = &error, .err = &err
	};

	(void)state;
	assert_int_equal(reduce_memo_new(MEMO_BYTES, &run.memo), STATUS_OK);
	assert_int_equal(reduce_asked_init(&asked), STATUS_OK);
	for (size_t i = 0; i < COUNT(questions); i++)
		assert_int_equal(reduce_asked_add(&asked, &questions[i]), STATUS_OK);
	assert_int_equal(reduce_answer(&run), STATUS_OK);
	assert_int_equal(asked.count, 0);
	for (size_t i = 0; i < COUNT(questions); i++)
		assert_true(str_eq(reduce_memo_find(run.memo, &questions[i]), answers[i]));
	reduce_asked_release(&asked);
	reduce_memo_free(run.memo);
}

static void
answers_without_memory_are_none(void **state)
{
	enum status status = STATUS_NOMEM;

	(void)state;
	for (uint64_t nth = 1; status != STATUS_OK; nth++) {
		struct reduce_question q = question(1);
		struct reduce_memo *memo = NULL;

		mem_fail_after(nth);
		status = reduce_memo_new(MEMO_BYTES, &memo);
		if (status == STATUS_OK)
			status = reduce_memo_keep(memo, &q, STR("r1"));
		mem_fail_after(0);
		if (status == STATUS_OK)
			assert_non_null(reduce_memo_find(memo, &q).ptr);
		else
			assert_int_equal(status, STATUS_NOMEM);
		reduce_memo_free(memo);
		assert_true(nth < 20);
	}
}

/* Fills all that it is given, and takes no memory. */
static enum status
answer_all(void *arg, const struct view_design *design, const struct str *names, size_t name_count,
	   bool rereduce, const struct view_group_input *groups, size_t group_count,
	   struct arena *results_arena, struct str *ret_results, struct view_error *ret_errors,
	   struct view_error *ret_error, struct err *err)
{
	(void)arg, (void)design, (void)names, (void)name_count, (void)rereduce, (void)results_arena,
		(void)ret_error, (void)err;
	for (size_t i = 0; i < group_count; i++) {
		assert_true(groups[i].keys.len && groups[i].values.len);
		ret_results[i] = STR("7");
		ret_errors[i] = (struct view_error){ .name = STR("unused") };
	}
	return STATUS_OK;
}

static const struct view_functions answering = { .reduce = answer_all };

/* Rows of two reduces, which are called and called again with their answers. */
static enum status
run_two_reduces(struct index_work *w)
{
	static const struct view_reduce reduces[] = {
		{ .kind = VIEW_REDUCE_FUNCTION, .name = STR("f") },
		{ .kind = VIEW_REDUCE_FUNCTION, .name = STR("g") },
	};
	struct view_error error = { 0 };
	struct err err = { 0 };
	const struct reduce_run run = {
		.functions = &answering, .w = w, .error = &error, .err = &err
	};
	enum status status = STATUS_OK;
	struct reduce_acc accs[2];
	struct str result;

	for (size_t i = 0; i < COUNT(accs); i++) {
		reduce_acc_init(&accs[i], &reduces[i], w);
		for (unsigned n = 0; status == STATUS_OK && n < 3; n++)
			status = n == 1 ? reduce_acc_partial(&accs[i], STR("r5"))
					: reduce_acc_row(&accs[i], STR("1"), STR("\"id\""),
							 STR("2"));
	}
	if (status == STATUS_OK)
		status = reduce_run(&run, accs, COUNT(accs));
	for (size_t i = 0; i < COUNT(accs); i++) {
		if (status == STATUS_OK)
			status = reduce_acc_result(&accs[i], &result);
		if (status == STATUS_OK)
			assert_true(str_eq(result, STR("r7")));
		reduce_acc_release(&accs[i]);
	}
	return status;
}

/* Questions that an attempt has left, which one call answers. */
static enum status
answer_two_questions(struct index_work *w)
{
	const struct reduce_question questions[] = {
		{ .name = STR("f"), .keys = STR("[1]"), .values = STR("[]") },
		{ .name = STR("f"), .keys = STR("[2]"), .values = STR("[]") },
	};
	struct view_error error = { 0 };
	struct reduce_asked asked = { .count = 0 };
	struct err err = { 0 };
	struct reduce_run run = {
		.functions = &answering, .asked = &asked, .w = w, .error = &error, .err = &err
	};
	enum status status = reduce_asked_init(&asked);

	if (status == STATUS_OK)
		status = reduce_memo_new(MEMO_BYTES, &run.memo);
	for (size_t i = 0; status == STATUS_OK && i < COUNT(questions); i++)
		status = reduce_asked_add(&asked, &questions[i]);
	if (status == STATUS_OK)
		status = reduce_answer(&run);
	for (size_t i = 0; status == STATUS_OK && i < COUNT(questions); i++)
		assert_true(str_eq(reduce_memo_find(run.memo, &questions[i]), STR("r7")));
	reduce_asked_release(&asked);
	reduce_memo_free(run.memo);
	return status;
}

static enum status (*const calls_of_reduces[])(struct index_work *w) = { run_two_reduces,
									 answer_two_questions };

/* Wherever the arena's limit is, the call is made with all of its memory or not at all. */
static void
a_call_without_room_is_not_made(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(calls_of_reduces); i++) {
		enum status status = STATUS_LIMIT;

		for (size_t bytes = 0; bytes < ROOM_BYTES; bytes += ROOM_STEP) {
			struct index_work small = { .arena = arena_new(bytes) };

			status = calls_of_reduces[i](&small);
			assert_int_equal(status,
					 arena_is_full(small.arena) ? STATUS_LIMIT : STATUS_OK);
			arena_free(small.arena);
		}
		assert_int_equal(status, STATUS_OK);
	}
}

/* The same where the system has no memory once, and has some again for what is asked for next. */
static void
a_call_without_memory_is_not_made(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(calls_of_reduces); i++) {
		bool failed = true;

		for (uint64_t nth = 1; failed; nth++) {
			struct index_work own = { .arena = arena_new(TEST_ARENA_BYTES) };
			enum status status;

			arena_set_apart(true);
			(void)mem_fail_only(nth);
			status = calls_of_reduces[i](&own);
			failed = mem_fail_only(0) >= nth;
			arena_set_apart(false);
			arena_free(own.arena);
			if (status != STATUS_OK)
				assert_true(failed &&
					    (status == STATUS_NOMEM || status == STATUS_LIMIT));
		}
	}
}

/* ---- How much one call takes ---- */

/* The calls of functions: how many groups each had, and whether these were of answers. */
static struct {
	size_t groups[CALLS_MOST];
	bool rereduce[CALLS_MOST];
	size_t count;
} calls;

static enum status
note_call(void *arg, const struct view_design *design, const struct str *names, size_t name_count,
	  bool rereduce, const struct view_group_input *groups, size_t group_count,
	  struct arena *results_arena, struct str *ret_results, struct view_error *ret_errors,
	  struct view_error *ret_error, struct err *err)
{
	assert_true(calls.count < CALLS_MOST);
	calls.groups[calls.count] = group_count;
	calls.rereduce[calls.count++] = rereduce;
	return answer_all(arg, design, names, name_count, rereduce, groups, group_count,
			  results_arena, ret_results, ret_errors, ret_error, err);
}

static const struct view_functions noting = { .reduce = note_call };

static const struct view_reduce function = { .kind = VIEW_REDUCE_FUNCTION, .name = STR("f") };

/* A JSON text of so many bytes. */
static struct str
text_of(size_t bytes)
{
	char *text = arena_bytes(arena, bytes);

	assert_non_null(text);
	memset(text, '1', bytes);
	return str_of(text, bytes);
}

/* Calls the function with these accumulators, which have rows. */
static void
run_all(struct reduce_acc *accs, size_t count)
{
	struct view_error error = { 0 };
	struct err err = { 0 };
	const struct reduce_run run = {
		.functions = &noting, .w = &work, .error = &error, .err = &err
	};

	calls.count = 0;
	assert_int_equal(reduce_run(&run, accs, count), STATUS_OK);
	for (size_t i = 0; i < count; i++)
		reduce_acc_release(&accs[i]);
}

static void
calls_are(const size_t *first, size_t count, bool rereduced)
{
	assert_int_equal(calls.count, count + rereduced);
	for (size_t i = 0; i < count; i++) {
		assert_int_equal(calls.groups[i], first[i]);
		assert_false(calls.rereduce[i]);
	}
	if (rereduced)
		assert_true(calls.rereduce[count]);
}

/* Each answer has a byte more than the one before it. */
static enum status
answer_long(void *arg, const struct view_design *design, const struct str *names, size_t name_count,
	    bool rereduce, const struct view_group_input *groups, size_t group_count,
	    struct arena *results_arena, struct str *ret_results, struct view_error *ret_errors,
	    struct view_error *ret_error, struct err *err)
{
	(void)arg, (void)design, (void)names, (void)name_count, (void)rereduce, (void)groups,
		(void)results_arena, (void)ret_errors, (void)ret_error, (void)err;
	assert_int_equal(group_count, 1);
	ret_results[0] = text_of(VIEW_PARTIAL_BYTES - 1 + calls.count++);
	return STATUS_OK;
}

/* A partial begins with a byte for its kind. */
static void
an_answer_has_so_many_bytes(void **state)
{
	static const struct view_functions longer = { .reduce = answer_long };
	struct view_error error = { 0 };
	struct err err = { 0 };
	const struct reduce_run run = {
		.functions = &longer, .w = &work, .error = &error, .err = &err
	};

	(void)state;
	calls.count = 0;
	for (size_t more = 0; more < 2; more++) {
		struct reduce_acc acc;
		struct str partial;

		reduce_acc_init(&acc, &function, &work);
		assert_int_equal(reduce_acc_row(&acc, STR("1"), STR("id"), STR("2")), STATUS_OK);
		assert_int_equal(reduce_run(&run, &acc, 1), STATUS_OK);
		assert_int_equal(reduce_acc_result(&acc, &partial), STATUS_OK);
		if (!more)
			assert_int_equal(partial.len, VIEW_PARTIAL_BYTES);
		else
			assert_true(str_starts_with(partial, STR("ereduce_overflow_error")));
		reduce_acc_release(&acc);
	}
}

/* More rows are in another group, and what comes out of the groups is reduced once more. */
static void
a_group_of_rows_has_so_many_of_them(void **state)
{
	(void)state;
	for (size_t more = 0; more < 2; more++) {
		struct reduce_acc acc;

		reduce_acc_init(&acc, &function, &work);
		for (size_t i = 0; i < REDUCE_RUN_ROWS + more; i++)
			assert_int_equal(reduce_acc_row(&acc, STR("1"), STR("id"), STR("2")),
					 STATUS_OK);
		run_all(&acc, 1);
		calls_are((const size_t[]){ 1 + more }, 1, more);
	}
}

/* The row that passes the limit is the last one of its group. */
static void
a_group_of_rows_has_so_many_bytes(void **state)
{
	/* "[[1,"id"]" and "[". */
	const size_t most = REDUCE_RUN_BYTES - 10;

	(void)state;
	for (size_t more = 0; more < 2; more++) {
		struct reduce_acc acc;

		reduce_acc_init(&acc, &function, &work);
		assert_int_equal(reduce_acc_row(&acc, STR("1"), STR("id"), text_of(most + more)),
				 STATUS_OK);
		assert_int_equal(acc.segments[0].keys.len + acc.segments[0].values.len,
				 REDUCE_RUN_BYTES + more);
		assert_int_equal(reduce_acc_row(&acc, STR("1"), STR("id"), STR("2")), STATUS_OK);
		assert_int_equal(acc.segment_count, 1 + more);
		reduce_acc_release(&acc);
	}
}

static void
a_call_has_so_many_groups(void **state)
{
	struct reduce_acc *accs = arena_alloc(arena, (REDUCE_CALL_GROUPS + 1) * sizeof(*accs));

	(void)state;
	assert_non_null(accs);
	for (size_t more = 0; more < 2; more++) {
		for (size_t i = 0; i < REDUCE_CALL_GROUPS + more; i++) {
			reduce_acc_init(&accs[i], &function, &work);
			assert_int_equal(reduce_acc_row(&accs[i], STR("1"), STR("id"), STR("2")),
					 STATUS_OK);
		}
		run_all(accs, REDUCE_CALL_GROUPS + more);
		calls_are((const size_t[]){ REDUCE_CALL_GROUPS, 1 }, 1 + more, false);
	}
}

/* The group that passes the limit is the last one of its call. */
static void
a_call_has_so_many_bytes(void **state)
{
	/* "[[1,"id"]]" and "[]". */
	const size_t most = REDUCE_RUN_BYTES - 12;

	(void)state;
	for (size_t more = 0; more < 2; more++) {
		struct reduce_acc accs[2];

		for (size_t i = 0; i < COUNT(accs); i++) {
			reduce_acc_init(&accs[i], &function, &work);
			assert_int_equal(reduce_acc_row(&accs[i], STR("1"), STR("id"),
							i ? STR("2") : text_of(most + more)),
					 STATUS_OK);
		}
		run_all(accs, COUNT(accs));
		if (more)
			calls_are((const size_t[]){ 1, 1 }, 2, false);
		else
			calls_are((const size_t[]){ 2 }, 1, false);
	}
}

/* Questions of an attempt, which are all of one reduce: so many are answered by a call. */
static void
answer_questions(const struct reduce_question *questions, size_t count)
{
	struct view_error error = { 0 };
	struct reduce_asked asked;
	struct err err = { 0 };
	struct reduce_run run = {
		.functions = &noting, .asked = &asked, .w = &work, .error = &error, .err = &err
	};

	calls.count = 0;
	assert_int_equal(reduce_memo_new(MEMO_BYTES, &run.memo), STATUS_OK);
	assert_int_equal(reduce_asked_init(&asked), STATUS_OK);
	for (size_t i = 0; i < count; i++)
		assert_int_equal(reduce_asked_add(&asked, &questions[i]), STATUS_OK);
	assert_int_equal(reduce_answer(&run), STATUS_OK);
	for (size_t i = 0; i < count; i++)
		assert_true(str_eq(reduce_memo_find(run.memo, &questions[i]), STR("r7")));
	reduce_asked_release(&asked);
	reduce_memo_free(run.memo);
}

static void
so_many_questions_are_answered_by_a_call(void **state)
{
	struct reduce_question *questions = arena_zalloc(arena, (REDUCE_CALL_GROUPS + 1) *
									sizeof(*questions));

	(void)state;
	assert_non_null(questions);
	for (size_t i = 0; i <= REDUCE_CALL_GROUPS; i++)
		questions[i] = (struct reduce_question){ .name = STR("f"),
							 .keys = arena_printf(arena, "[%zu]", i),
							 .values = STR("[1]") };
	answer_questions(questions, REDUCE_CALL_GROUPS);
	calls_are((const size_t[]){ REDUCE_CALL_GROUPS }, 1, false);
	answer_questions(questions, REDUCE_CALL_GROUPS + 1);
	calls_are((const size_t[]){ REDUCE_CALL_GROUPS, 1 }, 2, false);
	/* The one that passes the limit of bytes is the last one of its call. */
	questions[0].values = text_of(REDUCE_RUN_BYTES - questions[0].keys.len);
	answer_questions(questions, 2);
	calls_are((const size_t[]){ 2 }, 1, false);
	questions[0].values = text_of(REDUCE_RUN_BYTES - questions[0].keys.len + 1);
	answer_questions(questions, 2);
	calls_are((const size_t[]){ 1, 1 }, 2, false);
}

static void
so_many_questions_are_taken(void **state)
{
	struct reduce_question q = { .name = STR("f"), .keys = STR("1"), .values = STR("2") };
	struct reduce_asked asked;

	(void)state;
	assert_int_equal(reduce_asked_init(&asked), STATUS_OK);
	for (size_t i = 0; i < REDUCE_ASKED_MOST + 2; i++)
		assert_int_equal(reduce_asked_add(&asked, &q), STATUS_OK);
	assert_int_equal(asked.count, REDUCE_ASKED_MOST);
	reduce_asked_clear(&asked);
	assert_int_equal(asked.count, 0);
	/* The one that passes the limit of bytes is the last one. */
	q.values = text_of(REDUCE_ASKED_BYTES / 2 - q.keys.len);
	for (size_t i = 0; i < 5; i++)
		assert_int_equal(reduce_asked_add(&asked, &q), STATUS_OK);
	assert_int_equal(asked.count, 3);
	reduce_asked_release(&asked);
}

static void
a_rank_is_a_number_up_to_its_limit(void **state)
{
	static const struct {
		const char *source;
		unsigned n; /* 0: it is refused */
	} cases[] = {
		{ "_top_1", 1 },          { "_top_100", 100 }, { "_bottom_+007", 7 },
		{ "_top_0", 0 },          { "_top_101", 0 },   { "_top_-1", 0 },
		{ "_top_", 0 },           { "_top_+", 0 },     { "_bottom_1x", 0 },
		{ "_top_4294967297", 0 },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct view_reduce reduce = { .n = 0 };
		struct err err = { 0 };
		enum status status = view_reduce_parse(str_from_cstr(cases[i].source), &reduce,
						       &err);

		if (status != (cases[i].n ? STATUS_OK : STATUS_INVALID) ||
		    (cases[i].n && reduce.n != cases[i].n))
			fail_msg("%s: %s, %u", cases[i].source, status_name(status), reduce.n);
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_first_failure_is_told),
		TEST(a_failure_of_before_is_told_in_the_place_of_a_calls),
		TEST(an_answer_is_that_of_its_question),
		TEST(questions_of_several_reduces_are_answered_by_a_call_each),
		TEST(answers_without_memory_are_none),
		TEST(a_call_without_room_is_not_made),
		TEST(a_call_without_memory_is_not_made),
		TEST(an_answer_has_so_many_bytes),
		TEST(a_group_of_rows_has_so_many_of_them),
		TEST(a_group_of_rows_has_so_many_bytes),
		TEST(a_call_has_so_many_groups),
		TEST(a_call_has_so_many_bytes),
		TEST(so_many_questions_are_answered_by_a_call),
		TEST(so_many_questions_are_taken),
		TEST(a_rank_is_a_number_up_to_its_limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
