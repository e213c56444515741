/*
 * Values as _sum adds them: what a list of them adds up to, or which of them is to blame; and what
 * _stats makes of them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/arena_apart.h"
#include "base/mem.h"
#include "index/view/record.h"
#include "index/view/reduce.h"
#include "index/view/sum.h"

enum {
	ARENA_BYTES = 1024 * 1024,
	VALUES_MOST = 4,
};

#define DIGITS_37 "9999999999999999999999999999999999999"

/* Overwrites what calls before have left behind on the stack. */
static void __attribute__((noinline)) stack_overwrite(void)
{
	volatile char bytes[4096];

	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (char)0xee;
}

struct sum_case {
	const char *values[VALUES_MOST];
	const char *sum;   /* NULL: they cannot be added */
	const char *cause; /* then: this one is to blame */
};

static void
sum_is(struct arena *arena, const struct sum_case *c)
{
	AUTO(buf_release) struct buf out = BUF_INIT(ARENA_BYTES);
	const struct sum_value *cause = NULL;
	struct sum_value acc = { .kind = SUM_NOTHING }, value;

	for (size_t i = 0; i < VALUES_MOST && c->values[i] && !cause; i++) {
		assert_int_equal(sum_value_read(str_from_cstr(c->values[i]), arena, &value),
				 STATUS_OK);
		assert_int_equal(sum_value_add(&acc, &value, arena, &cause), STATUS_OK);
	}
	stack_overwrite();
	assert_int_equal(cause != NULL, c->cause != NULL);
	if (cause)
		buf_append_str(&out, cause->text);
	else
		sum_value_write(&acc, &out);
	buf_append_byte(&out, '\0');
	assert_int_equal(buf_status(&out), STATUS_OK);
	assert_string_equal(out.ptr, c->cause ? c->cause : c->sum);
}

static void
values_are_added_or_one_is_to_blame(void **state)
{
	static const struct sum_case cases[] = {
		{ { NULL }, "0", NULL },
		{ { "1", "-2", "30" }, "29", NULL },
		{ { "1", "0.5" }, "1.5", NULL },
		{ { DIGITS_37, "1" }, "10000000000000000000000000000000000000", NULL },
		{ { "-" DIGITS_37 "9", "1" }, "-1e+38", NULL }, /* one digit more */
		{ { "1", "[1]" }, "[2]", NULL },
		{ { "[1]", "1" }, "[2]", NULL },
		{ { "[1]", "[2,3]", "[4,5,6]" }, "[7,8,6]", NULL },
		{ { "[]" }, "[0]", NULL },
		{ { "[1,\"a\"]" }, "[1,\"a\"]", NULL }, /* taken as it is */
		{ { "[1,\"a\"]", "[2,3]" }, NULL, "[2,3]" },
		{ { "[1,\"a\"]", "2" }, "[3,\"a\"]", NULL },
		{ { "[\"a\"]" }, NULL, "[\"a\"]" },
		{ { "1", "[[1]]" }, NULL, "[[1]]" },
		{ { "\"a\"" }, NULL, "\"a\"" },
		{ { "1", "true" }, NULL, "true" },
		{ { "{\"a\":1}", "{\"b\":2}" }, "{\"a\":1,\"b\":2}", NULL },
		{ { "{\"b\":1}", "{\"a\":2,\"b\":3}" }, "{\"a\":2,\"b\":4}", NULL },
		{ { "{\"a\":1,\"a\":5}", "{}" }, "{\"a\":5}", NULL },
		{ { "{\"a\":{\"b\":[1]}}", "{\"a\":{\"b\":2}}" }, "{\"a\":{\"b\":[3]}}", NULL },
		{ { "{\"a\":1}", "{\"a\":[\"x\"]}" }, NULL, "[\"x\"]" },
		{ { "{\"a\":1}", "2" }, NULL, "2" },
		{ { "2", "{\"a\":1}" }, NULL, "{\"a\":1}" },
		{ { "{\"a\":\"x\"}" }, "{\"a\":\"x\"}", NULL },
		{ { "{\"a\":\"x\"}", "{\"a\":1}" }, NULL, "1" },
	};
	struct arena *arena = arena_new(ARENA_BYTES);

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		sum_is(arena, &cases[i]);
	arena_free(arena);
}

