/*
 * The reduces that need no function: whatever rows come as partial results of others, the result is
 * that of all rows, which a few lines here compute; and what cannot be reduced is told.
 */
#include "common.h"

#include "base/arena_apart.h"
#include "index/view/record.h"
#include "index/view/reduce.h"

enum {
	ROUNDS = 60,
	ROWS_MOST = 40,
	VALUES = 30, /* as many different ones */
	TOP_N = 5,
	SPARSE_BYTES = 3,
	DENSE_FROM = 682, /* registers, from which on all of them take less */
	FAR_OFF = 10,     /* per cent that an estimate may be wrong by: four times its deviation */
};

static struct rand_seq seq;
static int64_t values[ROWS_MOST];

static struct str
number(int64_t n)
{
	return arena_printf(arena, "%lld", (long long)n);
}

static void
take(struct reduce_acc *acc, int64_t value)
{
	assert_int_equal(reduce_acc_row(acc, number(value), STR("id"), number(value)), STATUS_OK);
}

/* Of the rows from `begin` to `end`, some of which come as partial results of their own. */
static struct str
reduced(const struct view_reduce *reduce, size_t begin, size_t end)
{
	struct reduce_acc acc;
	struct str ret;

	reduce_acc_init(&acc, reduce, &work);
	for (size_t i = begin; i < end;) {
		size_t rows = rand_seq_below(&seq, end - i + 1);

		if (rows < end - begin && rand_seq_below(&seq, 2)) {
			struct str partial = reduced(reduce, i, i + rows);

			assert_int_equal(reduce_acc_partial(&acc, partial), STATUS_OK);
			i += rows;
		} else {
			take(&acc, values[i++]);
		}
	}
	assert_int_equal(reduce_acc_result(&acc, &ret), STATUS_OK);
	reduce_acc_release(&acc);
	return ret;
}

static struct str
sum_of(size_t count)
{
	int64_t sum = 0;

	for (size_t i = 0; i < count; i++)
		sum += values[i];
	return number(sum);
}

static struct str
stats_of(size_t count)
{
	int64_t sum = 0, min = values[0], max = values[0], squares = 0;

	for (size_t i = 0; i < count; i++) {
		sum += values[i];
		min = values[i] < min ? values[i] : min;
		max = values[i] > max ? values[i] : max;
		squares += values[i] * values[i];
	}
	return arena_printf(arena,
			    "{\"sum\":%lld,\"count\":%zu,\"min\":%lld,\"max\":%lld,"
			    "\"sumsqr\":%lld}",
			    (long long)sum, count, (long long)min, (long long)max,
			    (long long)squares);
}

/* Each value once, from the least on or from the greatest, as many as are wanted. */
static struct str
best_of(size_t count, int sign)
{
	AUTO(buf_release) struct buf text = BUF_INIT(VIEW_PARTIAL_BYTES);
	int n = 0;

	buf_append_byte(&text, '[');
	for (int at = -VALUES; at <= VALUES && n < TOP_N; at++)
		for (size_t i = 0; i < count; i++)
			if (values[i] == (int64_t)at * sign) {
				if (n++)
					buf_append_byte(&text, ',');
				buf_append_str(&text, number(values[i]));
				break;
			}
	buf_append_byte(&text, ']');
	return buf_dup(&text, arena);
}

static struct str
expected(const struct view_reduce *reduce, size_t count)
{
	switch (reduce->kind) {
	case VIEW_REDUCE_SUM:
		return sum_of(count);
	case VIEW_REDUCE_COUNT:
		return number((int64_t)count);
	case VIEW_REDUCE_STATS:
		return stats_of(count);
	case VIEW_REDUCE_FIRST:
		return number(values[0]);
	case VIEW_REDUCE_LAST:
		return number(values[count - 1]);
	case VIEW_REDUCE_TOP:
		return best_of(count, -1);
	case VIEW_REDUCE_BOTTOM:
		return best_of(count, 1);
	case VIEW_REDUCE_FUNCTION:
	case VIEW_REDUCE_DISTINCT:
		fail();
	}
	return (struct str){ 0 };
}

