/* Buffers, arenas, the counted allocator, and structs that are cleared in part. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>

#include "base/arena.h"
#include "base/arena_apart.h"
#include "base/budget.h"
#include "base/buf.h"
#include "base/clear.h"
#include "base/mem.h"

static void
a_buffer_takes_what_its_maximum_allows(void **state)
{
	struct buf b = BUF_INIT(10);

	(void)state;
	buf_append(&b, "0123456789", 10);
	assert_int_equal(buf_status(&b), STATUS_OK);
	buf_append(&b, "", 0);
	assert_int_equal(buf_status(&b), STATUS_OK);
	buf_append_byte(&b, 'x');
	assert_int_equal(buf_status(&b), STATUS_LIMIT);
	buf_consume(&b, 5);
	buf_append_byte(&b, 'y');
	/* The failure sticks: what is there is not everything that was appended. */
	assert_int_equal(buf_status(&b), STATUS_LIMIT);
	assert_true(str_eq(buf_str(&b), STR("56789")));
	buf_clear(&b);
	buf_append_byte(&b, 'z');
	assert_int_equal(buf_status(&b), STATUS_OK);
	assert_true(str_eq(buf_str(&b), STR("z")));
	buf_release(&b);
	assert_int_equal(b.max_bytes, 10);
	buf_release(NULL);
}

static void
a_buffer_takes_over_the_failure_of_another(void **state)
{
	struct buf from = BUF_INIT(2), to = BUF_INIT(4);

	(void)state;
	buf_append_cstr(&from, "ab");
	buf_append_cstr(&to, "<");
	buf_append_buf(&to, &from);
	assert_int_equal(buf_status(&to), STATUS_OK);
	assert_true(str_eq(buf_str(&to), STR("<ab")));
	buf_append_cstr(&from, "c");
	buf_append_buf(&to, &from);
	assert_int_equal(buf_status(&to), STATUS_LIMIT);
	/* Its own comes first. */
	from.failed = STATUS_NOMEM;
	buf_append_buf(&to, &from);
	assert_int_equal(buf_status(&to), STATUS_LIMIT);
	buf_clear(&to);
	buf_append_buf(&to, &from);
	assert_int_equal(buf_status(&to), STATUS_NOMEM);
	buf_release(&from);
	buf_release(&to);
}

static void
a_buffer_refuses_lengths_that_overflow(void **state)
{
	struct buf b = BUF_INIT(SIZE_MAX);

	(void)state;
	buf_append_byte(&b, 'x');
	assert_false(buf_reserve(&b, SIZE_MAX));
	assert_int_equal(buf_status(&b), STATUS_LIMIT);
	buf_clear(&b);
	mem_fail_after(1); /* rather than ask the machine for that much */
	assert_false(buf_reserve(&b, SIZE_MAX - 100));
	mem_fail_after(0);
	assert_int_equal(buf_status(&b), STATUS_NOMEM);
	buf_release(&b);
}

static void
a_buffer_formats(void **state)
{
	struct buf b = BUF_INIT(1000);

	(void)state;
	buf_append_cstr(&b, "a");
	buf_append_str(&b, STR("b"));
	buf_printf(&b, "%d%s", 12, "c");
	buf_append_u64(&b, 0);
	buf_append_u64(&b, UINT64_MAX);
	buf_append_hex(&b, STR("\x00\xff\x1a"));
	assert_int_equal(buf_status(&b), STATUS_OK);
	assert_true(str_eq(buf_str(&b), STR("ab12c01844674407370955161500ff1a")));
	buf_release(&b);
}

static void
a_buffer_remembers_that_memory_was_short(void **state)
{
	struct buf b = BUF_INIT(1000);

	(void)state;
	mem_fail_after(1);
	buf_append_cstr(&b, "a");
	mem_fail_after(0);
	buf_append_cstr(&b, "b");
	assert_int_equal(buf_status(&b), STATUS_NOMEM);
	assert_int_equal(b.len, 0);
	buf_release(&b);
}