/* Arrays inside each other, the innermost of which is added or taken for a text. */
static void
containers_are_added_down_to_a_depth(void **state)
{
	static const char *const brackets[][2] = { { "[", "]" }, { "{\"a\":", "}" } };

	(void)state;
	for (size_t kind = 0; kind < 2; kind++) {
		for (size_t more = 0; more < 2; more++) {
			AUTO(buf_release) struct buf text = BUF_INIT(ARENA_BYTES);
			struct arena *arena = arena_new(ARENA_BYTES);
			const struct sum_value *inner;
			struct sum_value value;

			for (size_t i = 0; i < SUM_DEPTH + more; i++)
				buf_append_cstr(&text, brackets[kind][0]);
			buf_append_byte(&text, '1');
			for (size_t i = 0; i < SUM_DEPTH + more; i++)
				buf_append_cstr(&text, brackets[kind][1]);
			assert_int_equal(sum_value_read(buf_str(&text), arena, &value), STATUS_OK);
			inner = &value;
			for (size_t i = 0; i < SUM_DEPTH; i++)
				inner = &inner->items[0];
			assert_int_equal(inner->kind, more ? SUM_OTHER : SUM_NUMBER);
			arena_free(arena);
		}
	}
}

/* The read that has brought a row goes on, and its memory has something else then. */
static void
what_is_kept_of_a_row_outlives_its_memory(void **state)
{
	static const char *const values[] = { "[1,\"a\"]", "{\"a\":\"x\"}", "-7" };
	const struct view_reduce reduce = { .kind = VIEW_REDUCE_SUM };

	(void)state;
	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		struct arena *arena = arena_new(ARENA_BYTES);
		struct index_work work = { .arena = arena };
		struct str kept = str_from_cstr(values[i]);
		struct reduce_acc acc;
		struct str partial;
		char row[64];

		assert_true(kept.len < sizeof(row));
		memcpy(row, kept.ptr, kept.len);
		reduce_acc_init(&acc, &reduce, &work);
		assert_int_equal(reduce_acc_row(&acc, STR("1"), STR("id"), str_of(row, kept.len)),
				 STATUS_OK);
		memset(row, '0', sizeof(row));
		assert_int_equal(reduce_acc_result(&acc, &partial), STATUS_OK);
		assert_int_equal(partial.ptr[0], 'r');
		if (!str_eq(str_skip(partial, 1), kept))
			fail_msg("%.*s, not %s", STR_ARG(partial), values[i]);
		reduce_acc_release(&acc);
		arena_free(arena);
	}
}

/* Of numbers nothing is kept, however they begin: a view may have millions of rows. */
static void
a_number_leaves_nothing_in_memory(void **state)
{
	static const enum view_reducer kinds[] = { VIEW_REDUCE_SUM, VIEW_REDUCE_STATS };

	(void)state;
	for (size_t kind = 0; kind < sizeof(kinds) / sizeof(kinds[0]); kind++) {
		const struct view_reduce reduce = { .kind = kinds[kind] };
		struct arena *arena = arena_new(ARENA_BYTES);
		struct index_work work = { .arena = arena };
		struct reduce_acc acc;

		reduce_acc_init(&acc, &reduce, &work);
		for (const char *first = "0123456789-"; *first; first++) {
			char text[] = "x1";

			text[0] = *first;
			assert_int_equal(reduce_acc_row(&acc, STR("1"), STR("id"),
							str_of(text, *first == '0' ? 1 : 2)),
					 STATUS_OK);
			assert_int_equal(arena_used_bytes(arena), 0);
		}
		assert_int_equal(reduce_acc_row(&acc, STR("1"), STR("id"), STR("[1]")), STATUS_OK);
		assert_true(arena_used_bytes(arena) > 0);
		reduce_acc_release(&acc);
		arena_free(arena);
	}
}

static enum status
add_two(struct arena *arena, struct sum_value *acc)
{
	static const char *const values[] = { "{\"a\":1,\"b\":[1]}", "{\"b\":[1,2],\"c\":3}" };
	const struct sum_value *cause = NULL;
	struct sum_value value;

	for (size_t i = 0; i < 2; i++) {
		TRY(sum_value_read(str_from_cstr(values[i]), arena, &value));
		TRY(sum_value_add(acc, &value, arena, &cause));
	}
	return STATUS_OK;
}

static void
is_sum_of_two(const struct sum_value *acc)
{
	AUTO(buf_release) struct buf out = BUF_INIT(ARENA_BYTES);

	sum_value_write(acc, &out);
	assert_true(str_eq(buf_str(&out), STR("{\"a\":1,\"b\":[2,2],\"c\":3}")));
}

/* With an arena of each size, up to one that is enough. */
static void
a_sum_that_has_no_room_is_none(void **state)
{
	bool enough = false;

	(void)state;
	for (size_t bytes = 0; !enough; bytes += 8) {
		struct sum_value acc = { .kind = SUM_NOTHING };
		struct arena *arena = arena_new(bytes);
		enum status status = add_two(arena, &acc);

		enough = !arena_is_full(arena);
		assert_int_equal(status, enough ? STATUS_OK : STATUS_LIMIT);
		if (enough)
			is_sum_of_two(&acc);
		arena_free(arena);
	}
}