static void
results_do_not_depend_on_how_rows_come_together(void **state)
{
	static const enum view_reducer kinds[] = {
		VIEW_REDUCE_SUM,  VIEW_REDUCE_COUNT, VIEW_REDUCE_STATS,  VIEW_REDUCE_FIRST,
		VIEW_REDUCE_LAST, VIEW_REDUCE_TOP,   VIEW_REDUCE_BOTTOM,
	};

	(void)state;
	seq.state = 7;
	for (size_t i = 0; i < ROUNDS * COUNT(kinds); i++) {
		const struct view_reduce reduce = { .kind = kinds[i % COUNT(kinds)], .n = TOP_N };
		size_t count = 1 + rand_seq_below(&seq, ROWS_MOST);
		struct view_error error;
		struct str partial, value;

		for (size_t j = 0; j < count; j++)
			values[j] = (int64_t)rand_seq_below(&seq, 2 * VALUES + 1) - VALUES;
		partial = reduced(&reduce, 0, count);
		assert_true(partial.len && partial.ptr[0] == 'r');
		assert_int_equal(reduce_finalize(&reduce, partial, arena, &value, &error),
				 STATUS_OK);
		assert_int_equal(error.name.len, 0);
		if (!str_eq(value, expected(&reduce, count)))
			fail_msg("kind %d of %zu: %.*s, not %.*s", (int)reduce.kind, count,
				 STR_ARG(value), STR_ARG(expected(&reduce, count)));
		assert_int_equal(reduced(&reduce, 0, 0).len, 0);
	}
	assert_int_equal(work.steps > ROUNDS, 1);
}

/* ---- _approx_count_distinct ---- */

static const struct view_reduce distinct = { .kind = VIEW_REDUCE_DISTINCT };

/* The accumulator has its registers already, so nothing is kept of a key. */
static void
take_keys(struct reduce_acc *acc, int64_t begin, int64_t end)
{
	for (int64_t i = begin; i < end; i++) {
		struct arena_mark mark = arena_mark(arena);

		assert_int_equal(reduce_acc_row(acc, number(i), STR("id"), STR("null")), STATUS_OK);
		arena_reset(arena, mark);
	}
}

static struct str
distinct_partial(int64_t begin, int64_t end)
{
	struct reduce_acc acc;
	struct str ret;

	reduce_acc_init(&acc, &distinct, &work);
	acc.registers = arena_zalloc(arena, REDUCE_REGISTERS);
	assert_non_null(acc.registers);
	take_keys(&acc, begin, end);
	assert_int_equal(reduce_acc_result(&acc, &ret), STATUS_OK);
	return ret;
}

static long long
estimate_of(struct str partial)
{
	struct view_error error;
	struct str value;

	assert_int_equal(reduce_finalize(&distinct, partial, arena, &value, &error), STATUS_OK);
	assert_int_equal(error.name.len, 0);
	return atoll(arena_printf(arena, "%.*s", STR_ARG(value)).ptr);
}

static void
different_keys_are_counted_about(void **state)
{
	static const int64_t counts[] = { 1, 2, 50, 600, 1000, 2000, 5000, 8000, 20000, 100000 };

	(void)state;
	for (size_t i = 0; i < COUNT(counts); i++) {
		struct str partial = distinct_partial(0, counts[i]);
		long long got = estimate_of(partial);

		if (llabs(got - counts[i]) > counts[i] * FAR_OFF / 100)
			fail_msg("%lld keys are %lld", (long long)counts[i], got);
		/* The form that takes less. */
		if (partial.len != 1 + REDUCE_REGISTERS)
			assert_true(partial.len % SPARSE_BYTES == 1 &&
				    partial.len < 1 + DENSE_FROM * SPARSE_BYTES);
	}
}

