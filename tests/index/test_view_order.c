/* The order of the rows of one document where memory for it ends. */
#include "common.h"
#include "index/view/order.h"

enum {
	ROWS = 1000, /* more than an arena's first block has room for */
	KEYS = 3,
	FAILURES = 20,
};

/* Row i has the value ROWS - i, and a key that every KEYS-th row has, too. */
static void
rows_make(struct view_mapped rows[ROWS])
{
	for (size_t i = 0; i < ROWS; i++)
		rows[i] = (struct view_mapped){
			.ordinal = i,
			.component = arena_printf(arena, "%zu", i % KEYS),
			.key = arena_printf(arena, "%zu", i % KEYS),
			.value = arena_printf(arena, "%zu", ROWS - i),
		};
}

/* `ordered`: rows of one key have their values ascending; otherwise all are as they were made. */
static void
assert_rows(const struct view_mapped rows[ROWS], bool ordered)
{
	size_t lowest[KEYS];

	for (size_t i = 0; i < KEYS; i++)
		lowest[i] = ROWS - ((ROWS - 1 - i) / KEYS * KEYS + i);
	for (size_t i = 0; i < ROWS; i++) {
		size_t value = ordered ? lowest[i % KEYS] + i / KEYS * KEYS : ROWS - i;

		assert_int_equal(rows[i].ordinal, i);
		assert_true(str_eq(rows[i].component, rows[i].key));
		assert_int_equal(strtoull(rows[i].key.ptr, NULL, 10), i % KEYS);
		assert_int_equal(strtoull(rows[i].value.ptr, NULL, 10), value);
	}
}

static void
rows_that_cannot_be_ordered_stay_as_they_are(void **state)
{
	static struct view_mapped rows[ROWS];
	size_t room = 0;
	bool ordered = false;

	(void)state;
	rows_make(rows);
	for (; !ordered; room += 1024) {
		struct arena *scratch = arena_new(room);

		ordered = view_rows_order(rows, ROWS, scratch) == STATUS_OK;
		assert_true(ordered || arena_is_full(scratch));
		assert_rows(rows, ordered);
		arena_free(scratch);
	}
	assert_in_range(room, 2 * sizeof(rows), SIZE_MAX);
}

static void
a_failed_allocation_leaves_rows_as_they_are(void **state)
{
	static struct view_mapped rows[ROWS];

	(void)state;
	rows_make(rows);
	for (uint64_t failing = 1; failing <= FAILURES; failing++) {
		struct arena *scratch = arena_new(TEST_ARENA_BYTES);
		enum status status;

		(void)mem_fail_only(failing);
		status = view_rows_order(rows, ROWS, scratch);
		assert_true(mem_fail_only(0) >= failing);
		assert_true(status == STATUS_LIMIT || status == STATUS_NOMEM);
		assert_rows(rows, false);
		arena_free(scratch);
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(rows_that_cannot_be_ordered_stay_as_they_are),
		TEST(a_failed_allocation_leaves_rows_as_they_are),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