/* Each allocation fails once, and those behind it do not. */
static void
a_sum_without_memory_is_none(void **state)
{
	bool failed = true;

	(void)state;
	for (uint64_t nth = 1; failed; nth++) {
		struct sum_value acc = { .kind = SUM_NOTHING };
		struct arena *arena = arena_new(ARENA_BYTES);
		enum status status;

		arena_set_apart(true);
		(void)mem_fail_only(nth);
		status = add_two(arena, &acc);
		failed = mem_fail_only(0) >= nth;
		arena_set_apart(false);
		if (status == STATUS_OK)
			is_sum_of_two(&acc);
		else
			assert_true(failed && (status == STATUS_NOMEM || status == STATUS_LIMIT));
		arena_free(arena);
	}
}

/* What is longer than half of what is kept of a sum is not told. */
static void
what_is_to_blame_is_told_unless_it_is_long(void **state)
{
	const struct view_reduce reduce = { .kind = VIEW_REDUCE_SUM };
	static char text[VIEW_PARTIAL_BYTES / 2 + 1];

	(void)state;
	memset(text, 'a', sizeof(text));
	text[0] = '"';
	for (size_t len = sizeof(text) - 2; len < sizeof(text); len++) {
		struct arena *arena = arena_new(ARENA_BYTES);
		struct index_work work = { .arena = arena };
		struct reduce_acc acc;
		struct str result, cause = str_of(text, len), end;

		text[len - 1] = '"';
		reduce_acc_init(&acc, &reduce, &work);
		assert_int_equal(reduce_acc_row(&acc, STR("1"), STR("id"), cause), STATUS_OK);
		assert_int_equal(reduce_acc_result(&acc, &result), STATUS_OK);
		end = len < VIEW_PARTIAL_BYTES / 2 ? cause : STR("null");
		assert_true(result.len > end.len);
		assert_true(str_eq(str_of(result.ptr + result.len - 1 - end.len, end.len), end));
		reduce_acc_release(&acc);
		arena_free(arena);
		text[len - 1] = 'a';
	}
}

/* What _stats makes of rows with these values; the text of an error behind its name. */
static void
stats_are(struct arena *arena, const char *const values[VALUES_MOST], const char *expected)
{
	const struct view_reduce reduce = { .kind = VIEW_REDUCE_STATS };
	struct index_work work = { .arena = arena };
	struct reduce_acc acc;
	struct str partial;

	reduce_acc_init(&acc, &reduce, &work);
	for (size_t i = 0; i < VALUES_MOST && values[i]; i++)
		assert_int_equal(
			reduce_acc_row(&acc, STR("1"), STR("id"), str_from_cstr(values[i])),
			STATUS_OK);
	assert_int_equal(reduce_acc_result(&acc, &partial), STATUS_OK);
	if (!str_eq(partial, str_from_cstr(expected)))
		fail_msg("%.*s, not %s", STR_ARG(partial), expected);
	reduce_acc_release(&acc);
}

#define STATS_OF(sum, count, min, max, sumsqr)                                                     \
	"{\"sum\":" #sum ",\"count\":" #count ",\"min\":" #min ",\"max\":" #max                    \
	",\"sumsqr\":" #sumsqr "}"

static void
statistics_are_of_numbers_side_by_side(void **state)
{
	struct arena *arena = arena_new(ARENA_BYTES);

	(void)state;
	stats_are(arena, (const char *const[VALUES_MOST]){ "3", "-1", "2" },
		  "r" STATS_OF(4, 3, -1, 3, 14));
	stats_are(arena, (const char *const[VALUES_MOST]){ "[1,2]", "[3,5]" },
		  "r[" STATS_OF(4, 2, 1, 3, 10) "," STATS_OF(7, 2, 2, 5, 29) "]");
	stats_are(arena, (const char *const[VALUES_MOST]){ "[[1],[]]", "[[2],[]]" },
		  "r[[" STATS_OF(3, 2, 1, 2, 5) "],[]]");
	stats_are(arena, (const char *const[VALUES_MOST]){ "[]" }, "r[]");
	stats_are(arena,
		  (const char *const[VALUES_MOST]){ STATS_OF(4, 2, 1, 3, 10),
						    STATS_OF(5, 1, 5, 5, 25) },
		  "r" STATS_OF(9, 3, 1, 5, 35));
	arena_free(arena);
}

/* Integers are not compared as doubles, which cannot tell these two apart. */
static void
the_least_and_most_of_large_integers_and_of_doubles_are_found(void **state)
{
	struct arena *arena = arena_new(ARENA_BYTES);

	(void)state;
	stats_are(arena, (const char *const[VALUES_MOST]){ "9007199254740993", "9007199254740992" },
		  "r" STATS_OF(18014398509481985, 2, 9007199254740992, 9007199254740993,
			       162259276829213381405976519770113));
	stats_are(arena, (const char *const[VALUES_MOST]){ "0", "2.5", "1", "-0.5" },
		  "r" STATS_OF(3.0, 4, -0.5, 2.5, 7.5));
	arena_free(arena);
}