static void
keys_that_come_twice_count_once(void **state)
{
	static const int64_t counts[] = { 3, 400, 900, 3000 };

	(void)state;
	for (size_t i = 0; i < COUNT(counts); i++) {
		int64_t n = counts[i];
		struct str whole = distinct_partial(0, n), got;
		struct reduce_acc acc;

		reduce_acc_init(&acc, &distinct, &work);
		assert_int_equal(reduce_acc_partial(&acc, distinct_partial(n / 3, n)), STATUS_OK);
		take_keys(&acc, 0, n / 2);
		assert_int_equal(reduce_acc_partial(&acc, distinct_partial(n / 4, n / 2)),
				 STATUS_OK);
		assert_int_equal(reduce_acc_result(&acc, &got), STATUS_OK);
		assert_true(str_eq(got, whole));
	}
}

/* The number of registers from which on they are kept as they are. */
static void
registers_are_kept_whole_where_that_is_shorter(void **state)
{
	(void)state;
	for (size_t used = DENSE_FROM - 1; used <= DENSE_FROM; used++) {
		AUTO(buf_release) struct buf sparse = BUF_INIT(VIEW_PARTIAL_BYTES);
		struct reduce_acc acc;
		struct str got;

		buf_append_byte(&sparse, 'r');
		for (size_t i = REDUCE_REGISTERS - used; i < REDUCE_REGISTERS; i++) {
			buf_append_byte(&sparse, (uint8_t)(i >> 8));
			buf_append_byte(&sparse, (uint8_t)i);
			buf_append_byte(&sparse, 1);
		}
		reduce_acc_init(&acc, &distinct, &work);
		assert_int_equal(reduce_acc_partial(&acc, buf_str(&sparse)), STATUS_OK);
		assert_int_equal(reduce_acc_result(&acc, &got), STATUS_OK);
		if (used < DENSE_FROM) {
			assert_true(str_eq(got, buf_str(&sparse)));
			continue;
		}
		assert_int_equal(got.len, 1 + REDUCE_REGISTERS);
		for (size_t i = 0; i < REDUCE_REGISTERS; i++)
			assert_int_equal(got.ptr[1 + i], i >= REDUCE_REGISTERS - used);
	}
}

static void
registers_that_there_are_not_are_damage(void **state)
{
	static const struct {
		struct str partial;
		enum status status;
	} cases[] = {
		{ STR("r\x07\xff\x01"), STATUS_OK },
		{ STR("r\x08\x00\x01"), STATUS_CORRUPT },
		{ STR("r\x00\x01"), STATUS_CORRUPT },
		{ STR("r\x00\x01\x01\x00"), STATUS_CORRUPT },
		{ STR("r\xff\xff\x01"), STATUS_CORRUPT },
		{ STR("r"), STATUS_OK },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct reduce_acc acc;

		reduce_acc_init(&acc, &distinct, &work);
		assert_int_equal(reduce_acc_partial(&acc, cases[i].partial), cases[i].status);
	}
}

/* ---- What cannot be reduced ---- */

static struct str
value_after(const struct view_reduce *reduce, const char *const *rows, size_t count,
	    struct view_error *error)
{
	struct reduce_acc acc;
	struct str partial, value;

	reduce_acc_init(&acc, reduce, &work);
	for (size_t i = 0; i < count && rows[i]; i++)
		assert_int_equal(reduce_acc_row(&acc, STR("1"), STR("id"), str_from_cstr(rows[i])),
				 STATUS_OK);
	assert_int_equal(reduce_acc_result(&acc, &partial), STATUS_OK);
	assert_int_equal(reduce_finalize(reduce, partial, arena, &value, error), STATUS_OK);
	return value;
}