static void
an_arena_hands_out_aligned_memory_up_to_its_limit(void **state)
{
	enum {
		LIMIT = 100000
	};
	struct arena *a = arena_new(LIMIT);
	size_t total = 0;
	char *p;

	(void)state;
	assert_non_null(a);
	for (size_t n = 1; (p = arena_alloc(a, n)); n = n * 3 % 1000 + 1) {
		assert_int_equal((uintptr_t)p % 16, 0);
		memset(p, 0xaa, n);
		total += n;
	}
	assert_true(total > LIMIT - 1001 - LIMIT / 10 && total <= LIMIT);
	assert_true(arena_used_bytes(a) <= LIMIT + 16);
	assert_null(arena_alloc(a, SIZE_MAX));
	arena_clear(a);
	assert_int_equal(arena_used_bytes(a), 0);
	p = arena_zalloc(a, LIMIT);
	assert_non_null(p);
	for (size_t i = 0; i < LIMIT; i++)
		assert_int_equal(p[i], 0);
	arena_free(a);
	arena_free(NULL);
}

static void
a_reset_frees_what_came_after_the_mark_only(void **state)
{
	struct arena *a = arena_new(1 << 20);
	struct str kept = arena_dup(a, STR("kept"));
	struct arena_mark mark = arena_mark(a);
	size_t used = arena_used_bytes(a);

	(void)state;
	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < 100; i++)
			assert_non_null(arena_bytes(a, 1000));
		arena_reset(a, mark);
		assert_int_equal(arena_used_bytes(a), used);
	}
	assert_true(str_eq(kept, STR("kept")));
	assert_int_equal(kept.ptr[kept.len], '\0');
	arena_free(a);
}

/* The mark was set before the arena had a block, or while it had another one. */
static void
an_empty_arena_holds_no_block(void **state)
{
	enum {
		TURNS = 3,
		SECOND_BYTES = 32 * 1024, /* more than the first block has */
	};
	struct budget budget;
	struct budget_part part;
	struct arena *a;

	(void)state;
	budget_init(&budget, 1 << 20);
	budget_part_init(&part, &budget);
	mem_fail_after(0);
	a = arena_new(1 << 20);
	assert_int_equal(mem_fail_after(0), 1); /* none but itself */
	arena_set_part(a, &part);
	for (int turn = 0; turn < TURNS; turn++) {
		struct arena_mark mark = arena_mark(a);

		arena_trim(a);
		assert_non_null(arena_alloc(a, 0));
		assert_non_null(arena_alloc(a, 100));
		assert_int_equal(mem_fail_after(0), 1);
		assert_int_equal(part.used_bytes, 0);
		assert_non_null(arena_alloc(a, SECOND_BYTES));
		assert_int_equal(mem_fail_after(0), 1);
		assert_int_equal(part.used_bytes, SECOND_BYTES);
		arena_reset(a, mark);
		assert_int_equal(arena_used_bytes(a), 0);
		assert_int_equal(part.used_bytes, 0);
		/* The first block is there for the next one, until the arena is trimmed. */
		assert_non_null(arena_alloc(a, 100));
		assert_int_equal(mem_fail_after(0), 0);
		arena_clear(a);
	}
	mem_fail_after(1);
	arena_trim(a);
	assert_null(arena_alloc(a, 1));
	mem_fail_after(0);
	assert_true(arena_is_starved(a));
	arena_set_part(a, NULL);
	arena_free(a);
	budget_part_release(&part);
	budget_fini(&budget);
}

/* What was allocated stays where it is and as it is. */
static void
a_trimmed_arena_keeps_what_was_allocated(void **state)
{
	struct arena *a = arena_new(1 << 20);
	struct str kept = arena_dup(a, STR("kept"));
	struct arena_mark mark = arena_mark(a);

	(void)state;
	assert_non_null(arena_bytes(a, 12 * 1024));
	arena_reset(a, mark);
	arena_trim(a);
	assert_true(str_eq(kept, STR("kept")));
	assert_non_null(arena_zalloc(a, 12 * 1024));
	arena_reset(a, mark);
	assert_true(str_eq(kept, STR("kept")));
	arena_free(a);
}

static void
an_arena_formats(void **state)
{
	struct arena *a = arena_new(20);

	(void)state;
	assert_true(str_eq(arena_printf(a, "%d-%s", 7, "x"), STR("7-x")));
	assert_null(arena_printf(a, "%30d", 1).ptr);
	assert_null(arena_dup(a, STR("much longer than twenty bytes")).ptr);
	arena_free(a);
}

