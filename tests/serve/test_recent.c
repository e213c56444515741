/* Logs of the newest: what they keep, what they join, what they show. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/mem.h"
#include "serve/recent.h"

enum {
	MOST = 5,
	LOOKS = 3,
	THREADS = 4,
	ROUNDS = 2000,
};

struct thing {
	struct recent_entry entry; /* first */
	int what;
	int times;
};

static struct recent kept;

static int
setup(void **state)
{
	(void)state;
	recent_init(&kept);
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	recent_fini(&kept);
	return 0;
}

static bool
join(struct recent_entry *e, const struct recent_entry *older)
{
	struct thing *t = (struct thing *)e;
	const struct thing *o = (const struct thing *)older;

	if (t->what != o->what)
		return false;
	t->times += o->times;
	return true;
}

static void
add(int what, size_t most, recent_join *how)
{
	struct thing *t = mem_zalloc(sizeof(*t));

	assert_non_null(t);
	t->what = what;
	t->times = 1;
	recent_add(&kept, &t->entry, most, how, LOOKS);
}

struct shown {
	size_t count;
	size_t at;
	int what[2 * MOST];
	int times[2 * MOST];
	uint64_t numbers[2 * MOST];
};

static void
begin(void *arg, size_t count)
{
	((struct shown *)arg)->count = count;
}

static void
see(void *arg, const struct recent_entry *e)
{
	struct shown *s = arg;

	assert_true(s->at < s->count && s->at < 2 * MOST);
	s->what[s->at] = ((const struct thing *)e)->what;
	s->times[s->at] = ((const struct thing *)e)->times;
	s->numbers[s->at++] = e->number;
}

static struct shown
show(uint64_t most)
{
	struct shown s = { .count = SIZE_MAX };

	recent_show(&kept, most, begin, see, &s);
	assert_int_equal(s.at, s.count);
	return s;
}

static void
the_newest_are_kept_and_shown_first(void **state)
{
	struct shown s;

	(void)state;
	assert_int_equal(show(UINT64_MAX).count, 0);
	for (int i = 0; i < 2 * MOST; i++)
		add(i, MOST, NULL);
	assert_int_equal(recent_count(&kept), MOST);
	s = show(UINT64_MAX);
	assert_int_equal(s.count, MOST);
	for (int i = 0; i < MOST; i++) {
		assert_int_equal(s.what[i], 2 * MOST - 1 - i);
		assert_int_equal(s.numbers[i], 2 * MOST - 1 - i);
	}
	assert_int_equal(show(2).count, 2);
	assert_int_equal(show(0).count, 0);
}

static void
a_lower_limit_holds_from_the_next_entry_on(void **state)
{
	(void)state;
	for (int i = 0; i < MOST; i++)
		add(i, MOST, NULL);
	add(MOST, 2, NULL);
	assert_int_equal(recent_count(&kept), 2);
	add(MOST + 1, 1, NULL);
	assert_int_equal(recent_count(&kept), 1);
	assert_int_equal(show(1).what[0], MOST + 1);
}

static void
numbers_go_on_after_a_log_was_cleared(void **state)
{
	(void)state;
	add(1, MOST, NULL);
	add(2, MOST, NULL);
	recent_clear(&kept);
	assert_int_equal(recent_count(&kept), 0);
	add(3, MOST, NULL);
	assert_int_equal(show(1).numbers[0], 2);
}

static void
an_entry_takes_the_place_of_an_equal_one_among_the_newest(void **state)
{
	struct shown s;

	(void)state;
	for (int i = 0; i < MOST; i++)
		add(i, MOST, join);
	add(2, MOST, join); /* the third newest: it is looked at */
	s = show(UINT64_MAX);
	assert_int_equal(s.count, MOST);
	assert_int_equal(s.what[0], 2);
	assert_int_equal(s.times[0], 2);
	assert_int_equal(s.what[1], 4);
	assert_int_equal(s.what[2], 3);
	assert_int_equal(s.what[3], 1);
	add(1, MOST, join); /* the fourth newest: it is not, and the oldest goes */
	s = show(UINT64_MAX);
	assert_int_equal(s.times[0], 1);
	assert_int_equal(s.count, MOST);
	assert_int_equal(s.what[MOST - 1], 1);
}

static void *
add_and_look(void *arg)
{
	(void)arg;
	for (int i = 0; i < ROUNDS; i++) {
		add(i % 7, MOST, i % 2 ? join : NULL);
		if (i % 10 == 0)
			assert_in_range(show(MOST).count, 0, MOST);
		if (i % 100 == 0)
			recent_clear(&kept);
	}
	return NULL;
}

static void
threads_add_and_look_at_once(void **state)
{
	pthread_t threads[THREADS];

	(void)state;
	for (size_t i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, add_and_look, NULL), 0);
	for (size_t i = 0; i < THREADS; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	assert_int_equal(kept.next, THREADS * ROUNDS);
	assert_in_range(recent_count(&kept), 1, MOST);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(the_newest_are_kept_and_shown_first, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_lower_limit_holds_from_the_next_entry_on, setup,
						teardown),
		cmocka_unit_test_setup_teardown(numbers_go_on_after_a_log_was_cleared, setup,
						teardown),
		cmocka_unit_test_setup_teardown(
			an_entry_takes_the_place_of_an_equal_one_among_the_newest, setup, teardown),
		cmocka_unit_test_setup_teardown(threads_add_and_look_at_once, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