static void
statistics_are_of_numbers_and_arrays_of_equal_length(void **state)
{
	static const struct {
		const char *rows[4];
		const char *value; /* NULL: they have no statistics */
		const char *told;  /* in the reason */
	} cases[] = {
		{ { "[1,2]", "[3,4]" },
		  "[{\"sum\":4,\"count\":2,\"min\":1,\"max\":3,\"sumsqr\":10},"
		  "{\"sum\":6,\"count\":2,\"min\":2,\"max\":4,\"sumsqr\":20}]",
		  NULL },
		{ { "{\"sum\":5,\"count\":2,\"min\":2,\"max\":3,\"sumsqr\":13}", "4" },
		  "{\"sum\":9,\"count\":3,\"min\":2,\"max\":4,\"sumsqr\":29}",
		  NULL },
		{ { "[]" }, "[]", NULL },
		/* Of equal numbers the first one stays, as it is written. */
		{ { "1", "1.0", "0" },
		  "{\"sum\":2.0,\"count\":3,\"min\":0,\"max\":1,\"sumsqr\":2.0}",
		  NULL },
		{ { "1.0", "1", "2" },
		  "{\"sum\":4.0,\"count\":3,\"min\":1.0,\"max\":2,\"sumsqr\":6.0}",
		  NULL },
		{ { "[1,2]", "[3]" }, NULL, "not '[3]'" },
		{ { "1", "[3]" }, NULL, "not '[3]'" },
		{ { "[3]", "1" }, NULL, "not '1'" },
		{ { "1", "\"text\"" }, NULL, "'" },
		{ { "[1,true]" }, NULL, "not '[1,true]'" },
		{ { "[[1],2]", "[[1,2],2]" }, NULL, "not '[[1,2],2]'" },
		{ { "{\"sum\":5,\"count\":2,\"min\":2,\"max\":3}" }, NULL, "not '{" },
		{ { "{\"sum\":5,\"count\":2,\"min\":2,\"max\":3,\"sumsqr\":\"x\"}" },
		  NULL,
		  "not '{" },
		/* The first failure is the one that is told. */
		{ { "1", "[2]", "[3]", "4" }, NULL, "not '[2]'" },
	};
	const struct view_reduce reduce = { .kind = VIEW_REDUCE_STATS };

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct view_error error;
		struct str value = value_after(&reduce, cases[i].rows, 4, &error);

		if (cases[i].value) {
			assert_int_equal(error.name.len, 0);
			if (!str_eq(value, str_from_cstr(cases[i].value)))
				fail_msg("%zu: %.*s", i, STR_ARG(value));
			continue;
		}
		if (!str_eq(error.name, STR("invalid_value")) ||
		    !memmem(error.reason.ptr, error.reason.len, cases[i].told,
			    strlen(cases[i].told)))
			fail_msg("%zu: %.*s %.*s", i, STR_ARG(error.name), STR_ARG(error.reason));
	}
}

static void
a_sum_of_what_has_none_is_an_error_that_stays(void **state)
{
	static const char *const rows[] = { "1", "\"text\"", "2", "\"other\"" };
	const struct view_reduce reduce = { .kind = VIEW_REDUCE_SUM };
	struct view_error error;
	struct str value = value_after(&reduce, rows, COUNT(rows), &error), partial;
	struct reduce_acc acc;

	(void)state;
	assert_int_equal(error.name.len, 0);
	assert_non_null(memmem(value.ptr, value.len, "{\"error\":\"builtin_reduce_error\"", 31));
	assert_non_null(memmem(value.ptr, value.len, "\"caused_by\":\"text\"}", 19));
	/* Whoever sums it up with others hands it on. */
	reduce_acc_init(&acc, &reduce, &work);
	take(&acc, 3);
	assert_int_equal(reduce_acc_partial(&acc, arena_printf(arena, "r%.*s", STR_ARG(value))),
			 STATUS_OK);
	take(&acc, 4);
	assert_int_equal(reduce_acc_result(&acc, &partial), STATUS_OK);
	assert_true(str_eq(str_skip(partial, 1), value));
	/* Another error is an object like others, and has no sum. */
	reduce_acc_init(&acc, &reduce, &work);
	assert_int_equal(reduce_acc_row(&acc, STR("1"), STR("id"), STR("{\"error\":1}")),
			 STATUS_OK);
	assert_int_equal(reduce_acc_row(&acc, STR("1"), STR("id"), STR("{\"error\":2}")),
			 STATUS_OK);
	assert_int_equal(reduce_acc_result(&acc, &partial), STATUS_OK);
	assert_true(str_eq(partial, STR("r{\"error\":3}")));
}