#define STATS_REASON                                                                               \
	"\"The _stats function requires that map values be numbers or arrays of numbers, "         \
	"not '%s'\""

/* The first one that has none is named, whatever comes behind it. */
static void
values_without_statistics_are_named(void **state)
{
	static const struct {
		const char *values[VALUES_MOST];
		const char *named;
	} cases[] = {
		{ { "\"a\"", "true", "1" }, "\\\"a\\\"" },
		{ { "1", "[1]", "null" }, "[1]" },
		{ { "1", "null" }, "null" },
		{ { "1", "[]" }, "[]" },
		{ { "[]", "1" }, "1" },
		{ { "{\"sum\":1}" }, "{\\\"sum\\\":1}" },
	};
	const struct view_reduce reduce = { .kind = VIEW_REDUCE_STATS };
	struct arena *arena = arena_new(ARENA_BYTES);
	struct index_work work = { .arena = arena };

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct str reason = arena_printf(arena, STATS_REASON, cases[i].named);
		struct str partial, value;
		struct view_error error;
		struct reduce_acc acc;

		reduce_acc_init(&acc, &reduce, &work);
		for (size_t k = 0; k < VALUES_MOST && cases[i].values[k]; k++)
			assert_int_equal(reduce_acc_row(&acc, STR("1"), STR("id"),
							str_from_cstr(cases[i].values[k])),
					 STATUS_OK);
		assert_int_equal(reduce_acc_result(&acc, &partial), STATUS_OK);
		assert_int_equal(reduce_finalize(&reduce, partial, arena, &value, &error),
				 STATUS_OK);
		assert_true(str_eq(error.name, STR("invalid_value")));
		if (!str_eq(error.reason, reason))
			fail_msg("%.*s, not %.*s", STR_ARG(error.reason), STR_ARG(reason));
		reduce_acc_release(&acc);
	}
	arena_free(arena);
}

/* A reason may have half of what is kept of a result. */
static void
a_reason_is_told_up_to_its_limit(void **state)
{
	enum {
		PAIRS = 2010, /* of backslashes, each of which the reason has twice */
		MOST = VIEW_PARTIAL_BYTES / 2,
	};
	const struct view_reduce reduce = { .kind = VIEW_REDUCE_STATS };
	/* The quotes of the text are escaped, too. */
	const size_t around = strlen(STATS_REASON) - strlen("%s") + 4 * PAIRS + 4;

	(void)state;
	for (size_t len = MOST - 2; len <= MOST + 2; len++) {
		struct arena *arena = arena_new(ARENA_BYTES);
		struct index_work work = { .arena = arena };
		const size_t letters = len - around, bytes = 2 + 2 * PAIRS + letters;
		char *text = arena_bytes(arena, bytes);
		struct str partial, value;
		struct view_error error;
		struct reduce_acc acc;

		memset(text, '\\', bytes);
		memset(text + 1 + 2 * PAIRS, 'x', letters);
		text[0] = text[bytes - 1] = '"';
		reduce_acc_init(&acc, &reduce, &work);
		assert_int_equal(reduce_acc_row(&acc, STR("1"), STR("id"), str_of(text, bytes)),
				 STATUS_OK);
		assert_int_equal(reduce_acc_result(&acc, &partial), STATUS_OK);
		assert_int_equal(reduce_finalize(&reduce, partial, arena, &value, &error),
				 STATUS_OK);
		if (len <= MOST)
			assert_int_equal(error.reason.len, len);
		else
			assert_true(str_eq(error.reason, STR("\"The reason is too long.\"")));
		reduce_acc_release(&acc);
		arena_free(arena);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(values_are_added_or_one_is_to_blame),
		cmocka_unit_test(what_is_kept_of_a_row_outlives_its_memory),
		cmocka_unit_test(containers_are_added_down_to_a_depth),
		cmocka_unit_test(a_number_leaves_nothing_in_memory),
		cmocka_unit_test(a_sum_that_has_no_room_is_none),
		cmocka_unit_test(a_sum_without_memory_is_none),
		cmocka_unit_test(what_is_to_blame_is_told_unless_it_is_long),
		cmocka_unit_test(statistics_are_of_numbers_side_by_side),
		cmocka_unit_test(the_least_and_most_of_large_integers_and_of_doubles_are_found),
		cmocka_unit_test(values_without_statistics_are_named),
		cmocka_unit_test(a_reason_is_told_up_to_its_limit),
	};

	return cmocka_run_group_tests_name("sum", tests, NULL, NULL);
}