static void
a_copy_is_whole_or_is_left_alone(void **state)
{
	struct arena *a = arena_new(16);
	struct buf b = BUF_INIT(8);
	struct str copy = STR("untouched");

	(void)state;
	buf_append_cstr(&b, "before");
	buf_set(&b, STR("bytes"));
	assert_int_equal(buf_copy(&b, a, &copy), STATUS_OK);
	assert_true(str_eq(copy, STR("bytes")));
	assert_ptr_not_equal(copy.ptr, b.ptr);
	assert_int_equal(copy.ptr[copy.len], 0);
	assert_int_equal(arena_copy(a, STR("much more than is left"), &copy), STATUS_LIMIT);
	assert_true(str_eq(copy, STR("bytes")));
	buf_set(&b, STR("too much for it"));
	assert_int_equal(buf_copy(&b, a, &copy), STATUS_LIMIT);
	assert_true(str_eq(copy, STR("bytes")));
	/* The failure is forgotten with what was there. */
	buf_set(&b, STR("fits"));
	assert_int_equal(buf_copy(&b, a, &copy), STATUS_OK);
	assert_true(str_eq(copy, STR("fits")));
	buf_release(&b);
	arena_free(a);
}

static void
an_array_keeps_its_elements_as_it_grows(void **state)
{
	struct arena *a = arena_new(4096);
	uint32_t *numbers = NULL, *before;
	size_t count = 0, cap = 0;

	(void)state;
	for (; count < 100; count++) {
		assert_int_equal(arena_room(a, &numbers, count, &cap, sizeof(*numbers)), STATUS_OK);
		numbers[count] = (uint32_t)count;
	}
	assert_true(cap >= count);
	for (size_t i = 0; i < count; i++)
		assert_int_equal(numbers[i], i);
	before = numbers;
	assert_int_equal(arena_room(a, &numbers, cap, &cap, 1024 * sizeof(*numbers)), STATUS_LIMIT);
	assert_ptr_equal(numbers, before);
	arena_free(a);
}

static void
each_allocation_of_an_arena_can_fail_by_itself(void **state)
{
	struct arena *a = arena_new(1000);
	uint64_t made;

	(void)state;
	arena_set_apart(true);
	(void)mem_fail_only(2);
	assert_non_null(arena_alloc(a, 1));
	assert_null(arena_alloc(a, 1));
	assert_true(arena_is_starved(a));
	assert_non_null(arena_bytes(a, 10));
	assert_non_null(arena_dup(a, STR("text")).ptr);
	made = mem_fail_only(0);
	assert_int_equal(made, 4);
	arena_set_apart(false);
	assert_non_null(arena_alloc(a, 1));
	assert_non_null(arena_alloc(a, 1));
	assert_int_equal(mem_fail_only(0), 1);
	arena_free(a);
}

static void
mapped_memory_is_zero_and_may_be_short(void **state)
{
	const size_t many = (size_t)1 << 30; /* of which one page is touched */
	uint64_t before = mem_shortages();
	char *p = mem_map(1);

	(void)state;
	assert_non_null(p);
	assert_int_equal(p[0], 0);
	p[0] = 1;
	mem_unmap(p, 1);
	p = mem_map(many);
	assert_non_null(p);
	assert_int_equal(p[many - 1], 0);
	mem_unmap(p, many);
	mem_unmap(NULL, 1);
	assert_null(mem_map(SIZE_MAX / 2));
	assert_int_equal(mem_shortages(), before + 1);
	(void)mem_fail_after(1);
	assert_null(mem_map(1));
	(void)mem_fail_after(0);
}

static void
the_nth_allocation_and_all_after_it_fail(void **state)
{
	void *p;

	(void)state;
	mem_fail_after(2);
	p = mem_alloc(1);
	assert_non_null(p);
	assert_null(mem_alloc(1));
	assert_null(mem_zalloc(1));
	assert_null(mem_realloc(p, 100));
	assert_null(mem_strdup(STR("x")));
	assert_null(arena_new(1));
	assert_int_equal(mem_fail_after(0), 6);
	mem_free(p);
	p = mem_strdup(STR("ab\0c"));
	assert_memory_equal(p, "ab\0c", 5);
	mem_free(p);
}

/*
 * Eight or four bytes are written at once: each has to be right in each place, and what is left of
 * them.
 */