/* A text of so many bytes, its quotes with it. */
static struct str
text_of(size_t bytes)
{
	char *text = arena_bytes(arena, bytes);

	assert_non_null(text);
	memset(text, 'x', bytes);
	text[0] = text[bytes - 1] = '"';
	return str_of(text, bytes);
}

static void
a_result_has_bytes_up_to_the_limit(void **state)
{
	const struct view_reduce reduce = { .kind = VIEW_REDUCE_LAST };

	(void)state;
	for (size_t bytes = VIEW_PARTIAL_BYTES - 1; bytes <= VIEW_PARTIAL_BYTES; bytes++) {
		struct view_error error;
		struct reduce_acc acc;
		struct str partial, value;

		reduce_acc_init(&acc, &reduce, &work);
		assert_int_equal(reduce_acc_row(&acc, STR("1"), STR("id"), text_of(bytes)),
				 STATUS_OK);
		assert_int_equal(reduce_acc_result(&acc, &partial), STATUS_OK);
		assert_int_equal(reduce_finalize(&reduce, partial, arena, &value, &error),
				 STATUS_OK);
		if (bytes < VIEW_PARTIAL_BYTES) {
			assert_true(str_eq(value, text_of(bytes)));
			continue;
		}
		assert_true(str_eq(error.name, STR("reduce_overflow_error")));
		assert_true(str_eq(value, STR("null")));
	}
}

static void
what_is_told_of_a_long_value_is_short(void **state)
{
	static const enum view_reducer kinds[] = { VIEW_REDUCE_SUM, VIEW_REDUCE_STATS };
	static const size_t shown[] = { VIEW_PARTIAL_BYTES / 2, VIEW_PARTIAL_BYTES / 4 };

	(void)state;
	for (size_t i = 0; i < COUNT(kinds); i++)
		for (size_t bytes = shown[i] - 1; bytes <= shown[i]; bytes++) {
			const struct view_reduce reduce = { .kind = kinds[i] };
			struct view_error error;
			struct reduce_acc acc;
			struct str partial, value, told;

			reduce_acc_init(&acc, &reduce, &work);
			assert_int_equal(reduce_acc_row(&acc, STR("1"), STR("id"), text_of(bytes)),
					 STATUS_OK);
			assert_int_equal(reduce_acc_result(&acc, &partial), STATUS_OK);
			assert_int_equal(reduce_finalize(&reduce, partial, arena, &value, &error),
					 STATUS_OK);
			told = kinds[i] == VIEW_REDUCE_SUM ? value : error.reason;
			assert_true(told.len > 0);
			assert_int_equal(!!memmem(told.ptr, told.len, "xxxxxxxx", 8),
					 bytes < shown[i]);
		}
}

/* Wherever the arena ends, a result is whole or none. */
/* Behind its letter there is nothing of it, nor is there memory. */
static void
a_count_without_digits_adds_nothing(void **state)
{
	const struct view_reduce reduce = { .kind = VIEW_REDUCE_COUNT };
	char *letter = malloc(1);
	struct reduce_acc acc;
	struct str partial;

	(void)state;
	assert_non_null(letter);
	*letter = 'r';
	reduce_acc_init(&acc, &reduce, &work);
	assert_int_equal(reduce_acc_partial(&acc, str_of(letter, 1)), STATUS_OK);
	assert_int_equal(reduce_acc_partial(&acc, STR("r12")), STATUS_OK);
	assert_int_equal(reduce_acc_result(&acc, &partial), STATUS_OK);
	assert_true(str_eq(partial, STR("r12")));
	reduce_acc_release(&acc);
	free(letter);
}

/* The result of three rows with that value. */
static enum status
reduce_three(const struct view_reduce *reduce, const char *value, struct index_work *w,
	     struct str *ret)
{
	enum status status = STATUS_OK;
	struct reduce_acc acc;

	reduce_acc_init(&acc, reduce, w);
	for (int row = 0; status == STATUS_OK && row < 3; row++)
		status = reduce_acc_row(&acc, STR("1"), STR("id"), str_from_cstr(value));
	if (status == STATUS_OK)
		status = reduce_acc_result(&acc, ret);
	reduce_acc_release(&acc);
	return status;
}

/* Each allocation fails once, and those behind it do not. */
static void
assert_none_without_memory(const struct view_reduce *reduce, const char *value, struct str whole)
{
	bool failed = true;

	for (uint64_t nth = 1; failed; nth++) {
		struct index_work own = { .arena = arena_new(TEST_ARENA_BYTES) };
		struct str partial = { NULL, 0 };
		enum status status;

		arena_set_apart(true);
		(void)mem_fail_only(nth);
		status = reduce_three(reduce, value, &own, &partial);
		failed = mem_fail_only(0) >= nth;
		arena_set_apart(false);
		if (status == STATUS_OK)
			assert_true(str_eq(partial, whole));
		else
			assert_true(failed && (status == STATUS_NOMEM || status == STATUS_LIMIT));
		arena_free(own.arena);
	}
}

static void
a_result_without_room_is_none(void **state)
{
	static const struct {
		struct view_reduce reduce;
		const char *value;
	} cases[] = {
		{ { .kind = VIEW_REDUCE_STATS }, "[1,[2,3],4]" },
		{ { .kind = VIEW_REDUCE_SUM }, "[1,2,3]" },
		{ { .kind = VIEW_REDUCE_SUM }, "{\"a\":1,\"b\":[2]}" },
		{ { .kind = VIEW_REDUCE_SUM }, "\"text\"" },
		{ { .kind = VIEW_REDUCE_DISTINCT }, "1" },
		{ { .kind = VIEW_REDUCE_LAST }, "\"text\"" },
		{ { .kind = VIEW_REDUCE_TOP, .n = 3 }, "[1,\"text\"]" },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct str whole = { NULL, 0 };

		for (size_t bytes = 1 << 20, enough = 0; enough < 4;
		     bytes = bytes == 1 << 20 ? 0 : bytes + 16) {
			struct index_work small = { .arena = arena_new(bytes) };
			struct str partial = { NULL, 0 };
			enum status status = reduce_three(&cases[i].reduce, cases[i].value, &small,
							  &partial);

			if (status != (arena_is_full(small.arena) ? STATUS_LIMIT : STATUS_OK))
				fail_msg("%zu in %zu bytes: %s", i, bytes, status_name(status));
			if (!whole.ptr)
				whole = arena_dup(arena, partial);
			else if (status == STATUS_OK)
				assert_true(str_eq(partial, whole));
			enough += status == STATUS_OK;
			arena_free(small.arena);
		}
		assert_none_without_memory(&cases[i].reduce, cases[i].value, whole);
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(results_do_not_depend_on_how_rows_come_together),
		TEST(different_keys_are_counted_about),
		TEST(keys_that_come_twice_count_once),
		TEST(registers_are_kept_whole_where_that_is_shorter),
		TEST(registers_that_there_are_not_are_damage),
		TEST(statistics_are_of_numbers_and_arrays_of_equal_length),
		TEST(a_sum_of_what_has_none_is_an_error_that_stays),
		TEST(a_result_has_bytes_up_to_the_limit),
		TEST(what_is_told_of_a_long_value_is_short),
		TEST(a_count_without_digits_adds_nothing),
		TEST(a_result_without_room_is_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