static void
every_byte_is_two_digits_wherever_it_lies(void **state)
{
	char bytes[31];
	char expected[2 * sizeof(bytes) + 1];

	(void)state;
	for (unsigned c = 0; c < 256; c++) {
		for (size_t n = 0; n <= sizeof(bytes); n++) {
			struct buf b = BUF_INIT(64);

			for (size_t i = 0; i < n; i++) {
				bytes[i] = (char)(c + i * 37);
				snprintf(expected + 2 * i, 3, "%02x", (uint8_t)bytes[i]);
			}
			buf_append_hex(&b, str_of(bytes, n));
			assert_int_equal(b.len, 2 * n);
			if (n)
				assert_memory_equal(b.ptr, expected, 2 * n);
			buf_release(&b);
		}
	}
}

/* ---- Structs that are cleared but for large members ---- */

enum {
	CLEAR_TEST_BYTE = 0x55, /* each byte before */
};

struct inner {
	char large[11];
	int64_t count;
};

struct object {
	int first;
	char large[13];
	int64_t next;
	struct inner inner;
	char last;
};

/* True if each byte of the member is that. */
#define IS(member, byte) is_all(&(member), sizeof(member), byte)

static bool
is_all(const void *p, size_t n, int byte)
{
	for (size_t i = 0; i < n; i++)
		if (((const uint8_t *)p)[i] != byte)
			return false;
	return true;
}

static void
what_is_in_front_of_a_large_member_is_cleared(void **state)
{
	struct object o;

	(void)state;
	memset(&o, CLEAR_TEST_BYTE, sizeof(o));
	CLEAR_BEFORE(&o, large);
	assert_true(IS(o.first, 0) && IS(o.large, CLEAR_TEST_BYTE) && IS(o.next, CLEAR_TEST_BYTE));
}

static void
what_is_behind_a_large_member_is_cleared(void **state)
{
	struct object o;

	(void)state;
	memset(&o, CLEAR_TEST_BYTE, sizeof(o));
	CLEAR_BEHIND(&o, large, next);
	assert_true(IS(o.first, CLEAR_TEST_BYTE) && IS(o.large, CLEAR_TEST_BYTE));
	assert_true(IS(o.next, 0) && IS(o.inner, 0) && IS(o.last, 0));
}

static void
what_is_between_two_large_members_is_cleared(void **state)
{
	struct object o;

	(void)state;
	memset(&o, CLEAR_TEST_BYTE, sizeof(o));
	CLEAR_BETWEEN(&o, large, next, inner.large);
	assert_true(IS(o.first, CLEAR_TEST_BYTE) && IS(o.large, CLEAR_TEST_BYTE) && IS(o.next, 0));
	assert_true(IS(o.inner, CLEAR_TEST_BYTE) && IS(o.last, CLEAR_TEST_BYTE));
	CLEAR_BEHIND(&o, inner.large, inner.count);
	assert_true(IS(o.inner.large, CLEAR_TEST_BYTE) && IS(o.inner.count, 0) && IS(o.last, 0));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_byte_is_two_digits_wherever_it_lies),
		cmocka_unit_test(a_buffer_takes_what_its_maximum_allows),
		cmocka_unit_test(a_buffer_takes_over_the_failure_of_another),
		cmocka_unit_test(a_buffer_refuses_lengths_that_overflow),
		cmocka_unit_test(a_buffer_formats),
		cmocka_unit_test(a_buffer_remembers_that_memory_was_short),
		cmocka_unit_test(an_arena_hands_out_aligned_memory_up_to_its_limit),
		cmocka_unit_test(a_reset_frees_what_came_after_the_mark_only),
		cmocka_unit_test(an_empty_arena_holds_no_block),
		cmocka_unit_test(a_trimmed_arena_keeps_what_was_allocated),
		cmocka_unit_test(an_arena_formats),
		cmocka_unit_test(a_copy_is_whole_or_is_left_alone),
		cmocka_unit_test(an_array_keeps_its_elements_as_it_grows),
		cmocka_unit_test(each_allocation_of_an_arena_can_fail_by_itself),
		cmocka_unit_test(the_nth_allocation_and_all_after_it_fail),
		cmocka_unit_test(what_is_in_front_of_a_large_member_is_cleared),
		cmocka_unit_test(what_is_behind_a_large_member_is_cleared),
		cmocka_unit_test(what_is_between_two_large_members_is_cleared),
		cmocka_unit_test(mapped_memory_is_zero_and_may_be_short),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
